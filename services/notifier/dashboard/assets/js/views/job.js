import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { announce } from "../announce.js";
import { download, get, Refusal, send } from "../api.js";
import { tokensOf } from "../iterations.js";
import { keep } from "../feed.js";
import { Ago, At, Badge, Looking, Mark, Missing, Priority, say, sayFault, StatusBadge } from "../parts.js";
import { jobLink, workflowLink } from "../route.js";
import { hasEnded, heard, linesAfter, newer } from "../state.js";
import { follow } from "../stream.js";
import { titleOf } from "../titles.js";
import { date, eventWords, plural, span, statusWord } from "../words.js";
import { Again } from "./again.js";
import { Copy } from "./copy.js";
import { Files } from "./files.js";
import { Log } from "./log.js";
import { Place } from "./place.js";
import { HowFar, Progress } from "./progress.js";
import { Question } from "./question.js";
import { Timeline } from "./timeline.js";
import { Usage } from "./usage.js";

const TOGETHER_MS = 80;
const TELLS_MORE = new Set(["ready", "failed", "cancelled", "awaiting_confirmation", "given_back", "confirmed", "answered"]);
const ENDS_A_WAIT = new Set(["queued", "dispatched", "cancelled", "failed"]);

/** One job: its own stream, its history, and what can be done about it. */
export function Job({ id }) {
  const { job, events, waits, lines, fault } = useJob(id);
  if (fault.value) return html`<${Missing} what="job" fault=${fault.value} />`;
  if (job.value === null) return html`<${Looking} />`;
  return html`<article class="stack">
    <${Head} job=${job.value} />
    <${Question} job=${job.value} />
    <${Done} job=${job.value} events=${events.value} />
    <div class="columns aside">
      <div class="stack"><${Failure} job=${job.value} /><${Place} job=${job.value} />
        <${HowFar} job=${job.value} />
        <${Files} job=${job.value} /><${Timeline} job=${job.value} events=${events.value}
          waits=${waits.value} lines=${lines.value} />
        <${Progress} job=${job.value} events=${events.value} /><${Log} job=${job.value} lines=${lines.value} /></div>
      <div class="stack"><${Facts} job=${job.value} events=${events.value} /><${Input} job=${job.value} />
        <${History} events=${events.value} /><${Usage} /></div>
    </div>
  </article>`;
}

/** What is known of the job: asked for once, then heard. What comes within a moment is shown at once. */
function useJob(id) {
  const job = useSignal(null),
    events = useSignal([]),
    waits = useSignal([]),
    lines = useSignal([]),
    fault = useSignal(null);
  useEffect(() => {
    let waiting = [],
      timer = 0;
    const refresh = async () => (events.value = await get(`/jobs/${id}/events`).catch(() => events.value));
    const lookBack = () => get(`/jobs/${id}/waits`).then((told) => (waits.value = told.waits), () => {});
    const renew = async () => {
      const fresh = await get(`/jobs/${id}`).catch(() => null);
      if (fresh) keep((job.value = newer(job.value, fresh)));
    };
    const show = () => {
      const batch = waiting;
      [waiting, timer] = [[], 0];
      lines.value = linesAfter(lines.value, batch);
      const before = job.value;
      job.value = batch.reduce((now, { kind, data }) => heard(now, kind, data), before);
      const told = batch.filter(({ kind }) => kind === "status").map(({ data }) => data);
      if (told.length) events.value = [...events.value, ...told];
      const anew = batch.some(({ kind }) => kind === "snapshot");
      if (anew || job.value?.moves !== before?.moves) refresh(); // somebody may have moved it
      if (anew || heldBy(job.value) !== heldBy(before) || told.some(({ event }) => ENDS_A_WAIT.has(event))) lookBack();
      if (before && job.value.status !== before.status) announce("this job", statusWord(job.value.status));
      if (told.some(({ event }) => TELLS_MORE.has(event))) renew().then(refresh);
    };
    get(`/jobs/${id}`).then(
      (found) => ((job.value ??= newer(null, found)), refresh(), lookBack()),
      (problem) => problem instanceof Refusal && (fault.value = problem), // else the stream tells, once it is there
    );
    const hear = (kind, data) => {
      waiting.push({ kind, data });
      timer ||= setTimeout(show, TOGETHER_MS);
    };
    const stop = follow(`/jobs/${id}/stream`, hear, { lines: true });
    return () => (stop(), clearTimeout(timer));
  }, [id]);
  return { job, events, waits, lines, fault };
}

/** What holds it now, the first of it. */
function heldBy(job) {
  const first = job?.waiting_on?.[0];
  return first && `${first.reason} ${first.group ?? ""}`;
}

const result = (job) => download(`/jobs/${job.id}/result`, `${job.id}.tar.gz`).catch(sayFault);

function Head({ job }) {
  const asks = useSignal(false);
  const act = (path, done) => () => send("POST", `/jobs/${job.id}/${path}`, {}).then(done, sayFault);
  const again = act("retry", (fresh) => {
    keep(fresh);
    location.hash = jobLink(fresh.id);
    say("Submitted again, with the work its finished stages left.");
  });
  const cancel = act("cancel", () => say("It will end in a moment."));
  const goesOn = !hasEnded(job) && job.status !== "awaiting_confirmation"; // the question has a button of its own
  return html`<header class="stack tight">
    <p class="soft row"><a href="#/jobs">← Your jobs</a>
      ${job.workflow && html`<span aria-hidden="true">/</span><a href=${workflowLink(job.workflow)}>Its workflow</a>`}</p>
    <div class="job-head">
      <${Mark} job=${job} large />
      <div class="stack tight"><h1 class="title">${titleOf(job)}</h1><div class="row"><${StatusBadge} job=${job} />
        <${Priority} of=${job.priority} /><span class="soft">${job.project_id} · <${Ago} of=${job.created_at} /></span>
        </div></div>
      <div class="row acts">
        ${["failed", "cancelled"].includes(job.status) && html`<button onClick=${again}>Submit again</button>`}
        ${hasEnded(job) && job.attempt > 0 && html`<button class="quiet" onClick=${() => (asks.value = true)}>Run again from…</button>`}
        ${goesOn && html`<button class="quiet danger" onClick=${cancel}>Cancel</button>`}
      </div>
    </div>
    ${asks.value && html`<${Again} job=${job} close=${() => (asks.value = false)} />`}
  </header>`;
}

