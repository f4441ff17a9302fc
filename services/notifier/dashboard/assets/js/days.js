// Days and the one zone of all times of the page, said once. Pure.

const DAY_MS = 86_400_000;
const dayOf = (moment) => new Date(moment).toLocaleDateString("en-CA"); // year-month-day, of the browser's zone

/** Today, Yesterday, or which day. */
export function dayWords(moment, now = Date.now()) {
  const day = dayOf(moment);
  if (day === dayOf(now)) return "Today";
  if (day === dayOf(new Date(now).getTime() - DAY_MS)) return "Yesterday";
  const year = new Date(moment).getFullYear() === new Date(now).getFullYear() ? {} : { year: "numeric" };
  return new Date(moment).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", ...year });
}

/** The jobs in their order, in groups of one day each: [{day, jobs}]. */
export function byDay(jobs, momentOf, now = Date.now()) {
  const groups = [];
  for (const job of jobs) {
    const day = dayWords(momentOf(job), now);
    if (groups.at(-1)?.day !== day) groups.push({ day, jobs: [] });
    groups.at(-1).jobs.push(job);
  }
  return groups;
}

/** UTC+1: how far the browser's clock is from UTC at that moment. */
export function offsetWords(now = new Date()) {
  const minutes = -new Date(now).getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return minutes ? `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}` : "UTC";
}

/** Europe/Berlin (UTC+1): the zone that every time of the page is in. */
export function zoneWords(now = new Date(), zone = Intl.DateTimeFormat().resolvedOptions().timeZone) {
  return zone === "UTC" || zone === "Etc/UTC" ? "UTC" : `${zone} (${offsetWords(now)})`;
}

/** Said where a day is a user's, not the reader's: quotas are. */
export const UTC_DAYS = "Days are counted in UTC";
