// Which view is open: what stands behind the #, as in #/jobs/<id>, #/jobs/<id>#L12-20 (lines of its log) or
// #/jobs?show=failed. To go there takes a link.

import { signal } from "/assets/vendor/preact.js";

const LINES = /#L(\d{1,9})(?:-(\d{1,9}))?$/;

function read() {
  const [path, query = ""] = location.hash.replace(LINES, "").replace(/^#\/?/, "").split("?");
  const [name, id = ""] = path.split("/");
  return { name: name || "jobs", id: decoded(id), lines: lines(), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The lines that the address names; null where it names none. */
function lines() {
  const found = LINES.exec(location.hash);
  return found && { from: Number(found[1]), to: Math.max(Number(found[1]), Number(found[2] ?? 0)) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal(read());
export const jobLink = (id) => `#/jobs/${encodeURIComponent(id)}`;
export const workflowLink = (id) => `#/workflows/${encodeURIComponent(id)}`;
export const linesLink = (id, { from, to }) => `${jobLink(id)}#L${from}${to > from ? `-${to}` : ""}`;

/** The link to a view; what is empty in its query is left out. */
export function link(name, query = {}) {
  const told = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${name}${told.size ? `?${told}` : ""}`;
}

/** Go there, and back leads to where one was before the place that is left. */
export function replaced(hash) {
  if (location.hash === hash) return;
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

addEventListener("hashchange", () => {
  const before = route.value;
  route.value = read();
  if (before.name === route.value.name && before.id === route.value.id) return; // another filter: nobody is moved
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
});
