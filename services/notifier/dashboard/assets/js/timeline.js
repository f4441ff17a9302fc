// A job's life as parts on lanes: its waits, each stage, questions. From its events, and of its waits in the queue from
// what held it then (`GET /jobs/<id>/waits`). Pure; `views/timeline.js` draws it.

import { stageNames } from "./state.js";
import { date, GIVEN_BACK, plural } from "./words.js";

const ENTERED = {
  submitted: "In the queue",
  released: "Its day has come: in the queue",
  phase_ready: "The phase before it is ready: in the queue",
};
const ENDED = { ready: "ready", failed: "failed", cancelled: "left" };
const NEARLY_ALL = 0.9;
const HELD = {
  paused: "pause",
  user_limit: "held",
  project_limit: "held",
  group_limit: "held",
  global_limit: "held",
  pool_full: "held",
  room: "held",
};
const MOMENTS = new Set(["reprioritized", "moved", "cancel_requested", "confirmation_reminder"]);

/** {from, until, lanes: [{name, parts}], attempts: [{number, at, worker}]}. A part is {kind, words, from, until,
 *  attempt, stage, iteration}; what has no end yet has the `until` null. `queue`: what held the job in this wait is told
 *  by `waits`, as far as the log has it. */
export function timelineOf(events, job, waits = []) {
  const told = { parts: [], attempts: [], open: null, stages: stageNames(job) };
  for (const event of events) if (!MOMENTS.has(event.event)) hear(told, event, Date.parse(event.at));
  const holds = waits.flatMap(holdOf);
  const parts = told.parts.flatMap((part) => (part.queue ? piecesOf(part, holds) : part)).map((part) => withNow(part, job)),
    { attempts } = told;
  const names = ["waits", ...told.stages, "asks"];
  const lanes = names.map((name) => ({ name, parts: parts.filter((part) => part.lane === name) }));
  return {
    from: parts[0]?.from ?? null,
    until: told.open || parts.length === 0 ? null : Math.max(...parts.map(({ until }) => until)),
    lanes: lanes.filter((lane) => lane.parts.length),
    attempts,
  };
}

const HEARD = {
  queued: (told, { why }, at) => enter(told, at, inQueue(ENTERED[why] ?? "In the queue")),
  scheduled: (told, event, at) => enter(told, at, inQueue(scheduledWords(event))),
  waiting: (told, _, at) => enter(told, at, wait("Waits for the phase before it")),
  dispatched: (told, { attempt }, at) => {
    told.attempts.push({ number: attempt, at, worker: "" });
    enter(told, at, { lane: "waits", kind: "way", words: "On its way to a worker", attempt });
  },
  started: (told, { stages, worker, attempt }, at) => {
    if (stages?.length) told.stages = stages.map(({ name }) => name);
    if (told.attempts.length) told.attempts.at(-1).worker = worker;
    enter(told, at, { lane: "waits", kind: "way", words: `Starting on ${worker}`, attempt });
  },
  stage: entered,
  try_failed: (told, { tried }, at) => {
    const part = told.open;
    if (!part) return;
    leave(told, at, "tried", `Try ${tried.tries} of ${tried.most + 1} failed: ${tried.summary}`);
    const again = Math.max(at, Date.parse(tried.again_at));
    told.parts.push({ ...part, kind: "pause", words: "Pause before the next try", from: at, until: again });
    enter(told, again, { ...part, kind: "run", words: `try ${tried.tries + 1} of ${tried.most + 1}` });
  },
  awaiting_confirmation: (told, event, at) => {
    if (event.question?.kind === "ask") leave(told, at, "left", "it asked, and begins again with the answer");
    else leave(told, at, "broken");
    enter(told, at, { lane: "asks", kind: "asks", words: event.question?.text ?? "Asked whether to go on" });
  },
  answered: (told, { by }, at) => answered(told, at, `${by} answered: waits for a place`),
  confirmed: (told, { by, batch }, at) => answered(told, at, `${by} granted ${batch} more: waits for a place`),
  given_back: (told, event, at) => {
    const why = GIVEN_BACK[event.reason] ?? event.reason;
    leave(told, at, "left", `broken off: ${why}`);
    const until = event.until ? `Pause until ${date(event.until)}: ` : event.provider ? `${event.provider} paused: ` : "Waits again: ";
    const paused = event.reason === "provider" || event.until;
    enter(told, at, paused ? { ...wait(until + why), kind: "pause" } : inQueue(until + why));
  },
};

function hear(told, event, at) {
  if (event.event in ENDED) end(told, event, at);
  else HEARD[event.event]?.(told, event, at);
}

const wait = (words) => ({ lane: "waits", kind: "wait", words });
const inQueue = (words) => ({ ...wait(words), queue: true });

