// What a job was asked to do, for lists. The API never gives an input back, so this browser remembers its own.

const KEPT = "headgate.titles";
const MOST = 300;
let known = null;

function all() {
  try {
    return (known ??= JSON.parse(localStorage.getItem(KEPT) ?? "{}"));
  } catch {
    return (known = {});
  }
}

export function remember(id, title) {
  known = Object.fromEntries(Object.entries({ ...all(), [id]: title.slice(0, 140) }).slice(-MOST));
  try {
    localStorage.setItem(KEPT, JSON.stringify(known));
  } catch {
    // a browser that keeps nothing: this tab still knows
  }
}

const PIPELINES = { build: "Build", rehearsal: "Rehearsal" };
export const isOwnTitle = (job) => job.id in all();
export const titleOf = (job) => all()[job.id] ?? `${PIPELINES[job.pipeline] ?? job.pipeline} for ${job.project_id}`;
