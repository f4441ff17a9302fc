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
export const TIMES = { hour: "Last hour", day: "Last 24 hours", week: "Last 7 days", month: "Last 30 days" };
const SECONDS = { hour: 3600, day: 86_400, week: 7 * 86_400, month: 30 * 86_400 };
export const NAMED = ["project", "pipeline", "pool", "label", "user"];
const MOST_TEXT = 200; // as many letters as the API takes

/** The filters of a link; what makes no sense there is as if it were not. */
export function filtersOf(query) {
  const told = Object.fromEntries(NAMED.map((name) => [name, query[name] ?? ""]));
  return {
    ...told,
    show: query.show in OF_TAB ? query.show : "",
    q: (query.q ?? "").slice(0, MOST_TEXT),
    time: query.time in TIMES ? query.time : "",
    sort: query.sort in SORTS && query.sort !== "newest" ? query.sort : "",
  };
}

export const isFiltered = ({ sort, ...filters }) => Object.values(filters).some(Boolean);

/** How the API is asked for them. `owner`: whose alone, where it is not everybody's. */
export function asked(filters, { owner = "", now = Date.now() } = {}) {
  const query = new URLSearchParams((OF_TAB[filters.show] ?? []).map((status) => ["status", status]));
  const told = { q: filters.q.trim(), ...named(filters), sort: filters.sort };
  if (owner) told.user = owner;
  if (filters.time) told.since = new Date(now - 1000 * SECONDS[filters.time]).toISOString();
  for (const [name, value] of Object.entries(told)) if (value) query.set(name, value);
  return query;
}

const named = (filters) => Object.fromEntries(NAMED.map((name) => [name, filters[name]]));

/** How many jobs each tab has, by how many each status has. */
export function countsOfTabs(statuses) {
  const all = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  const of = (tab) => OF_TAB[tab].reduce((sum, status) => sum + (statuses[status] ?? 0), 0);
  return { "": all, ...Object.fromEntries(Object.keys(OF_TAB).map((tab) => [tab, of(tab)])) };
}
