import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { usePoll } from "../feed.js";
import { Empty, Late, Looking, Meter, say, sayFault, Search } from "../parts.js";
import { titleOf } from "../titles.js";
import { plural, short } from "../words.js";
import { JobName, useTitles } from "./job_name.js";
import { Line } from "./line.js";
import { Pause, Paused } from "./pausing.js";

const NAMED = 3; // of those that run, as high as the other figures

/** Every job in order. What the operator holds is shown where it would be put; the server says where it is. */
export function Queue() {
  const { value, fault } = usePoll("/queue", 1000);
  const workers = usePoll("/workers", 3000);
  const queue = useSignal(null); // what is shown: not changed under the operator's hand
  const held = useSignal(null); // {id, at, lifted}: the job that is being moved, and the line it would come before
  const told = useSignal(""),
    wanted = useSignal("");
  useTitles((workers.value ?? []).flatMap((worker) => worker.jobs));
  useEffect(() => {
    if (value && held.value === null) queue.value = value;
  }, [value, held.value]);
  if (queue.value === null) return html`<${Looking} fault=${fault} />`;
  const all = queue.value.jobs ?? [];
  const lines = all.map((line, n) => ({ ...line, n })).filter((line) => fits(line, wanted.value));
  const drop = async () => {
    const move = held.value,
      body = move && orderOf(lines, move);
    held.value = null;
    if (!body) return;
    await send("POST", "/queue/move", body).then(() => say("Moved."), sayFault);
    told.value = `Job put ${body.before ? "before" : "after"} ${body.before ?? body.after}.`;
  };
  return html`<section class="stack" aria-labelledby="queue-title">
    <div class="head"><h1 class="title" id="queue-title">Queue</h1><div class="row fit">
      <${Search} id="queue-search" label="Search the queue" placeholder="Title, user, project" wanted=${wanted} />
      <${Pause} /></div></div>
    <${Late} fault=${fault} />
    <${Paused} all=${queue.value.paused} />
    <${Tiles} queue=${queue.value} lines=${all} workers=${workers.value ?? []} />
    <p class="visually-hidden" role="status" aria-live="assertive">${told.value}</p>
    ${
      lines.length === 0
        ? html`<${Nobody} found=${all.length === 0} />`
        : html`<p class="soft" id="queue-help">Drag a job by its handle. By keyboard: focus the handle, space takes it up,
          the arrows move it, space puts it down, Escape lets it go.</p>
        <div class="card queue-card"><table class="queue" aria-labelledby="queue-title" aria-describedby="queue-help">
          <thead><tr><th class="c-grip"><span class="visually-hidden">Move</span></th><th class="c-where">#</th>
            <th class="c-class">Priority</th><th class="c-job">Job</th><th class="c-user">User</th>
            <th class="c-project">Project</th><th class="c-waits number">Waits</th>
            <th class="c-start number">Starts in</th><th class="c-why">Why it waits</th><th class="c-acts">
            <span class="visually-hidden">Acts</span></th></tr></thead>
          <tbody>
            ${lines.map((line, n) => html`<${Line} key=${line.job_id} ...${{ line, n, lines, held, drop, told }} />`)}
          </tbody>
        </table></div>`
    }
  </section>`;
}

function Nobody({ found }) {
  return found
    ? html`<${Empty} title="Nobody waits">Whatever is submitted now starts as soon as a worker has a free slot.</>`
    : html`<${Empty} title="No such job waits">No title, user, project, label or id of those that wait has this in it.</>`;
}

function fits(line, wanted) {
  const { user_id, project_id, job_id, labels } = line;
  const text = wanted.trim().toLowerCase();
  return (
    !text ||
    [titleOf(line), user_id, project_id, job_id, ...Object.entries(labels).map((pair) => pair.join("="))].some((name) =>
      name.toLowerCase().includes(text),
    )
  );
}

/** Where a held job goes: before the line it stands at, or after the last. */
export function orderOf(lines, { id, at }) {
  const others = lines.filter((line) => line.job_id !== id);
  const from = lines.findIndex((line) => line.job_id === id);
  if (from === at || others.length === 0) return null;
  return at < others.length ? { job_id: id, before: others[at].job_id } : { job_id: id, after: others.at(-1).job_id };
}

function Tiles({ queue, lines, workers }) {
  const slots = workers.reduce((sum, worker) => sum + (worker.draining ? 0 : worker.slots), 0);
  const running = workers.flatMap((worker) => worker.jobs);
  const oldest = lines.map((line) => Date.parse(line.queued_at)).reduce((one, other) => Math.min(one, other), Infinity);
  return html`<div class="tiles">
    <div class="tile"><span class="label">Waiting</span><span class="figure">${queue.length} <small>of ${queue.cap}
      </small></span><${Meter} used=${queue.length} limit=${queue.cap} label="Jobs in the queue" /></div>
    <div class="tile"><span class="label">Running</span><span class="figure">
      ${running.length} <small>of ${plural(slots, "slot")}</small></span>
      <${Meter} used=${running.length} limit=${slots} label="Slots of all workers" /></div>
    <div class="tile"><span class="label">Longest wait</span><span class="figure">
      ${lines.length ? short((Date.now() - oldest) / 1000) : "none"}</span></div>
    <div class="tile"><span class="label">Runs now</span>${
      running.length
        ? html`<ul>
      ${running.slice(0, NAMED).map((id) => html`<li key=${id}><${JobName} id=${id} /></li>`)}
      ${running.length > NAMED ? html`<li class="soft">and ${running.length - NAMED} more</li>` : ""}
      </ul>`
        : html`<span class="soft">Nothing</span>`
    }</div>
  </div>`;
}
