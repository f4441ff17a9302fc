import { html } from "/assets/vendor/preact.js";
import { iterationsOf } from "../iterations.js";
import { now } from "../feed.js";
import { stageNames } from "../state.js";
import { clock, lasted } from "../words.js";

const SIGNS = { done: "✓", now: "▸", broken: "✕", failed: "✕", left: "–", ready: "✓" };
const WORDS = {
  done: "done",
  now: "under way",
  broken: "did not pass",
  failed: "failed",
  left: "broken off",
  ready: "passed",
};

/** How far the stage is that the job is in, as it says itself. */
export function HowFar({ job: { progress, stage } }) {
  if (!progress) return "";
  const { fraction, message } = progress;
  return html`<div class="how-far"><progress max="1" value=${fraction} aria-label=${`How far ${stage} is`}></progress>
    <span class="soft">${Math.floor(fraction * 100)} %${message && `, ${message}`}</span></div>`;
}

/** Every iteration a row, every stage a column: what passed, what did not, and how long it took. */
export function Progress({ job, events }) {
  const iterations = iterationsOf(events, job),
    names = stageNames(job);
  if (iterations.length === 0) return "";
  return html`<section class="card" aria-labelledby="progress-title">
    <div class="head"><h2 id="progress-title">Progress</h2><span class="soft">
      ${iterations.length === 1 ? "1 iteration" : `${iterations.length} iterations`} of at most ${job.iterations.cap}</span>
      </div>
    <table class="iterations" aria-labelledby="progress-title">
      <thead><tr><th scope="col"><span class="visually-hidden">Iteration</span></th>
        ${names.map((stage) => html`<th scope="col">${stage}</th>`)}</tr></thead>
      <tbody>${iterations.map((each) => html`<${IterationRow} key=${each.number} iteration=${each} names=${names} />`)}</tbody>
    </table>
  </section>`;
}

function IterationRow({ iteration, names }) {
  return html`<tr><th scope="row"><span class="word">Iteration </span>${iteration.number}</th>
    ${names.map((stage) => html`<${Stage} of=${iteration.stages[stage]} />`)}</tr>
    ${
      iteration.asked &&
      html`<tr class="asked">
      <td colspan=${names.length + 1}>Asked you at ${clock(iteration.asked)}
        ${iteration.granted ? `; you granted ${iteration.granted} more` : ""}
      </td></tr>`
    }`;
}

function Stage({ of }) {
  if (!of) return html`<td><span class="visually-hidden">to come</span></td>`;
  const took = of.from ? lasted(of.from, of.until ?? Math.max(now.value, Date.parse(of.from))) : "";
  const words = of.restored ? "kept" : ["broken", "failed", "left"].includes(of.state) ? WORDS[of.state] : took;
  return html`<td class=${of.state} title=${`${WORDS[of.state]}${took ? `, ${took}` : ""}`}>
    <span class="sign" aria-hidden="true">${SIGNS[of.state]}</span> <span class="visually-hidden">
    ${WORDS[of.state]} </span>${
      words === WORDS[of.state]
        ? html`<span class="word" aria-hidden="true">${words}
    </span>`
        : words
    }</td>`;
}
