import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { get, send } from "../api.js";
import { stagesOf } from "../iterations.js";
import { keep } from "../feed.js";
import { Ago, Looking, Mark, Missing, Priority, say, sayFault, Stages, StatusBadge } from "../parts.js";
import { jobLink, workflowLink } from "../route.js";
import { hasEnded, isRunning, jobs, newer } from "../state.js";
import { isOwnTitle, titleOf } from "../titles.js";
import { lasted, pauseWords, plural, startWords } from "../words.js";
import { Copy } from "./copy.js";

const AGAIN_MS = 3_000;

/** A workflow: its phases in order, and what can be done about the whole. */
export function Workflow({ id }) {
  const told = useSignal(null),
    fault = useSignal(null);
  useEffect(() => {
    let timer = 0,
      left = false;
    const look = async () => {
      await get(`/workflows/${id}`).then(
        (found) => ((told.value = found), (fault.value = null)),
        (problem) => (fault.value = problem),
      );
      if (!left && !(told.value && hasEnded(told.value))) timer = setTimeout(look, AGAIN_MS);
    };
    look();
    return () => ((left = true), clearTimeout(timer));
  }, [id]);
  if (fault.value?.status === 404)
    return html`<${Missing} what="workflow" fault=${fault.value} />`;
  if (told.value === null) return html`<${Looking} fault=${fault.value} />`;
  const phases = told.value.phases.map((phase) => (jobs.value.has(phase.id) ? newer(jobs.value.get(phase.id), phase) : phase));
  return html`<article class="stack">
    <${Head} workflow=${told.value} phases=${phases} />
    <section class="card" aria-labelledby="phases-title">
      <div class="head"><h2 id="phases-title">Phases</h2><span class="soft">
        ${phases.filter(({ status }) => status === "ready").length} of ${phases.length} ready</span></div>
      <ol class="phases">${phases.map((phase, n) => html`<${Phase} key=${phase.id} phase=${phase} number=${n + 1} />`)}</ol>
    </section>
  </article>`;
}

function Head({ workflow, phases }) {
  const broken = phases.find(({ status }) => ["failed", "cancelled"].includes(status));
  const again = () =>
    send("POST", `/jobs/${broken.id}/retry`, {}).then((fresh) => {
      keep(fresh);
      location.hash = workflowLink(fresh.workflow);
      say("Submitted again from that phase on, as a workflow of its own.");
    }, sayFault);
  const cancel = () => send("POST", `/workflows/${workflow.id}/cancel`, {}).then(() => say("It will end in a moment."), sayFault);
  const first = phases[0];
  return html`<header class="stack tight">
    <p class="soft"><a href="#/jobs">← Your jobs</a></p>
    <div class="job-head">
      <${Mark} job=${{ ...first, status: workflow.status, queue: null }} large />
      <div class="stack tight"><h1 class="title">${titleOfAll(workflow, first, phases.length)}</h1>
        <div class="row"><${StatusBadge} job=${workflow} /><${Priority} of=${workflow.priority} />
          <span class="soft">${workflow.project_id} · <${Ago} of=${first.created_at} /></span></div>
        <div class="row"><code class="soft">${workflow.id}</code>
        <${Copy} of=${workflow.id} label=${`Copy the workflow ${workflow.id}`} /></div></div>
      <div class="row acts">
        ${broken && html`<button onClick=${again}>Submit again from phase ${phases.indexOf(broken) + 1}</button>`}
        ${!hasEnded(workflow) && html`<button class="quiet danger" onClick=${cancel}>Cancel all</button>`}
      </div>
    </div>
  </header>`;
}

function titleOfAll(workflow, first, count) {
  if (!isOwnTitle(first)) return `Workflow for ${workflow.project_id}`;
  return count > 1 ? `${first.title}, and ${plural(count - 1, "phase")} more` : first.title;
}

function Phase({ phase, number }) {
  const took = hasEnded(phase) && phase.attempt > 0 ? `ended after ${lasted(phase.created_at, phase.updated_at)}` : "";
  return html`<li class="phase ${phase.status}"><span class="phase-number" aria-hidden="true">${number}</span>
    <div class="body">
      <div class="head"><a class="what" href=${jobLink(phase.id)}>${titleOf(phase)}</a><${StatusBadge} job=${phase} /></div>
      ${isRunning(phase) && html`<${Stages} of=${stagesOf(phase)} />`}
      <p class="soft">${[pauseWords(phase) ?? phase.message, startWords(phase.queue), took].filter(Boolean).join(" · ")}</p>
      ${phase.error && html`<p class="wrong">${phase.error.summary}</p>`}
    </div></li>`;
}
