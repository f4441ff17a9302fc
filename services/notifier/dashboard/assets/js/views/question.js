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
  const asks = job.question?.kind === "ask";
  const give = (answer) =>
    act("answer", { question: job.question.id, answer }, "Answered: it goes on, from its old place.")();
  return html`<section class="question above" aria-label="The job asks you" role="group">
    <p>${asks ? html`<strong>${job.question.text}</strong>` : html`<${Used} job=${job} />`}
      ${by ? html` <span class="soft">It waits for your answer until ${date(by)}.</span>` : ""}</p>
    <${Reason} of=${job.question?.reason} />
    ${asks ? html`<${Answer} key=${job.question.id} question=${job.question} busy=${busy.value} give=${give} />` : ""}
    <div class="row">
      <button class="quiet danger" disabled=${busy.value} onClick=${act("cancel", {}, "Cancelled.")}>Cancel job</button>
      ${
        !asks &&
        html`<button disabled=${busy.value} onClick=${act("confirm", {}, "It goes on, from its old place.")}>
        Continue for ${moreOf(job)} more</button>`
      }
    </div>
  </section>`;
}

/** A button for each choice; a field for a text, a number or JSON where a schema wants that. */
function Answer({ question: { text, choices, schema }, busy, give }) {
  const wrong = useSignal("");
  if (choices?.length)
    return html`<div class="row" role="group" aria-label=${text}>
      ${choices.map((choice) => html`<button disabled=${busy} onClick=${() => give(choice)}>${choice}</button>`)}</div>`;
  const submit = (event) => {
    event.preventDefault();
    const said = new FormData(event.target).get("answer");
    try {
      wrong.value = "";
      give(schema && schema.type !== "string" ? JSON.parse(said) : said);
    } catch {
      wrong.value = "This is no JSON.";
    }
  };
  const kind = ["number", "integer"].includes(schema?.type) ? "number" : "text";
  const plain = !schema || ["string", "number", "integer"].includes(schema.type);
  return html`<form class="stack tight" onSubmit=${submit}>
    ${
      plain
        ? html`<input name="answer" aria-label=${text} required type=${kind} step="any" />`
        : html`<details><summary>What it wants</summary><pre tabindex="0">${JSON.stringify(schema, null, 2)}</pre></details>
        <textarea name="answer" aria-label=${text} rows="4" required></textarea>`
    }
    ${wrong.value && html`<p class="wrong" role="alert">${wrong.value}</p>`}
    <div class="row"><button disabled=${busy}>Answer</button></div>
  </form>`;
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
