import { effect, html, signal, useEffect, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { keep, stirred } from "../feed.js";
import { expect } from "../list.js";
import { close, Over } from "../opened.js";
import { Range, say, Wrong } from "../parts.js";
import { claims, token } from "../session.js";
import { PRIORITIES } from "../state.js";
import { plural, tierWord } from "../words.js";
import { Held } from "./pausing.js";
import { inputFrom, labels, lookAgain, offeredAs, SchemaFields } from "./schema_form.js";

const SAMPLES = [
  "A URL shortener with expiry",
  "A to-do list with due dates",
  "Statistics over a CSV file",
  "A rate limiter",
];
const REHEARSED = ["scaffold", "code", "deps", "checks"]; // the stages of `rehearsal`
const HIGHEST = { bootstrapper: "normal", partner: "high", cto_scale: "urgent" };
const EMPTY = {
  pipeline: "build",
  prompt: SAMPLES[0],
  project: "shop",
  priority: "normal",
  seconds: "6",
  failing: "0",
  lines: "40",
  fail_at: "",
  labels: "",
  run_at: "",
};
const draft = signal(EMPTY); // what is typed stays, whatever is drawn again meanwhile and wherever its writer goes
effect(() => void (token.value, (draft.value = EMPTY))); // and is nobody else's
let key = crypto.randomUUID(); // a submission that nobody answered is sent again under its own key

const INPUTS = {
  build: (told) => ({ input: { prompt: told.prompt } }), // its first line is the title
  rehearsal: (told) => ({
    input: {
      stages: { scaffold: 0.5, code: Number(told.seconds), deps: 0.5, checks: 1 },
      failing_cycles: Number(told.failing),
      log_lines: Number(told.lines),
      ...(told.fail_at ? { fail_at: told.fail_at } : {}),
    },
    title: [`Rehearsal of ${told.seconds} s`, Number(told.failing) && plural(Number(told.failing), "failing iteration")]
      .filter(Boolean)
      .join(", "),
  }),
};

/** What the form says, as the API takes it; labels are `key=value`, with commas between them. */
export function bodyOf(told) {
  const { name, pool, input_schema } = offeredAs(told.pipeline);
  const { input, title } = INPUTS[name]?.(told) ?? { input: inputFrom(input_schema, told) };
  const marks = Object.fromEntries(
    (told.labels ?? "")
      .split(",")
      .map((pair) => pair.trim())
      .filter(Boolean)
      .map((pair) => [pair.split("=")[0], pair.split("=").slice(1).join("=")]),
  );
  const runAt = told.run_at ? { run_at: new Date(told.run_at).toISOString() } : {};
  const more = { ...(title ? { title } : {}), ...(pool ? { pool } : {}), ...runAt };
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

/** What is built in has a form of its own; of any other pipeline it is made from the schema. */
function Input({ faults }) {
  const { name, input_schema } = offeredAs(draft.value.pipeline);
  if (name === "build") return html`<${Prompt} />`;
  return name === "rehearsal"
    ? html`<${Rehearsal} />`
    : html`<${SchemaFields} schema=${input_schema} typed=${draft.value} faults=${faults} />`;
}

function Prompt() {
  const take = (prompt) => () => (draft.value = { ...draft.value, prompt });
  const sample = (text) => html`<button type="button" class="quiet" onClick=${take(text)}>${text}</button>`;
  return html`<div>
    <label for="prompt">What should be built?</label>
    <textarea id="prompt" name="prompt" required maxlength="20000" value=${draft.value.prompt}></textarea>
    <div class="chips" role="group" aria-label="Examples">${SAMPLES.map(sample)}</div>
  </div>`;
}

function Rehearsal() {
  const { seconds, failing, lines, fail_at } = draft.value;
  return html`<p class="soft">A rehearsal goes through every stage and does nothing: for trying things out.</p>
    <div class="fields">
      <div><label for="seconds">Seconds of code</label>
        <input id="seconds" name="seconds" type="number" min="0" max="600" step="0.1" required value=${seconds} /></div>
      <div><label for="failing">Failing iterations</label>
        <input id="failing" name="failing" type="number" min="0" max="15" required value=${failing} /></div>
      <div><label for="lines">Log lines</label>
        <input id="lines" name="lines" type="number" min="0" max="5000" required value=${lines} /></div>
      <div><label for="fail-at">Breaks in</label>
        <select id="fail-at" name="fail_at" value=${fail_at}><option value="">no stage</option>
          ${REHEARSED.map((stage) => html`<option value=${stage}>${stage}</option>`)}</select></div>
    </div>`;
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
