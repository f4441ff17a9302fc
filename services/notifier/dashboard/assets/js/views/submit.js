import { effect, html, signal, useEffect, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { keep, stirred } from "../feed.js";
import { expect } from "../list.js";
import { close, Over } from "../opened.js";
import { Range, say, Wrong } from "../parts.js";
import { claims, token } from "../session.js";
import { PRIORITIES } from "../state.js";
import { tierWord } from "../words.js";
import { Held } from "./pausing.js";
import { begun, inputFrom, labels, lookAgain, offeredAs, SchemaFields } from "./schema_form.js";

const HIGHEST = { bootstrapper: "normal", partner: "high", cto_scale: "urgent" };
const EMPTY = {
  pipeline: "build",
  project: "shop",
  priority: "normal",
  labels: "",
  run_at: "",
};
const draft = signal(EMPTY); // what is typed stays, whatever is drawn again meanwhile and wherever its writer goes
effect(() => void (token.value, (draft.value = EMPTY))); // and is nobody else's
let key = crypto.randomUUID(); // a submission that nobody answered is sent again under its own key

/** What the form says, as the API takes it; labels are `key=value`, with commas between them. */
export function bodyOf(told) {
  const { name, pool, input_schema } = offeredAs(told.pipeline);
  const input = inputFrom(input_schema, { ...begun(input_schema), ...told });
  const marks = Object.fromEntries(
    (told.labels ?? "")
      .split(",")
      .map((pair) => pair.trim())
      .filter(Boolean)
      .map((pair) => [pair.split("=")[0], pair.split("=").slice(1).join("=")]),
  );
  const runAt = told.run_at ? { run_at: new Date(told.run_at).toISOString() } : {};
  const more = { ...(pool ? { pool } : {}), ...runAt };
  return { project_id: told.project, pipeline: name, priority: told.priority, input, labels: marks, ...more };
}

/** The form of a new job, over whatever is open. */
export const SubmitDialog = () => html`<${Over} name="submit" title="New job" kind="submit"><${Submit} /></>`;

function Submit() {
  const fault = useSignal(null),
    busy = useSignal(false),
    foreseen = useSignal(null);
  useEffect(() => void lookAgain(), []);

  const attempt = async (path, headers, after) => {
    fault.value = foreseen.value = null;
    busy.value = true;
    try {
      after(await send("POST", path, bodyOf(draft.value), headers));
    } catch (problem) {
      fault.value = problem;
    } finally {
      busy.value = false;
    }
  };
  const submit = (event) => {
    event.preventDefault();
    attempt("/jobs", { "Idempotency-Key": key }, (job) => {
      key = crypto.randomUUID();
      keep(job);
      expect(job.id);
      stirred.value += 1;
      close();
      say(`Submitted: ${job.message}.`);
    });
  };
  const tryOut = () => attempt("/jobs?dry_run=true", {}, (job) => (foreseen.value = job));
  const typed = ({ target }) => (draft.value = { ...draft.value, [target.name]: target.value });
  const keyed = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.requestSubmit();
  return html`<form class="stack" onSubmit=${submit} onInput=${typed} onKeyDown=${keyed} autocomplete="off" aria-label="New job">
      <div class="head"><h2>New job</h2><button type="button" class="bare" aria-label="Close" onClick=${close}>✕</button></div>
      <${Held} />
      <${Input} faults=${fault.value?.errors} />
      <${Basics} />
      <${More} />
      <${Wrong} fault=${fault.value} />
      ${foreseen.value && html`<${Foreseen} job=${foreseen.value} />`}
      <div class="row"><button disabled=${busy.value}>Submit</button>
        <button type="button" class="quiet" disabled=${busy.value} onClick=${tryOut}>What would happen?</button></div>
    </form>`;
}

/** What the pipeline takes, as its schema says. */
function Input({ faults }) {
  const { input_schema } = offeredAs(draft.value.pipeline);
  return html`<${SchemaFields} schema=${input_schema} typed=${{ ...begun(input_schema), ...draft.value }} faults=${faults} />`;
}

function Basics() {
  const { project, priority, pipeline } = draft.value;
  const tier = claims.value?.tier,
    highest = PRIORITIES.indexOf(HIGHEST[tier] ?? "normal");
  const option = (name, n) => html`<option value=${name} disabled=${n < highest}>
    ${name}${n < highest ? `: not as ${tierWord(tier)}` : ""}</option>`;
  return html`<div class="fields">
    <div><label for="project">Project</label>
      <input id="project" name="project" required maxlength="256" value=${project} /></div>
    <div><label for="priority">Priority</label>
      <select id="priority" name="priority" value=${priority}>${PRIORITIES.map(option)}</select></div>
    <div><label for="pipeline">Pipeline</label>
      <select id="pipeline" name="pipeline" value=${pipeline}>
        ${labels().map((name) => html`<option value=${name}>${name}</option>`)}</select></div>
  </div>`;
}

function More() {
  const { labels, run_at } = draft.value;
  return html`<details class="options"><summary>More</summary>
    <div><label for="labels">Labels</label>
      <input id="labels" name="labels" placeholder="team=growth, round=2" maxlength="2000" value=${labels} /></div>
    <div><label for="run-at">Not before</label>
      <input id="run-at" name="run_at" type="datetime-local" value=${run_at} /></div>
  </details>`;
}

function Foreseen({ job }) {
  const { queue } = job;
  const place = queue ? `It would be #${queue.position} in the queue` : job.message;
  return html`<div class="nudge foreseen" role="status">
    <strong>${place}${queue?.estimate_seconds == null ? "" : `, and start in ${queue.message}`}.</strong>
    ${queue?.upper_bound != null && html`<${Range} queue=${queue} thin />`}
    <ul>${job.waiting_on.map((reason) => html`<li>${reason.message}</li>`)}</ul>
    <span>Nothing was submitted.</span>
  </div>`;
}
