import { html } from "/assets/vendor/preact.js";
import { usePoll } from "../feed.js";
import { Ago, Empty, Late, Looking, Priority } from "../parts.js";
import { PRIORITIES } from "../state.js";
import { date, percent, plural, short, tierWord } from "../words.js";
import { Charts } from "./charts.js";
import { Copy } from "./copy.js";
import { Refused } from "./refused.js";

/** How long jobs waited, how good the forecast was, what was refused, who did what. */
export function Insight() {
  const { value, fault } = usePoll("/queue/analytics", 5000);
  const audit = usePoll("/audit?limit=1000", 10_000);
  if (value === null) return html`<${Looking} fault=${fault} />`;
  return html`<section class="stack" aria-labelledby="insight-title">
    <div class="head"><h1 class="title" id="insight-title">Insight</h1>
      ${value.since && html`<span class="soft">since ${date(value.since)}</span>`}</div>
    <${Late} fault=${fault} />
    <${Tiles} told=${value} acts=${audit.value ?? []} />
    <${Charts} />
    <${Waits} waits=${value.waits} />
    <div class="columns halves"><${Forecast} rates=${[...value.forecast, ...(value.by_class ?? [])]} />
      <${Refused} refused=${value.refused ?? []} /></div>
    <${Audit} acts=${audit.value ?? []} />
  </section>`;
}

const sum = (rows, of) => rows.reduce((total, row) => total + of(row), 0);

function Tiles({ told, acts }) {
  const started = sum(told.waits, (row) => row.count),
    due = sum(
      told.forecast.filter((rate) => rate.tier),
      (rate) => rate.count,
    );
  const mean = started ? short(sum(told.waits, (row) => row.mean * row.count) / started) : "none";
  const hits = due
    ? percent(
        sum(
          told.forecast.filter((rate) => rate.tier),
          (rate) => rate.hit_rate * rate.count,
        ) / due,
      )
    : "none";
  return html`<div class="tiles">
    ${Object.entries({
      "Jobs started": started,
      "Mean wait": mean,
      "Forecasts inside their range": hits,
      "Refused, last 24 hours": sum(told.refused ?? [], (row) => row.count),
      "Acts, last 24 hours": acts.length,
    }).map(
      ([
        label,
        figure,
      ]) => html`<div class="tile"><span class="label">${label}</span><span class="figure">${figure}</span>
      </div>`,
    )}</div>`;
}

function Waits({ waits }) {
  const rows = [...waits].sort(
    (one, other) =>
      PRIORITIES.indexOf(one.priority) - PRIORITIES.indexOf(other.priority) || one.tier.localeCompare(other.tier),
  );
  const longest = Math.max(1, ...rows.map((row) => row.p99));
  return html`<section class="card" aria-labelledby="waits-title">
    <div class="head"><h2 id="waits-title">Waits by priority and tier</h2>
      <p class="soft">Until the first start. Filled: half of the jobs. Outlined: nine of ten. Line: 99 of 100.</p></div>
    ${
      rows.length === 0
        ? html`<${Empty}>No job has started yet.</>`
        : html`<div class="bars">
      ${rows.map((row) => html`<${Wait} key=${row.priority + row.tier} row=${row} longest=${longest} />`)}</div>`
    }
  </section>`;
}

function Wait({ row, longest }) {
  const at = (seconds) => (1000 * seconds) / longest;
  const parts = [
    `half within ${short(row.p50)}`,
    `nine of ten within ${short(row.p90)}`,
    `99 of 100 within ${short(row.p99)}`,
  ];
  const words = `${row.priority}, ${tierWord(row.tier)}: ${parts.join(", ")}, of ${plural(row.count, "job")}`;
  return html`<div class="bar-row">
    <span class="row"><${Priority} of=${row.priority} />${tierWord(row.tier)} <span class="soft">${row.count}</span>
      </span>
    <svg class="chart" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${words}>
      <path class="p99" d=${`M0 10H${at(row.p99)}`} /><rect class="p90" y="3" width=${at(row.p90)} height="14" />
      <rect class="p50" y="3" width=${at(row.p50)} height="14" /></svg>
    <span class="number soft">${short(row.p50)} · ${short(row.p90)} · ${short(row.p99)}</span>
  </div>`;
}

function Forecast({ rates }) {
  return html`<section class="card" aria-labelledby="forecast-title">
    <h2 id="forecast-title">Was the forecast right?</h2>
    <p class="soft">How often the real wait lay inside the range that was shown, and by how much it missed.</p>
    ${rates.length === 0 && html`<${Empty}>No forecast has come due yet.</>`}
    <div class="bars">${rates.map((rate) => html`<${Rate} key=${rate.tier ?? rate.priority} rate=${rate} />`)}</div>
  </section>`;
}

function Rate({ rate }) {
  const tier = rate.tier ? tierWord(rate.tier) : rate.priority ? `${rate.priority} class` : "all tiers",
    hits = percent(rate.hit_rate),
    error = short(rate.error);
  const words = `${tier}: ${hits} of ${plural(rate.count, "forecast")} inside the range, mean error ${error}`;
  return html`<div class="bar-row">
    <span>${tier} <span class="soft">${rate.count}</span></span>
    <svg class="chart" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${words}>
      <rect class="miss" y="3" width="1000" height="14" />
      <rect class="hit" y="3" width=${1000 * rate.hit_rate} height="14" /></svg>
    <span class="number soft">${hits} · ± ${error}</span></div>`;
}

function Audit({ acts }) {
  const rows = [...acts].sort((one, other) => other.seq - one.seq).slice(0, 100);
  return html`<section class="card" aria-labelledby="audit-title">
    <h2 id="audit-title">Who did what, last 24 hours</h2>
    ${
      rows.length === 0
        ? html`<${Empty}>Nobody did anything.</>`
        : html`<table class="cards"><thead><tr><th>When</th>
      <th>Who</th><th>What</th><th>Why</th></tr></thead><tbody>${rows.map(
        (act) => html`<tr key=${act.seq}><td data-name="When"><${Ago} of=${act.at} /></td><td data-name="Who">${act.by}
        </td><td data-name="What">${act.act.replaceAll("_", " ")} <code>${act.about}</code>
        ${act.about && html`<${Copy} of=${act.about} label=${`Copy ${act.about}`} />`} <span class="soft">
        ${detailsOf(act)}</span></td><td data-name="Why">${act.reason}</td></tr>`,
      )}</tbody></table>`
    }
  </section>`;
}

/** What an act says besides what it was done to. */
function detailsOf({ details = {} }) {
  const { from, to, limit, lease } = details;
  if (limit !== undefined) return `to ${plural(limit, "slot")}`;
  if (from !== to) return `from ${from} to ${to}`;
  return lease ?? "";
}
