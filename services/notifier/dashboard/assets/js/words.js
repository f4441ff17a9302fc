// Numbers, moments, states and events as people read them. Pure.

const MINUTE = 60,
  HOUR = 3600,
  DAY = 86400;

export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** 45 seconds, 17 minutes, 2 h 05 min. */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return whole || seconds <= 0 ? plural(whole, "second") : "less than a second";
  if (whole < 90 * MINUTE) return plural(Math.round(whole / MINUTE), "minute");
  if (whole < 2 * DAY) return hours(Math.round(whole / MINUTE));
  return plural(Math.round(whole / DAY), "day");
}

const hours = (minutes) => `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;

/** 4.2 s, 17 min, 2.1 h: for tables. */
export function short(seconds) {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * MINUTE) return `${Math.round(seconds / MINUTE)} min`;
  return `${(seconds / HOUR).toFixed(1)} h`;
}

const between = (from, until) => (new Date(until).getTime() - new Date(from).getTime()) / 1000;

/** How long from one moment to the other. */
export const lasted = (from, until) => short(Math.max(0, between(from, until)));

export function ago(moment, now = Date.now()) {
  const seconds = between(moment, now);
  return seconds < 5 ? "just now" : `${span(seconds)} ago`;
}

export function until(moment, now = Date.now()) {
  const seconds = between(now, moment);
  return seconds <= 0 ? "now" : `in ${span(seconds)}`;
}

export const clock = (moment) =>
  new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
export const minute = (moment) =>
  new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
export const date = (moment) =>
  new Date(moment).toLocaleString([], { dateStyle: "medium", timeStyle: "short", hour12: false });
export const shortTime = (moment) =>
  new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
export const shortDay = (moment) => new Date(moment).toLocaleDateString([], { month: "short", day: "numeric" });

/** 512 B, 3.4 KiB, 12 MiB. */
export function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB"];
  const step = size < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(size) / 10));
  const value = size / 1024 ** step;
  return `${step > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[step]}`;
}

export const percent = (share) => `${Math.round(share * 100)} %`;
export const tierWord = (tier) => (tier ?? "").replaceAll("_", " ");

const STATUS = {
  queued: "In the queue",
  scheduled: "Scheduled",
  waiting: "Waits for a phase",
  starting: "Starting",
  scaffold: "Setting up",
  code: "Writing code",
  deps: "Installing",
  checks: "Checking",
  running: "Running",
  awaiting_confirmation: "Asks you",
  ready: "Ready",
  failed: "Failed",
  cancelled: "Cancelled",
};
export const statusWord = (status) => STATUS[status] ?? status;

/** Why a job has another place than before. */
export function moveWords({ from, to, boosted }) {
  const by = Math.abs(to - from);
  if (to < from) return `${plural(by, "job")} ahead of it started or left`;
  if (boosted > 0) return `${plural(boosted, "boosted job")} put ahead of it`;
  return `${plural(by, "job")} of a higher priority, or moved by an operator, ahead of it`;
}

const WHOLE = /^The whole queue is paused/; // said once, above the list

/** The pause that holds a job, in words; null where none does. */
export function pauseWords({ waiting_on = [] }) {
  const pause = waiting_on.find(({ reason }) => reason === "paused");
  return pause ? pause.message.replace(WHOLE, "Paused") : null;
}

/** When a queued job starts, or that nobody knows yet. */
export function startWords(queue) {
  if (!queue?.message) return "";
  return queue.estimate_seconds == null ? queue.message : `starts in ${queue.message}`;
}

const CHANGED = {
  operator: "by an operator",
  user: "by its user",
  aged: "since it had waited long",
  spaced: "to make room beside it: its place is the same",
};
export const GIVEN_BACK = {
  lost: "its worker was lost",
  drained: "its worker was stopped",
  provider: "its provider paused",
  outage: "of an outage",
  forced: "an operator freed its slot",
  retry: "its stage is tried again later",
};
const HISTORY = {
  queued: (event) =>
    ({
      submitted: "Entered the queue",
      released: "Its day has come: entered the queue",
      phase_ready: "The phase before it is ready: entered the queue",
    })[event.why] + ` at #${event.position_original}`,
  scheduled: (event) => `Scheduled for ${date(event.scheduled_for)}`,
  waiting: (event) => `Waits as phase ${event.phase} of a workflow`,
  dispatched: (event) => `Given to pool ${event.pool}, attempt ${event.attempt}`,
  started: (event) => `Claimed by ${event.worker}`,
  stage: (event) => `${event.stage}, iteration ${event.iteration}${event.restored ? " (kept from before)" : ""}`,
  awaiting_confirmation: ({ question, iterations_used: used }) =>
    question?.kind === "ask"
      ? `Asked: ${question.text}`
      : `Asked whether to go on after ${plural(used, "iteration")}${noted(question?.reason?.summary)}`,
  confirmation_reminder: (event) => `Asked again, ${plural(event.hours_left, "hour")} left`,
  confirmed: (event) => `${event.by} granted ${plural(event.batch, "more iteration", "more iterations")}`,
  answered: (event) => `${event.by} answered`,
  try_failed: ({ tried }) => `${tried.stage} failed (try ${tried.tries} of ${tried.most + 1}): ${tried.summary}`,
  given_back: (event) =>
    event.until
      ? `Slots given back: the stage is tried again from ${date(event.until)} on`
      : `Back to its old place, as ${GIVEN_BACK[event.reason] ?? event.reason}`,
  cancel_requested: (event) => `${event.by} asked for its end${noted(event.reason)}`,
  cancelled: (event) => `Cancelled by ${event.by}${noted(event.reason)}`,
  reprioritized: (event) => `From ${event.from} to ${event.to} ${CHANGED[event.reason] ?? ""}${noted(event.note)}`,
  moved: (event) => `Moved ${CHANGED[event.reason] ?? ""}${noted(event.note)}`,
  ready: (event) => `Ready after ${plural(event.iterations, "iteration")}, ${span(event.duration_s)}`,
  failed: (event) => `Failed: ${event.summary}`,
};
const noted = (text) => (text ? `: ${text}` : "");

/** One event of a job in words. */
export const eventWords = (event) => HISTORY[event.event]?.(event) ?? event.event.replaceAll("_", " ");