/** It ended well: what there is to take. */
function Done({ job, events }) {
  if (job.status !== "ready") return "";
  const end = events.findLast((event) => event.event === "ready");
  return html`<section class="result" aria-label="The result" role="group">
    <p><strong>Ready</strong>
      ${end ? ` after ${span(end.duration_s)}` : ""}, in ${plural(job.iterations.used, "iteration")}.
      ${" "}The result is a .tar.gz with everything in it.</p>
    ${job.result_url && html`<button onClick=${() => result(job)}>Download the result</button>`}
  </section>`;
}

function Failure({ job }) {
  if (!job.error) return "";
  return html`<section class="card error" aria-labelledby="error-title">
    <h2 id="error-title">What went wrong</h2>
    <p class="wrong">${job.error.summary}</p>
    ${
      job.error.detail &&
      html`<details><summary>Details</summary><pre tabindex="0">${job.error.detail}</pre>
      </details>`
    }
    <p class="soft row">Debug id <code>${job.error.debug_id}</code>
      <${Copy} of=${job.error.debug_id} label="Copy the debug id" look="bare">Copy</>
      </p>
  </section>`;
}

function Facts({ job, events }) {
  const { retry_of: before, retry_from: from } = events[0]?.submission ?? {};
  const labels = Object.entries(job.labels ?? {});
  return html`<section class="card" aria-labelledby="facts-title">
    <h2 id="facts-title">About</h2>
    <dl class="facts">
      <dt>Job</dt><dd><code>${job.id}</code> <${Copy} of=${job.id} label=${`Copy the job ${job.id}`} /></dd>
      <dt>Project</dt><dd>${job.project_id}</dd>
      <dt>Pipeline</dt><dd>${job.pipeline}, pool ${job.pool}</dd>
      <dt>Submitted</dt><dd>${date(job.created_at)}</dd>
      ${
        before &&
        html`<dt>Runs again</dt><dd><a href=${jobLink(before)}><code>${before}</code></a>${from ? `, from ${from}` : ""}
        ${" "}<${Copy} of=${before} label=${`Copy the job ${before}`} /></dd>`
      }
      <dt>Iterations</dt><dd>${job.iterations.used} used, ${job.iterations.cap - job.iterations.used} left</dd>
      ${
        job.attempt > 0 &&
        html`<dt>Attempt</dt><dd>${job.attempt}
        ${" "}<${Copy} of=${`${job.id}:${job.attempt}`} label=${`Copy the attempt ${job.id}:${job.attempt}`} /></dd>`
      }
      <${Tokens} events=${events} />
      ${job.workflow && html`<dt>Workflow</dt><dd><a href=${workflowLink(job.workflow)}><code>${job.workflow}</code></a>
        ${" "}<${Copy} of=${job.workflow} label=${`Copy the workflow ${job.workflow}`} /></dd>`}
      ${
        labels.length > 0 &&
        html`<dt>Labels</dt><dd class="chips">
        ${labels.map(([name, value]) => html`<span class="badge"><span class="cut">${name}=${value}</span></span>`)}
        </dd>`
      }
      <dt>Trace</dt><dd><${Trace} job=${job} /></dd>
    </dl>
  </section>`;
}

/** What its stages have asked of models. */
function Tokens({ events }) {
  const stages = tokensOf(events);
  const count = (number) => number.toLocaleString();
  return stages.length > 0 && html`<dt>Tokens</dt>
    <dd>${stages.map(([stage, { input, output }]) => html`<div>${stage}: ${count(input)} in, ${count(output)} out</div>`)}</dd>`;
}

function Trace({ job }) {
  const id = html`<code>${job.debug_id}</code>`;
  const shown = job.trace_url ? html`<a href=${job.trace_url} target="_blank" rel="noopener noreferrer">${id}</a>` : id;
  return html`${shown} <${Copy} of=${job.debug_id} label=${`Copy the trace ${job.debug_id}`} />`;
}

/** What it was made from, asked for when somebody wants to see it. */
function Input({ job }) {
  const text = useSignal("");
  const look = async ({ target }) => {
    if (!target.open || text.value) return;
    const told = (input) => (typeof input.prompt === "string" ? input.prompt : JSON.stringify(input, null, 2));
    text.value = await get(`/jobs/${job.id}/input`).then(told, (problem) => problem.message);
  };
  return html`<details class="card" onToggle=${look}><summary>Input</summary><pre tabindex="0">${text.value}</pre>
  </details>`;
}

function History({ events }) {
  if (events.length === 0) return "";
  return html`<details class="card"><summary>History <${Badge}>${events.length}</></summary>
    <ol class="history">${events.map(
      (event) => html`<li key=${event.seq ?? event.at + event.event}>
      <${At} of=${event.at} /><span>${eventWords(event)}</span></li>`,
    )}</ol>
  </details>`;
}
