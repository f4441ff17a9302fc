import { html } from "/assets/vendor/preact.js";
import { now } from "../feed.js";
import { COLUMNS, columnsFor, liking } from "../liking.js";
import { chosen } from "../list.js";
import { Mark, Priority, stateWord } from "../parts.js";
import { jobLink, workflowLink } from "../route.js";
import { isOperator } from "../session.js";
import { hasEnded, isPaused, isRunning } from "../state.js";
import { titleOf } from "../titles.js";
import { date, lasted, minute, pauseWords, plural, startWords } from "../words.js";
import { Copy } from "./copy.js";

const NUMBERS = new Set(["created", "updated", "took", "attempt", "iterations"]);

/** Jobs, a line each, in groups of a day: as many as a screen can hold. */
export function Table({ groups, title }) {
  const columns = columnsFor(liking.value, isOperator.value);
  const span = columns.length + 3;
  return html`<table class="list" aria-labelledby=${title}>
    <thead><tr><th class="c-choose"><${ChooseAll} groups=${groups} /></th><th class="c-status">Status</th><th class="c-title">Title</th>
      ${columns.map((name) => html`<th class=${classOf(name)}>${COLUMNS[name]}</th>`)}</tr></thead>
    ${groups.map(
      ({ day, jobs }) => html`<tbody key=${day}>
      ${day && html`<tr class="day"><th colspan=${span} scope="rowgroup">${day}</th></tr>`}
      ${jobs.map((job) => rowOf(job, columns))}</tbody>`,
    )}
  </table>`;
}

const classOf = (name) => `c-${name}${NUMBERS.has(name) ? " number" : ""}`;
const drawn = new WeakMap(); // job → what it was drawn with, and its row

function rowOf(job, columns) {
  const held = chosen.value.has(job.id);
  const key = `${columns}|${held}`;
  if (drawn.get(job)?.key !== key)
    drawn.set(job, { key, row: html`<${Row} key=${job.id} job=${job} columns=${columns} held=${held} />` });
  return drawn.get(job).row;
}

function Row({ job, columns, held }) {
  return html`<tr class=${held ? `${job.status} held` : job.status} data-job=${job.id}>
    <td class="c-choose"><${Choose} job=${job} held=${held} /></td>
    <td class="c-status"><${Mark} job=${job} /><span>${stateWord(job)}</span></td>
    <td class="c-title"><span class="line"><a class="what" href=${jobLink(job.id)}>${titleOf(job)}</a>
      <span class="tail">${tailOf(job)}</span></span></td>
    ${columns.map((name) => html`<td class=${classOf(name)}>${CELLS[name](job)}</td>`)}
  </tr>`;
}

const CELLS = {
  id: (job) => html`<${Copy} of=${job.id} label=${`Copy the id ${job.id}`}><code>${job.id.slice(0, 8)}…</code></>`,
  project: (job) => html`<span class="cut" title=${job.project_id}>${job.project_id}</span>`,
  pipeline: (job) => html`<span class="cut">${job.pipeline}</span>`,
  pool: (job) => html`<span class="cut">${job.pool}</span>`,
  priority: (job) => (job.priority === "normal" ? "" : html`<${Priority} of=${job.priority} />`),
  user: (job) => html`<span class="line" title=${`${job.user_id}: ${usedWords(job.usage)}`}><span class="cut">${job.user_id}</span>
    <span class="soft number">${job.usage.jobs_used}/${job.usage.jobs_used + job.usage.jobs_remaining}</span></span>`,
  labels: (job) => {
    const words = Object.entries(job.labels ?? {}).map((pair) => pair.join("="));
    return html`<span class="cut soft" title=${words.join(", ")}>${words.join(", ")}</span>`;
  },
  workflow: ({ workflow }) =>
    workflow &&
    html`<a class="above" href=${workflowLink(workflow)}><code>${workflow.slice(0, 8)}…</code></a>
      <${Copy} of=${workflow} label=${`Copy the workflow ${workflow}`} />`,
  iterations: ({ iterations: { used, cap } }) => (used ? `${used} of ${cap}` : ""),
  attempt: ({ attempt }) => attempt || "",
  updated: (job) => html`<time datetime=${job.updated_at} title=${date(job.updated_at)}>${minute(job.updated_at)}</time>`,
  created: (job) => html`<time datetime=${job.created_at} title=${date(job.created_at)}>${minute(job.created_at)}</time>`,
  took: (job) => html`<${Took} job=${job} />`,
};

const usedWords = ({ jobs_used, jobs_remaining }) => `${jobs_used} of ${jobs_used + jobs_remaining} jobs of today used`;

/** From its submission to its end, or until now. */
function Took({ job }) {
  if (hasEnded(job)) return lasted(job.created_at, job.updated_at);
  return html`<span class="soft">${lasted(job.created_at, Math.max(now.value, Date.now() - 2_000))}</span>`;
}

/** What is to be known of it beside its status. */
export function tailOf(job) {
  const { used, batch, confirmations } = job.iterations;
  if (job.status === "failed") return job.message;
  if (job.status === "queued") return [pauseWords(job), startWords(job.queue), placeOf(job)].filter(Boolean).join(" · ");
  if (job.status === "scheduled") return job.scheduled_for ? `enters the queue ${date(job.scheduled_for)}` : job.message;
  if (job.question?.kind === "ask") return job.question.text;
  if (job.status === "awaiting_confirmation") return `${used} of ${batch * (1 + confirmations)} iterations used`;
  if (isRunning(job)) return used > 1 ? `iteration ${used} of ${batch * (1 + confirmations)}` : "";
  return job.status === "ready" && used > 1 ? plural(used, "iteration") : "";
}

const PLAIN = /^You are #\d+ in queue$/; // the mark says it
const placeOf = (job) => (isPaused(job) ? "" : (job.queue?.position_message ?? "").replace(PLAIN, ""));

function Choose({ job, held }) {
  const toggle = ({ target, shiftKey }) => chooseTo(job.id, target.checked, shiftKey);
  return html`<input type="checkbox" class="above" data-choose checked=${held} aria-label=${`Select ${titleOf(job)}`} onClick=${toggle} />`;
}

let lastChosen = "";

/** With shift, all from the last one that was chosen to this one. */
function chooseTo(id, held, range) {
  const ids = [...document.querySelectorAll("#list [data-job]")].map((row) => row.dataset.job);
  const [from, to] = [ids.indexOf(lastChosen), ids.indexOf(id)].sort((one, other) => one - other);
  const meant = range && from >= 0 ? ids.slice(from, to + 1) : [id];
  const next = new Set(chosen.value);
  for (const each of meant) held ? next.add(each) : next.delete(each);
  lastChosen = id;
  chosen.value = next;
}

function ChooseAll({ groups }) {
  const ids = groups.flatMap(({ jobs }) => jobs.map(({ id }) => id));
  const all = ids.length > 0 && ids.every((id) => chosen.value.has(id));
  const toggle = () => (chosen.value = new Set(all ? [] : ids));
  return html`<input type="checkbox" checked=${all} aria-label="Select all that are shown" onClick=${toggle} />`;
}
