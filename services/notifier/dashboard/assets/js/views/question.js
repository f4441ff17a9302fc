import { html, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { say, sayFault } from "../parts.js";
import { date } from "../words.js";
import { inputFrom, SchemaFields } from "./schema_form.js";

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

const WHOLE = "answer";

/** What is asked for, as an object with fields: what is one value is its only field, called as the question is. */
export function askedFor(text, schema) {
  if (schema?.properties) return schema;
  const part = { ...(schema ?? { type: "string" }), title: text };
  return { properties: { [WHOLE]: part }, required: [WHOLE], $defs: schema?.$defs };
}

/** The answer that is meant by what was typed. */
export function answerFrom(text, schema, typed) {
  const said = inputFrom(askedFor(text, schema), typed);
  return schema?.properties ? said : said[WHOLE];
}

/** A button for each choice, else the fields of what is asked for. */
function Answer({ question: { text, choices, schema }, busy, give }) {
  const wrong = useSignal("");
  const typed = useSignal({});
  if (choices?.length)
    return html`<div class="row" role="group" aria-label=${text}>
      ${choices.map((choice) => html`<button disabled=${busy} onClick=${() => give(choice)}>${choice}</button>`)}</div>`;
  const submit = (event) => {
    event.preventDefault();
    try {
      wrong.value = "";
      give(answerFrom(text, schema, typed.value));
    } catch (fault) {
      wrong.value = fault.message;
    }
  };
  const take = ({ target }) => (typed.value = { ...typed.value, [target.name]: target.value });
  return html`<form class="stack tight" aria-label=${text} onSubmit=${submit} onInput=${take} autocomplete="off">
    <${SchemaFields} schema=${askedFor(text, schema)} typed=${typed.value} of="answer" />
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
