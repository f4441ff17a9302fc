import { html, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { say, sayFault } from "../parts.js";
import { date } from "../words.js";

/** The question a job asks its user, wherever they see the job. */
export function Question({ job }) {
  const busy = useSignal(false);
  if (job.status !== "awaiting_confirmation") return "";
  const { used, batch, cap, confirmations } = job.iterations;
  const more = job.question?.next_batch ?? Math.min(batch, cap - used);
  const by = job.question?.expires_at ?? job.waiting_on[0]?.until;
  const answer = (path, words) => async () => {
    busy.value = true;
    await send("POST", `/jobs/${job.id}/${path}`, {}).then(() => say(words), sayFault);
    busy.value = false;
  };
  return html`<section class="question above" aria-label="The job asks you" role="group">
    <p><strong>${used} of ${batch * (1 + confirmations)} iterations used,</strong> and the checks do not pass yet.
      ${" "}It may use ${cap} in all. ${by ? html`<span class="soft">It waits for your answer until ${date(by)}.</span>` : ""}</p>
    <div class="row">
      <button class="quiet danger" disabled=${busy.value} onClick=${answer("cancel", "Cancelled.")}>Cancel job</button>
      <button disabled=${busy.value} onClick=${answer("confirm", "It goes on, from its old place.")}>
        Continue for ${more} more</button>
    </div>
  </section>`;
}
