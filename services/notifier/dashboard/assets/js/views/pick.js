import { html } from "/assets/vendor/preact.js";

/** A choice among few, as narrow as what is chosen. `none`: what stands there as long as nothing is,
 *  `any`: what takes the choice back. */
export function Pick({ label, none, any = `Any ${label.toLowerCase()}`, value, of, counts = {}, choose }) {
  const worded = ([key, words]) => html`<option value=${key} selected=${key === value}>
    ${words}${counts[key] ? ` (${counts[key].toLocaleString()})` : ""}</option>`;
  const set = none !== undefined && value;
  const changed = ({ target }) => {
    const picked = target.value;
    target.value = value; // until it is so
    choose(picked);
  };
  return html`<select class=${set ? "pick set" : "pick"} aria-label=${label} value=${value} onChange=${changed}>
    ${none !== undefined && html`<option value="">${value ? any : none}</option>`}
    ${Object.entries(of).map(worded)}</select>`;
}