/** What of the waits is known to have held it: by its own events there is more to say of the others. */
function holdOf({ reason, message, since, until }) {
  const kind = HELD[reason];
  return kind ? [{ kind, words: message, from: Date.parse(since), until: until ? Date.parse(until) : null }] : [];
}

/** A wait in the queue as pieces: by what held it, and the rest as it is. */
function piecesOf(part, holds) {
  const end = part.until ?? Infinity,
    pieces = [];
  let at = part.from;
  for (const { from, until, words, kind } of holds) {
    const begin = Math.max(at, from),
      over = Math.min(end, until ?? Infinity);
    if (over <= begin) continue;
    if (begin > at) pieces.push({ ...part, from: at, until: begin });
    pieces.push({ ...part, kind, words, from: begin, until: over === Infinity ? null : over, queue: false });
    at = over;
  }
  return at < end ? [...pieces, { ...part, from: at }] : pieces;
}

/** What it waits for now, where no record says so: a worker, a provider, those ahead of it. */
function withNow(part, { status, waiting_on: [now] = [] }) {
  const isNow = part.queue && part.until === null && status === "queued" && now;
  return isNow ? { ...part, words: `${part.words}. Now: ${now.message}` } : part;
}

/** It was asked for later, or the day that it was submitted on had no place left. */
function scheduledWords({ scheduled_for: until, submission }) {
  const asked = Date.parse(submission?.run_at ?? 0) >= Date.parse(until);
  return `${asked ? "Not before" : "The day's jobs were used: waits until"} ${date(until)}`;
}

function answered(told, at, words) {
  leave(told, at, "asks");
  enter(told, at, inQueue(words));
}

function entered(told, { stage, iteration, attempt, restored }, at) {
  if (told.open?.iteration < iteration) leave(told, at, "broken");
  if (!told.stages.includes(stage)) told.stages.push(stage);
  enter(told, at, { lane: stage, kind: restored ? "kept" : "run", words: restored ? "kept from before" : "", stage, iteration, attempt });
}

function enter(told, at, part) {
  leave(told, at);
  told.open = { words: "", ...part, from: at, until: null };
  told.parts.push(told.open);
}

/** What is open is over; a try that was not reached never was, and its pause ends here. */
function leave(told, at, kind, words) {
  const part = told.open;
  told.open = null;
  if (!part) return;
  if (part.from > at) {
    told.parts.splice(told.parts.indexOf(part), 1);
    if (told.parts.at(-1)?.until > at) told.parts.at(-1).until = at;
    return;
  }
  part.until = at;
  part.kind = kind ?? (part.kind === "run" ? "done" : part.kind);
  part.words = words || part.words;
}

function end(told, event, at) {
  const isLast = told.open?.stage && told.open.stage === told.stages.at(-1);
  const runs = told.open?.stage;
  const words = { ready: plural(event.iterations ?? 1, "iteration"), failed: event.summary, cancelled: "Cancelled" }[event.event];
  if (runs) leave(told, at, event.event === "failed" && isLast ? "broken" : ENDED[event.event], words);
  else leave(told, at);
}

/** What can be drawn: all of it, as number 0, or one attempt that is not nearly all of it. */
export function rangesOf({ from, until, attempts, lanes }, now) {
  const end = until ?? Math.max(now, from + 1000);
  const parts = lanes.flatMap((lane) => lane.parts);
  const ranges = attempts.map(({ number, at }) => {
    const own = parts.filter((part) => part.attempt === number);
    return { number, from: at, until: Math.max(at + 1000, ...own.map((part) => part.until ?? end)) };
  });
  const parted = ranges.filter((range) => range.until - range.from < NEARLY_ALL * (end - from));
  return [{ number: 0, from, until: end }, ...parted];
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const DAY_MS = 86_400_000;

/** The axis: from and until on round moments of the reader's clock, so that what is over stays where it is drawn. */
export function axisOf(from, until, most) {
  const step = 1000 * (STEPS.find((each) => until - from <= 1000 * each * most) ?? STEPS.at(-1));
  const shift = new Date(from).getTimezoneOffset() * 60_000;
  const first = Math.floor((from - shift) / step) * step + shift;
  const ticks = [];
  for (let at = first; at < until || ticks.length < 2; at += step) ticks.push(at);
  return { from: first, until: ticks.at(-1) + step, ticks, withDay: step >= DAY_MS, withSeconds: step < 60_000 };
}

/** The lines of the log that a part said, as numbers from 1; null where it said none. */
export function linesOf(part, lines) {
  if (!part.stage) return null;
  const until = part.until ?? Infinity;
  const isIts = ({ attempt, stage, ts }) =>
    stage === part.stage && (attempt ?? part.attempt) === part.attempt && Date.parse(ts) >= part.from && Date.parse(ts) <= until;
  const first = lines.findIndex(isIts);
  return first < 0 ? null : { from: first + 1, to: lines.findLastIndex(isIts) + 1 };
}
