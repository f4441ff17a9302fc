import { html, useEffect, useLayoutEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { bare, pieces } from "../ansi.js";
import { download } from "../api.js";
import { LEVELS, rankOf } from "../levels.js";
import { Search, sayFault } from "../parts.js";
import { linesLink, route } from "../route.js";
import { hasEnded, isRunning } from "../state.js";
import { clock, plural } from "../words.js";
import { Copy } from "./copy.js";

const SHOWN = 2000; // lines in the page at once; the file has all
const drawn = new WeakMap(); // line → how it is drawn without a search: thousands of lines, of which few are new
const ranks = new WeakMap();
const rank = (line) => (ranks.has(line) || ranks.set(line, rankOf(line.line)), ranks.get(line));

/** The job's log: what was there, what comes, searched and followed. A line that the address names is shown. */
export function Log({ job, lines }) {
  const wanted = useSignal(""),
    least = useSignal(0),
    follows = useSignal(true);
  const box = useRef(null);
  const ended = hasEnded(job),
    text = wanted.value.toLowerCase(),
    named = route.value.lines;
  const numbered = lines.map((line, n) => ({ line, number: n + 1 }));
  const found = numbered.filter(({ line }) => fits(line, text) && (least.value === 0 || rank(line) >= least.value));
  const shown = windowOf(found, named);
  useLayoutEffect(() => {
    if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const isThere = named !== null && lines.length >= named.from;
  useEffect(() => {
    if (isThere) show(box.current, named, follows);
  }, [isThere, named?.from, named?.to]);
  if (lines.length === 0 && !isRunning(job) && !ended) return ""; // it begins when the job does
  const scrolled = ({ target }) => (follows.value = target.scrollTop + target.clientHeight >= target.scrollHeight - 24);
  const silent = ended ? "It said nothing, or its log is not kept any more." : "Nothing yet.";
  const nothing = found.length < lines.length ? "No such line." : silent;
  return html`<section class="card" aria-labelledby="log-title">
    <div class="head">
      <h2 id="log-title">Log <span class="soft number">
        ${found.length < lines.length ? `${found.length} of ${plural(lines.length, "line")}` : plural(lines.length, "line")}</span></h2>
      ${lines.length > 0 && html`<${Tools} job=${job} lines=${lines} found=${found} wanted=${wanted} least=${least} follows=${follows} />`}
    </div>
    ${
      found.length === 0
        ? html`<p class="soft">${nothing}</p>`
        : html`<div class="log" ref=${box} tabindex="0" role="log" aria-live="off" aria-label="Lines of the log"
          onScroll=${scrolled}>${shown.map((each, n) => row(each, shown[n - 1], { job, text, named }))}</div>`
    }
  </section>`;
}

function Tools({ job, lines, found, wanted, least, follows }) {
  const hasLevels = lines.some((line) => rank(line) !== null);
  const take = () => download(`/jobs/${job.id}/log`, `${job.id}.log`).catch(sayFault);
  return html`<div class="row fit log-tools">
    <${Search} id="log-search" label="Search the log" wanted=${wanted} />
    ${hasLevels && html`<label class="visually-hidden" for="log-level">Lines of which level</label>
      <select id="log-level" value=${least.value} onChange=${({ target }) => (least.value = Number(target.value))}>
        <option value="0">All lines</option>
        ${LEVELS.slice(1).map((level, n) => html`<option value=${n + 1}>${n === 2 ? "Errors" : `From ${level} on`}</option>`)}
      </select>`}
    <button class="quiet small" onClick=${() => (follows.value = !follows.value)}>
      ${follows.value ? "Pause" : "Follow"}</button>
    <${Copy} of=${() => found.map(({ line }) => bare(line.line)).join("\n")} label="Copy these lines" look="quiet small">Copy</>
    <button class="quiet small" onClick=${take}>Download</button>
  </div>`;
}

const fits = ({ line, stage }, text) => !text || bare(line).toLowerCase().includes(text) || stage === text;

/** The last lines, or those around the one that is named. */
function windowOf(found, named) {
  const at = named ? found.findIndex(({ number }) => number >= named.from) : -1;
  const from = at < 0 ? found.length : Math.min(found.length, at + SHOWN / 2);
  return found.slice(Math.max(0, from - SHOWN), Math.max(from, SHOWN));
}

function show(box, named, follows) {
  const line = box?.querySelector(`[data-line="${named.from}"]`);
  if (!line) return;
  follows.value = false;
  box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 3;
  box.scrollIntoView({ block: "nearest" });
}

function row({ line, number }, before, { job, text, named }) {
  const is = named !== null && number >= named.from && number <= named.to;
  const draw = (first) => html`<${Line} line=${line} number=${number} job=${job} text=${text} first=${first} named=${is} />`;
  if (text || is || before?.number !== number - 1) return draw(false);
  if (!drawn.has(line)) drawn.set(line, { number, drawing: draw(before.line.stage !== line.stage) });
  const kept = drawn.get(line);
  return kept.number === number ? kept.drawing : draw(before.line.stage !== line.stage);
}

function Line({ line, number, job, text, first, named }) {
  const level = LEVELS[rank(line)];
  const kind = [first && "first", named && "named", (level === "error" || level === "warning") && level].filter(Boolean).join(" ");
  const go = (event) => {
    const start = route.value.lines?.from;
    if (!event.shiftKey || !start) return;
    event.preventDefault();
    location.hash = linesLink(job.id, { from: Math.min(start, number), to: Math.max(start, number) });
  };
  return html`<p class=${kind} data-line=${number}><a class="line-number" href=${linesLink(job.id, { from: number, to: number })}
    aria-label=${`Line ${number}`} onClick=${go}>${number}</a><span class="when">${clock(line.ts)}</span><span
    class="stage">${line.stage}</span><span><${Marked} line=${line.line} text=${text} /></span></p>`;
}

function Marked({ line, text }) {
  if (!text) return pieces(line).map((piece) => (piece.kind ? html`<span class=${piece.kind}>${piece.text}</span>` : piece.text));
  const shown = bare(line),
    at = shown.toLowerCase().indexOf(text);
  return at < 0
    ? shown
    : html`${shown.slice(0, at)}<mark>${shown.slice(at, at + text.length)}</mark>
    ${shown.slice(at + text.length)}`;
}
