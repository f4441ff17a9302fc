import { html } from "/assets/vendor/preact.js";
import { askFirst } from "../dialog.js";
import { isFiltered } from "../filters.js";
import { say } from "../parts.js";
import { link } from "../route.js";
import { forget, save, saved } from "../saved.js";
import { Pick } from "./pick.js";

const SAVE = "#save",
  FORGET = "#forget"; // no address of filters: these begin with #/jobs

/** Filters by name: go to one, save what is shown, forget what was saved. */
export function Saved({ filters }) {
  const here = link("jobs", filters);
  const is = saved.value.find(({ hash }) => hash === here);
  const of = Object.fromEntries(saved.value.map(({ name, hash }) => [hash, name]));
  if (is) of[FORGET] = `Forget “${is.name}”`;
  else if (isFiltered(filters) || filters.sort) of[SAVE] = "Save these…";
  if (Object.keys(of).length === 0) return "";
  const choose = (picked) => {
    if (picked === SAVE) return keep(here);
    if (picked === FORGET) return forget(is.name), say(`Forgot “${is.name}”.`);
    return (location.hash = picked || link("jobs"));
  };
  return html`<${Pick} label="Saved filters" none="Saved" any="All jobs" value=${is?.hash ?? ""} of=${of} choose=${choose} />`;
}

async function keep(hash) {
  const Fields = () => html`<div><label for="saved-name">Name</label>
    <input id="saved-name" name="name" required maxlength="60" pattern=".*\\S.*" /></div>`;
  const text = "This browser keeps them under the name. The address has them too: anyone with the link sees the same filters.";
  const answer = await askFirst({ title: "Save these filters", text, act: "Save", Fields, reason: false });
  if (!answer) return;
  save(answer.name.trim(), hash);
  say(`Saved as “${answer.name.trim()}”.`);
}
