// What the charts show, from the lines that the API has. Pure.

export const SPANS = { day: "Day", week: "Week", month: "Month" };
const HOURS = { day: 24, week: 7 * 24, month: 30 * 24 };
const STEP_S = { day: 1_800, week: 7_200, month: 28_800 }; // 48 to 90 points

/** Which figures are asked for; the beginning is that of a step, so that it is one question for a while. */
export function statsPath(span, now = Date.now()) {
  const step = STEP_S[span];
  const since = Math.floor((now - 3_600_000 * HOURS[span]) / (1000 * step)) * step;
  return `/stats?since=${encodeURIComponent(new Date(1000 * since).toISOString())}&step=${step}`;
}

const HOURLY = "an hour";
const PAUSED = "Given back as a provider had paused",
  CALLS = "Calls of models",
  TOKENS = "Tokens of models";
const BOTH_WAYS = ["tokens_input", "tokens_output"]; // what was cached is among the input

/** Each chart: its title, its unit, and its lines: [{label, values}]. Counts are told by the hour. */
export function chartsOf({ lines, step_s }) {
  const hourly = (values) => values.map((value) => (value === null ? null : (value * 3600) / step_s));
  const named = (name) => lines.filter((line) => line.name === name);
  const each = (name) => named(name).map(({ of, values }) => ({ label: of, values }));
  const eachHourly = (name) => named(name).map(({ of, values }) => ({ label: of, values: hourly(values) }));
  const whole = (name, label) => {
    const found = named(name);
    return found.length ? [{ label, values: hourly(added(found.map(({ values }) => values))) }] : [];
  };
  const plain = (name, label) => named(name).map(({ values }) => ({ label, values }));
  const taken = lines.filter(({ name }) => BOTH_WAYS.includes(name));
  const tokens = [...new Set(taken.map(({ of }) => of))].map((provider) => ({
    label: provider,
    values: hourly(added(taken.filter(({ of }) => of === provider).map(({ values }) => values))),
  }));
  return [
    { title: "Queued", unit: "jobs", lines: each("queued") },
    { title: "Running", unit: "jobs", lines: each("running") },
    { title: "Started and ended", unit: HOURLY, lines: [...whole("started", "started"), ...whole("ready", "ready")] },
    { title: "Failed and cancelled", unit: HOURLY, lines: [...whole("failed", "failed"), ...whole("cancelled", "cancelled")] },
    { title: "Waits until the start", unit: "seconds", lines: [...plain("wait_p90", "nine of ten"), ...plain("wait_p50", "half")] },
    { title: "Refused", unit: HOURLY, lines: whole("refused", "refused") },
    { title: PAUSED, unit: HOURLY, lines: eachHourly("provider_paused") },
    { title: CALLS, unit: HOURLY, lines: eachHourly("calls") },
    { title: TOKENS, unit: `in and out, ${HOURLY}`, lines: tokens },
  ].filter(({ title, lines: some }) => some.length > 0 || ![PAUSED, CALLS, TOKENS].includes(title));
}

/** One line of several: their sum, unknown where nobody knows any of it. */
export const added = ([first, ...rest]) =>
  first.map((value, n) =>
    rest.reduce((sum, values) => (sum === null && values[n] === null ? null : (sum ?? 0) + (values[n] ?? 0)), value),
  );

/** Which points of a line have none beside them: no stroke goes through those. */
export const alone = (values) =>
  values.flatMap((value, n) => (value != null && values[n - 1] == null && values[n + 1] == null ? [n] : []));

/** A line in words, for whoever does not see it. */
export function lineWords({ label, values }) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return `${label}: nothing`;
  return `${label}: now ${rounded(known.at(-1))}, at most ${rounded(Math.max(...known))}`;
}

export function rounded(value) {
  if (value === null || value === undefined) return "–";
  return value >= 10 ? Math.round(value).toLocaleString() : String(Number(value.toFixed(1)));
}
