import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { page } from "../api.js";
import { Drawing } from "../drawing.js";
import { Empty, Late } from "../parts.js";
import { link, route } from "../route.js";
import { claims } from "../session.js";
import { hasEnded, jobs, newer, usage, withJob } from "../state.js";
import { connection } from "../stream.js";
import { cardOf } from "./card.js";
import { Submit } from "./submit.js";
import { Usage } from "./usage.js";

const ACTIVE = [
  "scheduled",
  "waiting",
  "queued",
  "starting",
  "scaffold",
  "code",
  "deps",
  "checks",
  "running",
  "awaiting_confirmation",
];
const SHOWS = {
  "": "All",
  active: "Unfinished",
  asks: "Ask you",
  ready: "Ready",
  failed: "Failed",
  cancelled: "Cancelled",
};
const STATUSES = {
  "": [],
  active: ACTIVE,
  asks: ["awaiting_confirmation"],
  ready: ["ready"],
  failed: ["failed"],
  cancelled: ["cancelled"],
};

/** One's jobs, newest first: those that were heard of, and older ones page by page. */
export function Jobs() {
  const { show: asked = "", project = "" } = route.value.query;
  const show = asked in SHOWS ? asked : "";
  const next = useSignal(null);
  const loaded = useSignal(false),
    fault = useSignal(null);
  const load = async (path) => {
    try {
      const found = await page(path);
      for (const job of found.items) jobs.value = withJob(jobs.value, newer(jobs.value.get(job.id), job));
      if (found.items.length) usage.value ??= found.items[0].usage;
      next.value = found.next;
      loaded.value = true;
      fault.value = null;
    } catch (problem) {
      fault.value = problem;
    }
  };
  useEffect(() => void load(listPath(show, project)), [show, project]);
  useEffect(() => {
    if (fault.peek() !== null) load(listPath(show, project)); // there is somebody again who may answer
  }, [connection.value]);
  const all = [...jobs.value.values()];
  const fitting = all.filter((job) => fits(job, show) && (!project || job.project_id === project));
  const shown = [...fitting.filter(asks), ...fitting.filter((job) => !asks(job))]; // who is asked sees it
  return html`<div class="columns side">
    <div class="stack stays"><${Submit} first=${loaded.value && all.length === 0} /><${Usage} /></div>
    <section class="stack" aria-labelledby="jobs-title">
      <div class="head"><h1 class="title" id="jobs-title">Your jobs</h1>
        <${Shows} show=${show} project=${project} all=${all} /></div>
      <${Projects} show=${show} project=${project} all=${all} />
      <${Late} fault=${fault.value} />
      ${shown.length > 0 && html`<div class="jobs">${shown.map(cardOf)}</div>`}
      ${shown.length === 0 && loaded.value && html`<${Nothing} any=${all.length > 0} />`}
      ${
        next.value &&
        html`<div class="row"><button class="quiet" onClick=${() => load(next.value)}>Older jobs</button>
        </div>`
      }
    </section>
  </div>`;
}

function listPath(show, project) {
  const query = new URLSearchParams(STATUSES[show].map((status) => ["status", status]));
  query.set("limit", "30");
  query.set("user", claims.value?.sub ?? ""); // an operator too has jobs
  if (project) query.set("project", project);
  return `/jobs?${query}`;
}

const asks = (job) => job.status === "awaiting_confirmation";
const fits = (job, show) => show === "" || (show === "active" ? !hasEnded(job) : STATUSES[show].includes(job.status));

/** Which jobs are shown. Only of the unfinished ones the page knows how many there are. */
function Shows({ show, project, all }) {
  const count = { active: all.filter((job) => !hasEnded(job)).length, asks: all.filter(asks).length };
  return html`<nav class="segments" aria-label="Which jobs">${Object.entries(SHOWS).map(
    ([name, word]) =>
      html`<a href=${link("jobs", { show: name, project })} aria-current=${show === name ? "true" : undefined}>
        ${word}${count[name] ? html` <span class="number">${count[name]}</span>` : ""}</a>`,
  )}</nav>`;
}

function Projects({ show, project, all }) {
  const names = [...new Set([...all.map((job) => job.project_id), ...(project ? [project] : [])])].sort();
  if (names.length < 2) return "";
  return html`<nav class="segments projects" aria-label="Which project">${["", ...names].map(
    (name) =>
      html`<a href=${link("jobs", { show, project: name })} aria-current=${project === name ? "true" : undefined}>
        <span class="cut">${name || "Every project"}</span></a>`,
  )}</nav>`;
}

function Nothing({ any }) {
  if (any) return html`<${Empty} title="No job of this kind"><a href="#/jobs">Show all of them</a></>`;
  return html`<${Empty} picture=${html`<${Drawing} />`} title="Nothing here yet">
    Press Submit: the sample is built within seconds, and you see it wait, run and end here.</>`;
}
