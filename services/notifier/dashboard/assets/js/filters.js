// Which jobs a list shows, as its address has it: read from the query of a link, and asked for by the API's. Pure.

export const TABS = {
  "": "All",
  waiting: "Waiting",
  running: "Running",
  asks: "Ask you",
  ready: "Ready",
  failed: "Failed",
  cancelled: "Cancelled",
};
const OF_TAB = {
  waiting: ["queued", "scheduled", "waiting"],
  running: ["starting", "scaffold", "code", "deps", "checks", "running"],
  asks: ["awaiting_confirmation"],
  ready: ["ready"],
  failed: ["failed"],
  cancelled: ["cancelled"],
};
export const SORTS = { newest: "Newest first", oldest: "Oldest first", updated: "Last changed", priority: "Priority" };
export const OWN_TIME = "own"; // from and to moments that the address names
export const TIMES = {
  hour: "Last hour",
  day: "Last 24 hours",
  week: "Last 7 days",
  month: "Last 30 days",
  [OWN_TIME]: "From … to …",
};
const SECONDS = { hour: 3600, day: 86_400, week: 7 * 86_400, month: 30 * 86_400 };
export const NAMED = ["project", "pipeline", "pool", "label", "user"];
const MOST_TEXT = 200; // as many letters as the API takes

/** The filters of a link; what makes no sense there is as if it were not. */
export function filtersOf(query) {
  const told = Object.fromEntries(NAMED.map((name) => [name, query[name] ?? ""]));
  const [since, until] = [momentOf(query.since), momentOf(query.until)];
  const time = since || until ? OWN_TIME : query.time in TIMES ? query.time : "";
  return {
    ...told,
    show: query.show in OF_TAB ? query.show : "",
    q: (query.q ?? "").slice(0, MOST_TEXT),
    time,
    since,
    until,
    sort: query.sort in SORTS && query.sort !== "newest" ? query.sort : "",
  };
}

export const isFiltered = ({ sort, ...filters }) => Object.values(filters).some(Boolean);

/** How the API is asked for them. `owner`: whose alone, where it is not everybody's. */
export function asked(filters, { owner = "", now = Date.now() } = {}) {
  const query = new URLSearchParams((OF_TAB[filters.show] ?? []).map((status) => ["status", status]));
  const told = { q: filters.q.trim(), ...named(filters), sort: filters.sort };
  if (owner) told.user = owner;
  if (filters.time in SECONDS) told.since = new Date(now - 1000 * SECONDS[filters.time]).toISOString();
  else Object.assign(told, { since: filters.since, until: filters.until });
  for (const [name, value] of Object.entries(told)) if (value) query.set(name, value);
  return query;
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/; // of UTC, so that a link means the same everywhere
const momentOf = (text = "") => (MOMENT.test(text) && !Number.isNaN(Date.parse(text)) ? text : "");

/** What an input of date and time has of the browser's zone, as a moment of the address; and the way back. */
export const momentFrom = (local) => (local ? `${new Date(local).toISOString().slice(0, 16)}Z` : "");
export function localOf(moment) {
  const at = new Date(moment || Number.NaN);
  return Number.isNaN(at.getTime()) ? "" : new Date(at - 60_000 * at.getTimezoneOffset()).toISOString().slice(0, 16);
}

const named = (filters) => Object.fromEntries(NAMED.map((name) => [name, filters[name]]));

/** How many jobs each tab has, by how many each status has. */
export function countsOfTabs(statuses) {
  const all = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  const of = (tab) => OF_TAB[tab].reduce((sum, status) => sum + (statuses[status] ?? 0), 0);
  return { "": all, ...Object.fromEntries(Object.keys(OF_TAB).map((tab) => [tab, of(tab)])) };
}
