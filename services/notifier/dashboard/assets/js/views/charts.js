import { html, useEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { alone, chartsOf, lineWords, rounded, SPANS, statsPath } from "../charts.js";
import { usePoll } from "../feed.js";
import { Behind, Empty, Late, Looking } from "../parts.js";
import { link, route } from "../route.js";
import { date, minute, short } from "../words.js";

const HEIGHT = 150;
const AGAIN_MS = 30_000;
const COLOURS = ["--accent", "--run", "--high", "--low", "--wrong", "--background"];
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** Figures over a day, a week or a month. Drawn by uPlot, which is fetched only here. */
export function Charts() {
  const span = route.value.query.span in SPANS ? route.value.query.span : "day";
  const { value, behind, fault } = usePoll(statsPath(span), AGAIN_MS);
  const drawn = useDrawing();
  return html`<section class="stack" aria-labelledby="charts-title">
    <div class="head"><h2 class="title" id="charts-title">Over time</h2><nav class="tabs" aria-label="How long">
      ${Object.entries(SPANS).map(
        ([name, words]) => html`<a href=${link("insight", { span: name === "day" ? "" : name })}
          aria-current=${name === span ? "true" : undefined}>${words}</a>`,
      )}</nav></div>
    <${Late} fault=${value ? fault : null} />
    <${Behind} of=${behind} />
    ${value === null || drawn === null ? html`<${Looking} fault=${fault} />` : html`<${All} stats=${value} draw=${drawn} />`}
  </section>`;
}

/** The library, once it is here; drawn anew where day becomes night. */
function useDrawing() {
  const draw = useSignal(null);
  useEffect(() => {
    const look = () => import("/assets/vendor/uplot.js").then(({ uPlot }) => (draw.value = { uPlot }));
    look();
    DARK.addEventListener("change", look);
    return () => DARK.removeEventListener("change", look);
  }, []);
  return draw.value;
}

function All({ stats, draw }) {
  return html`<div class="charts">${chartsOf(stats).map(
      (chart) => html`<${Chart} key=${chart.title} chart=${chart} times=${stats.times} draw=${draw} />`,
    )}</div>
    <p class="soft">Known in part: ${stats.unknown.map((what) => what.replace(": ", " – ")).join("; ")}.</p>`;
}

function Chart({ chart, times, draw }) {
  const box = useRef(null),
    at = useSignal(null);
  const { title, unit, lines } = chart;
  useEffect(() => {
    if (lines.length === 0) return;
    const room = box.current;
    const plot = plotted(room, chart, times, draw.uPlot, (n) => (at.value = n));
    const sized = new ResizeObserver(() => plot.setSize({ width: room.clientWidth, height: HEIGHT }));
    sized.observe(room);
    return () => (sized.disconnect(), plot.destroy());
  }, [JSON.stringify(lines), draw]);
  const told = (values) => (at.value === null ? values.findLast((value) => value !== null) : values[at.value]);
  const worded = (value) => (unit === "seconds" && value != null ? short(value) : rounded(value));
  return html`<section class="card chart" aria-label=${title}>
    <div class="head"><h3>${title} <span class="soft">${unit}</span></h3>
      <span class="soft number">${at.value === null ? "now" : date(times[at.value])}</span></div>
    ${
      lines.length === 0
        ? html`<${Empty}>Nothing in this time.</>`
        : html`<div ref=${box} class="chart-plot" role="img" aria-label=${`${title}, ${unit}. ${lines.map(lineWords).join(". ")}`}></div>`
    }
    <ul class="legend">${lines.slice(0, COLOURS.length).map(
      ({ label, values }, n) => html`<li><i class=${`c${n}`}></i>${label} <strong class="number">${worded(told(values))}</strong></li>`,
    )}</ul>
  </section>`;
}

function plotted(box, { unit, lines }, times, uPlot, hover) {
  const style = getComputedStyle(box),
    colour = (name) => style.getPropertyValue(name).trim();
  const shown = lines.slice(0, COLOURS.length);
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--ink-soft"), grid, ticks: { show: false }, font: "11px sans-serif" };
  const days = Date.parse(times.at(-1)) - Date.parse(times[0]) > 2 * 86_400_000;
  const moment = (seconds) =>
    days ? new Date(1000 * seconds).toLocaleDateString([], { day: "numeric", month: "short" }) : minute(1000 * seconds);
  const options = {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: "charts" } },
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      { ...axis, size: 26, space: 70, values: (_, all) => all.map(moment) },
      { ...axis, size: 44, space: 34, values: (_, all) => all.map(unit === "seconds" ? short : rounded) },
    ],
    series: [
      {},
      ...shown.map(({ label }, n) => ({
        label,
        stroke: colour(COLOURS[n]),
        width: 1.5,
        fill: shown.length === 1 ? `${colour(COLOURS[n])}1a` : undefined,
        points: { show: true, size: 5, fill: colour(COLOURS[n]), filter: (plot, line) => alone(plot.data[line]) },
        spanGaps: false,
      })),
    ],
    hooks: { setCursor: [({ cursor }) => hover(cursor.idx ?? null)] },
  };
  return new uPlot(options, [times.map((time) => Date.parse(time) / 1000), ...shown.map(({ values }) => values)], box);
}
