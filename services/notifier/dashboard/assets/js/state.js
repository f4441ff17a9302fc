// What is known of one's jobs, and how each thing heard changes it. The functions below are pure; the signals hold.

import { signal } from "/assets/vendor/preact.js";

export const PRIORITIES = ["urgent", "high", "normal", "low", "background"];
export const ENDS = ["ready", "failed", "cancelled"];
export const RUNNING = ["starting", "scaffold", "code", "deps", "checks", "running"]; // the middle four: of `build`
export const hasEnded = (job) => ENDS.includes(job.status);
export const isRunning = (job) => RUNNING.includes(job.status);
export const isPaused = ({ waiting_on = [] }) => waiting_on.some(({ reason }) => reason === "paused");
export const stageNames = (job) => (job.stages ?? []).map(({ name }) => name);
export const stageTitle = (job) => job.stages?.find(({ name }) => name === job.stage)?.title ?? job.stage;
const MOVES_KEPT = 5;
const LINES_KEPT = 100_000; // as many as one attempt may say

export const jobs = signal(new Map()); // id → job, newest first
export const usage = signal(null);

/** The jobs with this one in it: in its place, or in front where it is new. */
export function withJob(known, job) {
  if (known.has(job.id)) return new Map(known).set(job.id, job);
  return new Map(
    [[job.id, job], ...known].sort(([, one], [, other]) => other.created_at.localeCompare(one.created_at)),
  );
}

/** The same for many at once. */
export function withJobs(known, found) {
  if (found.every((job) => known.has(job.id))) return new Map([...known, ...found.map((job) => [job.id, job])]);
  const all = new Map([...known, ...found.map((job) => [job.id, job])]);
  return new Map([...all].sort(([, one], [, other]) => other.created_at.localeCompare(one.created_at)));
}

/** What was fetched, unless more was heard meanwhile; what only this page knows of the job stays. */
export function newer(known, fetched) {
  if (!known) return { question: null, moves: [], ...fetched };
  if (Date.parse(known.updated_at) > Date.parse(fetched.updated_at)) return known;
  const trace_url = fetched.trace_url ?? known.trace_url; // a list does not tell it
  const question = fetched.question && { ...known.question, ...fetched.question };
  return { ...fetched, question, moves: known.moves, trace_url };
}

/** The jobs after a moment's events, and whose ids were heard for the first time. */
export function afterAll(known, events) {
  const jobs = new Map(known),
    unknown = new Set();
  for (const { kind, data } of events) {
    const job = jobs.get(data.job_id);
    if (job) jobs.set(job.id, heard(job, kind, data));
    else if (data.job_id) unknown.add(data.job_id);
  }
  return { jobs, unknown };
}

/** The job after what was heard of it. */
export function heard(job, kind, data, now = Date.now()) {
  switch (kind) {
    case "snapshot":
      return {
        question: job?.question ?? null,
        moves: job?.moves ?? [],
        ...data,
        trace_url: data.trace_url ?? job?.trace_url,
      };
    case "status":
      return afterStatus(job, data);
    case "position": {
      if (job.status !== "queued") return job; // told late: it has moved on
      const queue = data.queue ?? job.queue;
      return {
        ...job,
        queue,
        waiting_on: data.waiting_on,
        message: queue?.position_message ?? job.message,
        moves: movesAfter(job, queue, now),
      };
    }
    case "progress": // of another stage: told late
      return data.stage === job.stage ? { ...job, progress: { fraction: data.fraction, message: data.message } } : job;
    case "confirmation":
      return { ...job, question: { ...job.question, ...data } };
    default:
      return job;
  }
}

function movesAfter(job, queue, at) {
  const before = job.queue,
    moves = job.moves ?? [];
  if (!before || !queue || before.position === queue.position) return moves;
  const move = {
    at,
    from: before.position,
    to: queue.position,
    boosted: Math.max(0, queue.passed_by - before.passed_by),
  };
  return [...moves, move].slice(-MOVES_KEPT);
}

function afterStatus(job, data) {
  const moved = {
    ...job,
    status: data.status,
    attempt: data.attempt ?? job.attempt,
    updated_at: data.at ?? job.updated_at,
  };
  moved.stage = data.stage ?? (hasEnded(data) || data.event === "try_failed" ? job.stage : null);
  moved.stages = data.stages ?? job.stages; // the first stage of an attempt tells them all
  if (data.status !== "queued") Object.assign(moved, { queue: null, waiting_on: [], moves: [] });
  if (data.status !== "awaiting_confirmation") moved.question = null;
  else if (data.question) moved.question = { ...moved.question, ...data.question, expires_at: data.expires_at };
  if (data.event === "stage")
    moved.iterations = { ...job.iterations, used: Math.max(job.iterations.used, data.iteration) };
  if (data.event === "try_failed") moved.tried = data.tried;
  else if (data.event === "stage" && !data.restored && data.stage !== job.tried?.stage) moved.tried = null;
  if (moved.stage !== job.stage || moved.attempt !== job.attempt) moved.progress = null;
  if (data.until) moved.scheduled_for = data.until;
  if (data.event === "confirmed")
    moved.iterations = { ...job.iterations, confirmations: job.iterations.confirmations + 1 };
  if (data.event === "failed")
    moved.error = { summary: data.summary, detail: data.detail ?? "", debug_id: data.debug_id };
  if (data.event === "ready" && data.result) moved.result_url = `/v1/jobs/${job.id}/result`;
  moved.message = data.summary ?? messageOf(moved);
  return moved;
}

const MESSAGES = {
  starting: "Starting",
  ready: "Ready",
  cancelled: "Cancelled",
  queued: "In the queue",
};

function messageOf(job) {
  const under_way = isRunning(job) && stageTitle(job);
  if (!under_way) return MESSAGES[job.status] ?? job.message;
  const iteration = job.iterations.used > 1 ? `, iteration ${job.iterations.used}` : "";
  const { tried } = job;
  return under_way + iteration + (tried?.stage === job.stage ? `, try ${tried.tries + 1} of ${tried.most + 1}` : "");
}

/** The lines of a log after these events. After a `resync` it is told anew. */
export function linesAfter(lines, batch) {
  const anew = batch.findLastIndex(({ kind }) => kind === "resync");
  const came = batch.slice(anew + 1).filter(({ kind }) => kind === "log");
  if (anew < 0 && came.length === 0) return lines;
  return [...(anew < 0 ? lines : []), ...came.map(({ data }) => data)].slice(-LINES_KEPT);
}
