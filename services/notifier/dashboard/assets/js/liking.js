// How somebody likes their list: as a table or as cards, and which columns. This browser keeps it.

import { effect, signal } from "/assets/vendor/preact.js";

const KEPT = "headgate.list";
export const COLUMNS = {
  id: "Job",
  project: "Project",
  pipeline: "Pipeline",
  pool: "Pool",
  priority: "Priority",
  user: "Owner",
  labels: "Labels",
  workflow: "Workflow",
  iterations: "Iterations",
  attempt: "Attempt",
  updated: "Changed",
  created: "Submitted",
  took: "Took",
};
export const FOR_OPERATORS = ["user"];
const LIKED = { look: "table", columns: ["project", "priority", "user", "created", "took"] };

function read() {
  try {
    const { look, columns } = JSON.parse(localStorage.getItem(KEPT)) ?? {};
    return {
      look: look === "cards" ? "cards" : LIKED.look,
      columns: Array.isArray(columns) ? columns.filter((name) => name in COLUMNS) : LIKED.columns,
    };
  } catch {
    return LIKED;
  }
}

export const liking = signal(read());
effect(() => {
  try {
    localStorage.setItem(KEPT, JSON.stringify(liking.value));
  } catch {
    // a browser that keeps nothing: it is so as long as the page is open
  }
});

/** The columns in their one order, of which only operators have some. */
export const columnsFor = ({ columns }, operator) =>
  Object.keys(COLUMNS).filter((name) => columns.includes(name) && (operator || !FOR_OPERATORS.includes(name)));
