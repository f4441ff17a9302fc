// What kept a job in the queue, as long as the page has watched. The log says when it waited; by what is known only of
// the moment that it is asked for, and from when on, where the server says since when. Pure.

const KEPT = 50;
const NOTHING = new Set(["behind", "room"]); // others come first: that is what a queue is
const PAUSES = new Set(["paused", "provider_paused"]);

/** [{key, words, kind, from, until}], the newest last and perhaps open: those there were, and what `job` says now. */
export function holdsAfter(holds = [], { status, waiting_on = [] }, at) {
  const by = status === "queued" ? waiting_on.find(({ reason }) => !NOTHING.has(reason)) : undefined;
  const key = by ? `${by.reason} ${by.group ?? ""}` : "";
  const last = holds.at(-1);
  const open = last?.until === null ? last : null;
  if ((open?.key ?? "") === key) return open && open.words !== by.message ? [...holds.slice(0, -1), { ...open, words: by.message }] : holds;
  const ended = open ? [...holds.slice(0, -1), { ...open, until: at }] : holds;
  if (!by) return ended;
  const since = by.since ? Math.min(at, Date.parse(by.since)) : at;
  const hold = { key, words: by.message, kind: PAUSES.has(by.reason) ? "pause" : "held", from: since, until: null };
  return [...ended, { ...hold, from: Math.max(since, ended.at(-1)?.until ?? 0) }].slice(-KEPT);
}

/** A wait in the queue as pieces: by what it was kept as far as that is known, and the rest as it is. */
export function piecesOf(part, holds) {
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
