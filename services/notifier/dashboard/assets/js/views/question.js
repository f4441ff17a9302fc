import { html, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { say, sayFault } from "../parts.js";
import { date } from "../words.js";

/** The question a job asks its user, wherever they see the job. */
export function Question({ job }) {
  const busy = useSignal(false);
  if (job.status !== "awaiting_confirmation") return "";
  const by = job.question?.expires_at ?? job.waiting_on[0]?.until;
  const act = (path, body, words) => async () => {
    busy.value = true;
    await send("POST", `/jobs/${job.id}/${path}`, body).then(() => say(words), sayFault);
    busy.value = false;
  };
  return html`<section class="question above" aria-label="The job asks you" role="group">
    <p>${job.question?.kind === "ask" ? html`<strong>${job.question.text}</strong>` : html`<${Used} job=${job} />`}
      ${by ? html` <span class="soft">It waits for your answer until ${date(by)}.</span>` : ""}</p>
    <${Reason} of=${job.question?.reason} />
    <div class="row">
      <button class="quiet danger" disabled=${busy.value} onClick=${act("cancel", {}, "Cancelled.")}>Cancel job</button>
      <button disabled=${busy.value} onClick=${act("confirm", {}, "It goes on, from its old place.")}>
        Continue for ${moreOf(job)} more</button>
    </div>
  </section>`;
}

const moreOf = ({ question, iterations: { batch, cap, used } }) => question?.next_batch ?? Math.min(batch, cap - used);

function Used({ job }) {
  const { used, batch, cap, confirmations } = job.iterations;
  return html`<strong>${used} of ${batch * (1 + confirmations)} iterations used,</strong> and the checks do not pass yet.
    ${" "}It may use ${cap} in all.`;
}

/** What was not good enough: what failed, and how. */
function Reason({ of }) {
  if (!of?.summary) return "";
  if (!of.detail) return html`<p class="wrong">${of.summary}</p>`;
  return html`<details><summary>${of.summary}</summary><pre tabindex="0">${of.detail}</pre></details>`;
}
