import { html, useSignal } from "/assets/vendor/preact.js";
import { now } from "../feed.js";
import { linesLink } from "../route.js";
import { hasEnded, stageTitle } from "../state.js";
import { axisOf, linesOf, rangesOf, timelineOf } from "../timeline.js";
import { clock, lasted, plural, shortDay, shortTime } from "../words.js";

const TICKS = 6;
const NARROW_TICKS = 3;
const LANES = { waits: "Waits", asks: "Questions" };
const KINDS = {
  wait: "waited",
  way: "on its way",
  pause: "paused",
  run: "under way",
  done: "done",
  kept: "kept",
  tried: "failed, tried again",
  broken: "did not pass",
  failed: "failed",
  left: "broken off",
  ready: "passed",
  asks: "asked",
};

/** When what happened, on the clock: a lane for waits, one for each stage, one for questions. */
export function Timeline({ job, events, waits, lines }) {
  const chosen = useSignal(null),
    drawn = useSignal(0);
  const told = timelineOf(events, job, waits);
  if (told.from === null) return "";
  const all = rangesOf(told, now.value);
  const range = all.find(({ number }) => number === drawn.value) ?? all[0];
  const axis = axisOf(range.from, range.until, innerWidth < 700 ? NARROW_TICKS : TICKS);
  const choose = (part) => (chosen.value = chosen.value && same(chosen.value, part) ? null : part);
  return html`<section class="card" aria-labelledby="timeline-title">
    <div class="head"><h2 id="timeline-title">Timeline <span class="soft">${lasted(told.from, all[0].until)}
      ${hasEnded(job) ? "" : " so far"}</span></h2>
      ${all.length > 1 && html`<${Range} all=${all} range=${range} drawn=${drawn} />`}</div>
    <div class="timeline">
      <${Axis} axis=${axis} attempts=${range.number ? [] : told.attempts} />
      ${told.lanes.map(
        (lane) => html`<${Lane} key=${lane.name} lane=${lane} job=${job} axis=${axis} chosen=${chosen.value} choose=${choose} />`,
      )}
    </div>
    <${Chosen} job=${job} part=${chosen.value} lines=${lines} />
  </section>`;
}

/** All of its life, or one attempt: of one that waited for a night, its work is slivers. */
function Range({ all, range, drawn }) {
  const pick = ({ target }) => (drawn.value = Number(target.value));
  return html`<div class="fit"><label class="visually-hidden" for="timeline-range">What is drawn</label>
    <select id="timeline-range" class="small" value=${range.number} onChange=${pick}>${all.map(
      ({ number }) => html`<option value=${number}>${number ? `Attempt ${number}` : "All of it"}</option>`,
    )}</select></div>`;
}

const same = (one, other) => one.from === other.from && one.lane === other.lane;
const share = (axis, at) => (100 * (Math.min(Math.max(at, axis.from), axis.until) - axis.from)) / (axis.until - axis.from);

function Axis({ axis, attempts }) {
  const words = axis.withDay ? shortDay : axis.withSeconds ? clock : shortTime;
  return html`<div class="axis-row" aria-hidden="true"><span></span><div class="plot">
    ${axis.ticks.map((at) => html`<i class="tick" style=${{ left: `${share(axis, at)}%` }}><b>${words(at)}</b></i>`)}
    ${attempts.filter(({ number }) => number > 1).map(
      ({ number, at, worker }) => html`<i class="attempt" style=${{ left: `${share(axis, at)}%` }}
        title=${`Attempt ${number}${worker ? ` on ${worker}` : ""}, ${clock(at)}`}><b>${number}</b></i>`,
    )}</div></div>`;
}

function Lane({ lane, job, axis, chosen, choose }) {
  const title = LANES[lane.name] ?? lane.name;
  const seen = lane.parts.filter((part) => part.from <= axis.until && (part.until ?? axis.until) >= axis.from);
  return html`<div class="lane" role="group" aria-label=${title}><span class="cut">${title}</span><div class="plot">
    ${seen.map((part) => html`<${Part} key=${part.from} part=${part} job=${job} axis=${axis}
      chosen=${chosen !== null && same(chosen, part)} choose=${choose} />`)}</div></div>`;
}

function Part({ part, job, axis, chosen, choose }) {
  const left = share(axis, part.from),
    right = share(axis, part.until ?? Math.max(now.value, part.from));
  const place = { left: `${left}%`, width: `max(${right - left}%, 5px)` };
  const words = partWords(part, job);
  return html`<button type="button" class=${`part ${part.kind} ${part.until === null ? "open" : ""}`} style=${place}
    title=${words} aria-label=${words} aria-pressed=${chosen ? "true" : "false"} onClick=${() => choose(part)}></button>`;
}

function partWords(part, job) {
  const what = part.stage ? `${part.stage}${part.iteration > 1 ? `, iteration ${part.iteration}` : ""}` : part.words;
  const took = lasted(part.from, part.until ?? Math.max(now.value, part.from));
  const how = part.stage ? `, ${KINDS[part.kind]}` : "";
  return `${what}${how}, ${took}${part.until === null && !hasEnded(job) ? " so far" : ""}`;
}

/** The part that was chosen, in words, and the way to its lines. */
function Chosen({ job, part, lines }) {
  if (!part) return html`<p class="soft timeline-words">Choose a part to see when it was, and what it said.</p>`;
  const said = linesOf(part, lines);
  const title = part.stage ? stageTitle({ ...job, stage: part.stage }) : part.words;
  const beside = [
    part.stage && KINDS[part.kind],
    part.iteration > 1 && `iteration ${part.iteration}`,
    part.attempt > 1 && `attempt ${part.attempt}`,
    `${clock(part.from)} to ${part.until ? clock(part.until) : "now"}`,
    lasted(part.from, part.until ?? Math.max(now.value, part.from)),
  ].filter(Boolean);
  return html`<p class="timeline-words" role="status"><strong>${title}</strong> <span class="soft">${beside.join(" · ")}</span>
    ${part.stage && part.words ? html` <span class="soft">${part.words}</span>` : ""}
    ${part.queue ? html` <span class="soft">What kept it is known from when this page was opened on.</span>` : ""}
    ${said ? html` <a href=${linesLink(job.id, said)}>${plural(said.to - said.from + 1, "line")} of the log</a>` : ""}</p>`;
}
