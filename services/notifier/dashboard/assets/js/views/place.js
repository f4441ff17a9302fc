import { html } from "/assets/vendor/preact.js";
import { UTC_DAYS } from "../days.js";
import { At, Range, Until } from "../parts.js";
import { hasEnded, isPaused, isRunning } from "../state.js";
import { date, moveWords, plural } from "../words.js";

/** Where a job stands, when it will start, what keeps it, and what has moved it. */
export function Place({ job }) {
  const { queue } = job;
  if (hasEnded(job) || isRunning(job) || job.status === "awaiting_confirmation") return "";
  return html`<section class="card" aria-labelledby="place-title">
    <h2 id="place-title">${queue ? "Place in the queue" : "Why it waits"}</h2>
    ${queue && !isPaused(job) && html`<${Standing} queue=${queue} />`}
    ${queue && isPaused(job) && html`<p>It keeps its place, and has its number again once it is resumed.</p>`}
    ${
      job.scheduled_for &&
      !queue &&
      html`<p><strong>
      ${job.message}.</strong> It enters the queue <${Until} of=${job.scheduled_for} />, at ${date(job.scheduled_for)}.
      ${" "}<span class="soft">${UTC_DAYS}.</span></p>`
    }
    <${Reasons} reasons=${job.waiting_on.filter(({ reason }) => reason !== "daily_window")} />
    <${Moves} job=${job} />
    ${queue && html`<p class="soft">A position can change as priority jobs arrive. ${passedWords(queue.passed_by)}</p>`}
    ${
      job.upgrade &&
      queue &&
      html`<p class="nudge">${job.upgrade.message}: <a href=${job.upgrade.url}>see the plans</a>
      </p>`
    }
  </section>`;
}

const passedWords = (times) =>
  times > 0 ? `Boosted jobs have passed this one ${plural(times, "time")}; there is a limit to it.` : "";

function Standing({ queue }) {
  return html`<div class="place">
    <span class="figure number">#${queue.position}</span>
    <div class="stack tight">
      <p>${queue.position_message}${queue.message && html`<br /><${Start} queue=${queue} />`}</p>
      ${queue.upper_bound != null && html`<${Range} queue=${queue} />`}
    </div>
  </div>`;
}

function Start({ queue }) {
  if (queue.estimate_seconds == null) return html`<span class="soft">No estimate yet</span>`;
  return html`Starts in <strong>${queue.message}</strong> <span class="soft">(confidence ${queue.confidence})</span>`;
}

function Reasons({ reasons }) {
  if (reasons.length === 0) return "";
  return html`<div><h3 class="label" id="why-title">Why is it waiting?</h3>
    <ul class="reasons" aria-labelledby="why-title">${reasons.map(
      (reason) => html`<li>
    ${reason.message}${reason.since ? html` <span class="soft">since <${At} of=${reason.since} /></span>` : ""}</li>`,
    )}
    </ul></div>`;
}

function Moves({ job }) {
  if (!job.moves?.length) return "";
  return html`<div><h3 class="label" id="moves-title">Why it moved</h3><ul class="moves" aria-labelledby="moves-title">
    ${[...job.moves].reverse().map(
      (move) => html`<li key=${move.at}><span class=${`step ${move.to < move.from ? "up" : "down"}`}>
      ${move.to < move.from ? "▲" : "▼"} #${move.from} → #${move.to}</span><span>${moveWords(move)}</span>
      <span class="soft"><${At} of=${move.at} /></span></li>`,
    )}</ul></div>`;
}
