// The list that is open: which jobs, in which order. It is asked for again while it is seen; what came new is put in
// where nobody reads, and announced where somebody does, so that no row moves under an eye or a pointer.

import { effect, signal, useEffect } from "/assets/vendor/preact.js";
import { get, page } from "./api.js";
import { stirred } from "./feed.js";
import { asked, countsOfTabs } from "./filters.js";
import { claims, isOperator } from "./session.js";
import { jobs, newer, usage, withJobs } from "./state.js";

const PAGE = 50;
const AGAIN_MS = { everybody: 3_000, own: 20_000, behind: 2_000 };
const AT_LEAST_MS = 1_000; // between two questions, however much is heard
const STILL_MS = 5_000; // a pointer that has not moved for so long reads nothing
const SCROLLED_PX = 60;
const EMPTY = { ids: [], next: null, loaded: false, fault: null, behind: "", fresh: [], late: null };

export const list = signal(EMPTY);
export const tabs = signal(null); // how many jobs each has
export const chosen = signal(new Set()); // ids
const mine = new Set(); // submitted here: shown at once

/** A job of one's own that was just submitted. */
export const expect = (id) => mine.add(id);

/** The ids that are shown after the first page was asked for again, and those that wait to be shown. */
export function merged(shown, first, reading, mine = []) {
  const came = first.filter((id) => !shown.includes(id));
  if (!reading) return { ids: [...first, ...older(shown, first)], fresh: [] };
  const now = came.filter((id) => mine.includes(id));
  return { ids: [...now, ...shown], fresh: came.filter((id) => !mine.includes(id)) };
}

/** What was shown below the first page and still follows it. */
function older(shown, first) {
  const there = new Set(first);
  const last = shown.findLastIndex((id) => there.has(id));
  return last < 0 ? [] : shown.slice(last + 1);
}

let pointed = 0;
/** Somebody's pointer is over the list. */
export const pointing = () => (pointed = Date.now());

function isReading() {
  const focused = document.querySelector("#list")?.contains(document.activeElement);
  return focused || chosen.value.size > 0 || scrollY > SCROLLED_PX || Date.now() - pointed < STILL_MS;
}

export function learn(found) {
  const known = jobs.value;
  jobs.value = withJobs(
    known,
    found.map((job) => newer(known.get(job.id), job)),
  );
  const own = found.find((job) => job.user_id === claims.value?.sub);
  if (own) usage.value = own.usage;
}

/** Keep the list of these filters until they change; gives nothing: the signals hold it. */
export function useList(filters) {
  const key = JSON.stringify(filters);
  useEffect(() => {
    list.value = EMPTY;
    chosen.value = new Set();
    return kept(filters);
  }, [key]);
}

const ownerOf = () => (isOperator.value ? "" : (claims.value?.sub ?? ""));

function kept(filters) {
  let stopped = false,
    timer = 0,
    asking = false,
    last = 0;
  const ask = async () => {
    clearTimeout(timer);
    if (asking || stopped) return;
    asking = true;
    last = Date.now();
    if (!document.hidden) await round(filters, () => stopped);
    asking = false;
    if (!stopped) timer = setTimeout(ask, pauseOf(list.value));
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, Math.max(0, last + AT_LEAST_MS - Date.now()));
  };
  ask();
  const deaf = effect(() => void (stirred.value && soon()));
  const settling = setInterval(() => list.value.fresh.length && !isReading() && showFresh(), 1_000);
  document.addEventListener("visibilitychange", soon);
  return () => {
    stopped = true;
    clearTimeout(timer);
    clearInterval(settling);
    deaf();
    document.removeEventListener("visibilitychange", soon);
  };
}

function pauseOf({ behind, fault }) {
  if (behind || fault) return AGAIN_MS.behind;
  return isOperator.value ? AGAIN_MS.everybody : AGAIN_MS.own;
}

async function round(filters, isOver) {
  const query = asked(filters, { owner: ownerOf() });
  query.set("limit", PAGE);
  const every = asked({ ...filters, show: "", sort: "" }, { owner: ownerOf() });
  try {
    const [found, counted] = await Promise.all([page(`/jobs?${query}`), get(`/jobs/counts?${every}`)]);
    if (isOver()) return;
    learn(found.items);
    tabs.value = countsOfTabs(counted.counts.status);
    take(found);
  } catch (fault) {
    if (!isOver()) list.value = { ...list.value, fault };
  }
}

function take({ items, next, behind }) {
  const before = list.value;
  const first = items.map((job) => job.id);
  const { ids, fresh } = merged(before.ids, first, before.loaded && isReading(), [...mine]);
  const more = ids.length > first.length ? before.next : next;
  list.value = { ids, fresh, next: more, behind, loaded: true, fault: null, late: { first, next } };
}

/** Put in what was announced. */
export function showFresh() {
  const { ids, late, next } = list.value;
  const shown = merged(ids, late.first, false).ids;
  list.value = { ...list.value, ids: shown, fresh: [], next: shown.length > late.first.length ? next : late.next };
}

/** The page after the last one that is shown. */
export async function showOlder() {
  const before = list.value;
  try {
    const found = await page(before.next);
    learn(found.items);
    const known = new Set(list.value.ids);
    const came = found.items.map((job) => job.id).filter((id) => !known.has(id));
    list.value = { ...list.value, ids: [...list.value.ids, ...came], next: found.next };
  } catch (fault) {
    list.value = { ...list.value, fault };
  }
}
