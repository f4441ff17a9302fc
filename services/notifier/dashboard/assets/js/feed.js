// Keeps the signals of `state` in step with the server: one stream of all of one's jobs, and lists asked for again.

import { computed, signal, useEffect, useSignal } from "/assets/vendor/preact.js";
import { announce } from "./announce.js";
import { get, jobsOf, read } from "./api.js";
import { afterAll, heard, jobs, newer, usage, withJob } from "./state.js";
import { follow } from "./stream.js";
import { titleOf } from "./titles.js";
import { statusWord } from "./words.js";

const TOGETHER_MS = 80; // what is heard within it is shown at once, however much it is
const LOOK_AGAIN_MS = 250;
const ONE_BY_ONE = 4;
const BEHIND_MS = 2_000;
const UNASKED = { value: null, behind: "", fault: null };
const TELLS_MORE = new Set(["ready", "failed", "cancelled", "awaiting_confirmation", "scheduled"]);
const SPOKEN = new Set(["ready", "failed", "awaiting_confirmation"]);

export const now = signal(Date.now()); // what says how long ago something was, reads this
setInterval(() => document.hidden || (now.value = Date.now()), 5_000);

/** The latest moment at which any of the jobs may start: the ranges in a list share its scale, so that they compare. */
export const horizon = computed(() =>
  Math.max(1, ...[...jobs.value.values()].map((job) => job.queue?.upper_bound ?? 0)),
);

export const stirred = signal(0); // counts what may have changed which jobs are in a list

let events = [],
  showing = 0,
  looking = 0;
const due = new Set(); // jobs of which more is to be known than the stream says

export function keep(job) {
  jobs.value = withJob(jobs.value, newer(jobs.value.get(job.id), job));
  usage.value = job.usage;
}

/** Follow all of one's jobs; gives the function that stops it. */
export function followAll() {
  return follow("/stream", (kind, data) => {
    events.push({ kind, data });
    showing ||= setTimeout(show, TOGETHER_MS);
  });
}

function show() {
  const batch = events;
  events = [];
  showing = 0;
  let known = jobs.value;
  for (const { data } of batch.filter(({ kind }) => kind === "snapshot")) {
    for (const job of data.jobs) known = withJob(known, heard(known.get(job.id), "snapshot", job));
    lookAtUsage();
  }
  const after = afterAll(known, batch);
  jobs.value = after.jobs;
  for (const id of after.unknown) lookSoon(id);
  for (const { kind, data } of batch) if (kind === "status") tell(data);
  if (batch.some(({ kind }) => kind !== "position")) stirred.value += 1;
}

/** Of a job that has ended the stream does not know its user's day. */
const lookAtUsage = () =>
  get("/usage").then(
    (day) => (usage.value = day),
    () => {},
  );

function tell(data) {
  if (TELLS_MORE.has(data.event)) lookSoon(data.job_id);
  const job = jobs.value.get(data.job_id);
  if (job && SPOKEN.has(data.status)) announce(job.id, `${titleOf(job)}: ${statusWord(data.status)}`);
}

/** What an event does not say (usage, all of a new job) is asked for a moment later, of many jobs by one question. */
export function lookSoon(id) {
  due.add(id);
  looking ||= setTimeout(look, LOOK_AGAIN_MS);
}

async function look() {
  const ids = [...due];
  due.clear();
  try {
    const found =
      ids.length > ONE_BY_ONE
        ? await jobsOf(ids)
        : await Promise.all(ids.map((id) => get(`/jobs/${id}`)));
    for (const job of found) jobs.value = withJob(jobs.value, newer(jobs.value.get(job.id), job));
    if (found.length) usage.value = found[0].usage;
  } catch {
    // the stream goes on; the next event asks again
  }
  looking = 0;
  if (due.size) looking = setTimeout(look, LOOK_AGAIN_MS);
}

export function forgetAll() {
  clearTimeout(showing);
  clearTimeout(looking);
  showing = looking = 0;
  events = [];
  due.clear();
  jobs.value = new Map();
  usage.value = null;
}

/** What the path answers, asked again and again while the page is seen: {value, behind, fault}; the last answer stays.
 *  While the index catches up (`behind`) it is asked sooner. */
export function usePoll(path, everyMs) {
  const state = useSignal(UNASKED);
  useEffect(() => {
    let stopped = false,
      timer = 0;
    const round = async () => {
      if (!document.hidden) {
        const told = await read(path).then(
          (answer) => ({ ...answer, fault: null }),
          (fault) => ({ ...state.peek(), fault }),
        );
        if (!stopped) state.value = told;
      }
      if (!stopped) timer = setTimeout(round, state.peek().behind ? Math.min(everyMs, BEHIND_MS) : everyMs);
    };
    round();
    const seen = () => document.hidden || (clearTimeout(timer), round());
    document.addEventListener("visibilitychange", seen);
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path]);
  return state.value;
}
