// The keyboard: what a key does, wherever one is on the page. Nothing where somebody writes, or a dialog is open.

import { chosen } from "./list.js";
import { open, opened } from "./opened.js";
import { link } from "./route.js";
import { token } from "./session.js";

export const KEYS = {
  "Ctrl K": "Go anywhere: jobs, pages, acts",
  "/": "Search",
  n: "New job",
  "j k": "Next and previous job",
  Enter: "Open the job",
  x: "Select the job",
  Escape: "Select none; close what is open",
  "?": "These keys",
};

const ACTS = {
  n: () => open("submit"),
  "?": () => open("help"),
  "/": search,
  j: () => step(1),
  k: () => step(-1),
  x: () => focusedRow()?.querySelector("[data-choose]")?.click(),
  Escape: () => (chosen.value = new Set()),
};

function search() {
  const field = document.querySelector("main input[type=search]");
  if (field) return field.focus();
  location.hash = link("jobs");
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector("main input[type=search]")?.focus()));
}

const rows = () => [...document.querySelectorAll("#list [data-job]")];
const focusedRow = () => document.activeElement?.closest("#list [data-job]");

/** The next job of the list gets the focus; the first, where none has it. */
function step(by) {
  const all = rows(),
    at = all.indexOf(focusedRow());
  const next = all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by))];
  next?.querySelector("a.what")?.focus();
}

const writes = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (!token.value) return;
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    open(opened.value === "palette" ? "" : "palette");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const act = ACTS[event.key];
  if (!act) return;
  if (event.key !== "Escape") event.preventDefault();
  act();
});
