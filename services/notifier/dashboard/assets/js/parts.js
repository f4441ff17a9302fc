// Small parts that several views use.

import { html, signal } from "/assets/vendor/preact.js";
import { horizon, now } from "./feed.js";
import { isPaused, isRunning, stageTitle } from "./state.js";
import { ago, clock, date, short, span, statusWord, until } from "./words.js";

export const Badge = ({ kind = "", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;
export const Priority = ({ of }) => html`<span class=${`badge priority ${of}`}>${of}</span>`;
/** Where a job stands, in a word or two. */
export function stateWord(job) {
  if (job.status === "queued" && isPaused(job)) return "Paused";
  return (job.status === "running" && stageTitle(job)) || statusWord(job.status);
}
export const lookOf = (job) => (isRunning(job) ? "running" : job.status);
export const StatusBadge = ({ job }) => html`<span class=${`badge dot ${lookOf(job)}`}>${stateWord(job)}
  </span>`;
export const Empty = ({ picture, title, is = "strong", children }) =>
  html`<div class="empty">${picture}${title && html`<${is} class="says">${title}</>`}<div>${children}</div></div>`;
/** In place of a page, for which there is nothing to show. */
export const Missing = ({ what, fault }) => html`<${Empty} title=${`This ${what} cannot be shown`} is="h1">
  <p class="sentence">${fault.message}.</p><p><a href="#/jobs">Back to your jobs</a></p></>`;
export const Ago = ({ of }) => html`<time datetime=${of} title=${date(of)}>
  ${ago(of, Math.max(now.value, Date.now() - 2_000))}</time>`;
export const Until = ({ of }) => html`<time datetime=${of} title=${date(of)}>${until(of, now.value)}</time>`;
export const At = ({ of }) => html`<time datetime=${of} title=${date(of)}>${clock(of)}</time>`;

const SIGNS = {
  running: ["M12 3a9 9 0 1 0 9 9"],
  ready: ["M5 12.5l4.5 4.5L19 7.5"],
  failed: ["M6 6l12 12", "M18 6L6 18"],
  cancelled: ["M6 12h12"],
  scheduled: ["M12 4a8 8 0 1 0 .01 0", "M12 8v4.5l3 2"],
  waiting: ["M6 12h.01", "M12 12h.01", "M18 12h.01"],
  queued: ["M9 6v12", "M15 6v12"], // paused: without a place
  awaiting_confirmation: ["M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4", "M12 18h.01"],
};

/** Where a job stands, as a sign: its place in the queue, which a paused one has not, or a drawing. */
export function Mark({ job, large = false }) {
  const look = lookOf(job),
    place = job.status === "queued" && !isPaused(job) && job.queue?.position;
  const sign = html`<svg viewBox="0 0 24 24">${(SIGNS[look] ?? SIGNS.queued).map((d) => html`<path d=${d} />`)}</svg>`;
  return html`<span class=${`mark ${look} ${large ? "large" : ""}`} aria-hidden="true">${place ? `#${place}` : sign}
    </span>`;
}

const STAGE_WORDS = { done: ": done", now: ": under way" };
const STAGE_SIGNS = { done: "✓ ", now: "▸ " };

export function Stages({ of, label = "Stages" }) {
  return html`<ol class="stages" aria-label=${label}>${Object.keys(of).map(
    (stage) => html`<li class=${of[stage]} aria-current=${of[stage] === "now" ? "step" : undefined}>
      <span aria-hidden="true">${STAGE_SIGNS[of[stage]] ?? ""}</span>${stage}<span class="visually-hidden">
      ${STAGE_WORDS[of[stage]] ?? ": to come"}</span></li>`,
  )}</ol>`;
}

export function Meter({ used, limit, label }) {
  const share = limit > 0 ? Math.min(100, (100 * used) / limit) : 0;
  const told = {
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": limit,
    "aria-valuenow": Math.min(used, limit),
  };
  return html`<div class=${used >= limit ? "meter full" : "meter"} role="meter" ...${told} aria-valuetext=${`${used} of ${limit}`}>
    <span style=${{ width: `${share}%` }}></span></div>`;
}

const DRAWN = 24; // slots that are still counted at a glance

/** Slots as boxes, or as a bar where they are many. */
export function Slots({ used, limit, label }) {
  if (limit > DRAWN) return html`<${Meter} used=${used} limit=${limit} label=${label} />`;
  const boxes = Array.from({ length: Math.max(limit, used) }, (_, n) => html`<i class=${n < used ? "taken" : ""}></i>`);
  const words = `${label}: ${used} of ${limit} taken`;
  return html`<div class=${used >= limit ? "slots full" : "slots"} role="img" aria-label=${words}>${boxes}</div>`;
}

/** When a job will start, drawn: from the lower to the upper bound, and the likeliest moment in it. */
export function Range({ queue, thin = false }) {
  const { estimate_seconds: likely, lower_bound: lower, upper_bound: upper } = queue;
  if (upper == null) return "";
  const end = thin ? horizon.value : Math.max(1, upper),
    at = (seconds) => `${Math.min(100, (100 * seconds) / end)}%`;
  const words = `Starts in ${queue.message}, most likely in ${span(likely)}`;
  return html`<div class=${`range ${thin ? "thin" : ""}`} role="img" aria-label=${words} title=${words}>
    <div class="track"><span class="span" style=${{ left: at(lower), width: at(upper - lower) }}></span>
      <span class="likely" style=${{ left: at(likely) }}></span></div>
    ${
      !thin &&
      html`<div class="scale" aria-hidden="true"><span>now</span>
      ${lower / end > 0.14 && lower / end < 0.8 ? html`<span style=${{ left: at(lower) }}>${short(lower)}</span>` : ""}
      <span style=${{ left: "100%" }}>${short(upper)}</span></div>`
    }
  </div>`;
}

/** A field that narrows down what is shown; `wanted` is the signal that holds its text. */
export function Search({ id, label, placeholder = "Search", wanted }) {
  const heard = (event) => (wanted.value = event.target.value);
  return html`<label class="visually-hidden" for=${id}>${label}</label>
    <input id=${id} type="search" placeholder=${placeholder} value=${wanted.value} onInput=${heard} />`;
}

export function Wrong({ fault }) {
  return html`<div role="alert">${
    fault
      ? html`<p class="wrong">
    ${fault.message}${fault.debugId ? html` <span class="soft">(debug id <code>${fault.debugId}</code>)</span>` : ""}
    </p>`
      : ""
  }</div>`;
}

/** Said above a list that could not be asked for again. */
export const Late = ({ fault }) =>
  fault
    ? html`<p class="late" role="status">Not up to date: ${fault.message}
  </p>`
    : "";

/** The index is being made anew: what is here is not all. `of`: how far it is, as "1200/5000". */
export function Behind({ of }) {
  const [done, all] = of.split("/").map(Number);
  if (!all) return "";
  return html`<p class="late" role="status">Still reading the log, ${Math.floor((100 * done) / all)} % of it: what is older is here,
    the newest comes in a moment.</p>`;
}

/** The first answer is not there yet. */
export const Looking = ({ fault }) => html`<${Empty}>${fault ? fault.message : "Looking…"}</>`;

// What was done, said once.

const said = signal(null);
let timer = 0;

export function say(text, kind = "said") {
  said.value = { text, kind };
  clearTimeout(timer);
  timer = setTimeout(() => (said.value = null), 6000);
}
export const sayFault = (fault) => say(fault.message, "wrong");

export function Toast() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${said.value ? html`<p class=${`toast ${said.value.kind}`}>${said.value.text}</p>` : ""}</div>`;
}
