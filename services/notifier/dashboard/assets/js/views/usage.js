import { html } from "/assets/vendor/preact.js";
import { UTC_DAYS } from "../days.js";
import { Meter, Until } from "../parts.js";
import { usage } from "../state.js";
import { date, plural } from "../words.js";

/** How much of the day is used, and when the next one begins. */
export function Usage() {
  const day = usage.value;
  if (day === null) return "";
  const limit = day.jobs_used + day.jobs_remaining;
  return html`<section class="card after" aria-labelledby="usage-title">
    <div class="head"><h2 id="usage-title">Today</h2><span class="number soft">
      ${day.jobs_used} of ${plural(limit, "job")} used</span></div>
    <${Meter} used=${day.jobs_used} limit=${limit} label="Jobs of today" />
    <p class="soft">A new day begins <${Until} of=${day.daily_limit_resets_at} />, at ${date(day.daily_limit_resets_at)}. ${UTC_DAYS}.
      ${" "}${day.jobs_remaining > 0 ? "More jobs are taken too, and run on a later day." : "What you submit now runs then."}</p>
  </section>`;
}

/** The same in a few words. */
export function UsedToday() {
  const day = usage.value;
  if (day === null) return "";
  const limit = day.jobs_used + day.jobs_remaining;
  return html`<span class="used soft number" title=${`A new day begins at ${date(day.daily_limit_resets_at)}. ${UTC_DAYS}.`}>
    <${Meter} used=${day.jobs_used} limit=${limit} label="Jobs of today" />${day.jobs_used} of ${limit} today</span>`;
}
