import { html } from "/assets/vendor/preact.js";
import { KEYS } from "../keys.js";
import { close, Over } from "../opened.js";

/** What each key does. */
export function Help() {
  return html`<${Over} name="help" title="Keys"><div class="head"><h2>Keys</h2>
    <button type="button" class="bare" aria-label="Close" onClick=${close}>✕</button></div>
    <dl class="keys">${Object.entries(KEYS).map(
      ([keys, words]) => html`<div><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${words}</dd></div>`,
    )}</dl></>`;
}
