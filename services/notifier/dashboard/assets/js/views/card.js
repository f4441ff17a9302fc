import { html } from "/assets/vendor/preact.js";
import { download } from "../api.js";
import { stagesOf } from "../iterations.js";
import { Ago, Mark, Priority, Range, sayFault, Stages, StatusBadge } from "../parts.js";
import { jobLink } from "../route.js";
import { isRunning } from "../state.js";
import { isOwnTitle, titleOf } from "../titles.js";
import { date, lasted, pauseWords, plural, startWords } from "../words.js";
import { Question } from "./question.js";

const drawn = new WeakMap(); // job → its card: one that has not changed is not drawn again

export function cardOf(job) {
  if (!drawn.has(job)) drawn.set(job, html`<${Card} key=${job.id} job=${job} />`);
  return drawn.get(job);
}

function Card({ job }) {
  return html`<article class=${`job ${job.status}`} data-job=${job.id}>
    <${Mark} job=${job} />
    <div class="body">
      <div class="head">
        <a class="what" href=${jobLink(job.id)}>${titleOf(job)}</a>
        <span class="row">${job.result_url && html`<${Download} job=${job} />`}<${StatusBadge} job=${job} /></span>
      </div>
      ${isRunning(job) && html`<${Stages} of=${stagesOf(job)} />`}
      ${job.queue?.upper_bound != null && html`<${Range} queue=${job.queue} thin />`}
      <p class="facts-line">
        ${job.priority !== "normal" && html`<${Priority} of=${job.priority} />`}
        ${factsOf(job).map((fact) => html`<span>${fact}</span>`)}
        ${isOwnTitle(job) && html`<span>${job.project_id}</span>`}
        <${Ago} of=${job.created_at} />
      </p>
      <${Question} job=${job} />
    </div>
  </article>`;
}

function Download({ job }) {
  const take = () => download(`/jobs/${job.id}/result`, `${job.id}.tar.gz`).catch(sayFault);
  return html`<button class="bare above" aria-label=${`Download the result of ${titleOf(job)}`} onClick=${take}>
    Download</button>`;
}

/** What is to be known of it at a glance, besides its stages. */
function factsOf(job) {
  const { used, batch, confirmations } = job.iterations;
  if (job.status === "failed") return [job.message];
  if (job.status === "queued")
    return [pauseWords(job) ?? job.queue?.position_message ?? job.message, startWords(job.queue)].filter(Boolean);
  if (job.status === "scheduled" && job.scheduled_for)
    return [job.message, `enters the queue at ${date(job.scheduled_for)}`];
  if (isRunning(job)) return [used > 0 ? `iteration ${used} of ${batch * (1 + confirmations)}` : job.message];
  if (job.status === "ready")
    return [`ready after ${lasted(job.created_at, job.updated_at)}`, ...(used > 1 ? [plural(used, "iteration")] : [])];
  return { waiting: [job.message], cancelled: ["cancelled"], awaiting_confirmation: ["asks you"] }[job.status] ?? [];
}
