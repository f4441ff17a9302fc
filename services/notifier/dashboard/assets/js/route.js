// Which view is open: what stands behind the #, as in #/jobs/<id> or #/jobs?show=failed. To go there takes a link.

import { signal } from "/assets/vendor/preact.js";

function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id = ""] = path.split("/");
  return { name: name || "jobs", id: decoded(id), query: Object.fromEntries(new URLSearchParams(query)) };
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

/** The link to a view; what is empty in its query is left out. */
export function link(name, query = {}) {
  const told = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${name}${told.size ? `?${told}` : ""}`;
}

addEventListener("hashchange", () => {
  const before = route.value;
  route.value = read();
  if (before.name === route.value.name && before.id === route.value.id) return; // another filter: nobody is moved
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
});
