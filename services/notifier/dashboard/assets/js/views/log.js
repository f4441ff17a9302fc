import { html, useLayoutEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { bare, pieces } from "../ansi.js";
import { Search } from "../parts.js";
import { hasEnded, isRunning } from "../state.js";
import { clock, plural } from "../words.js";

const SHOWN = 2000; // lines in the page at once; the file has all
const drawn = new WeakMap(); // line → how it is drawn without a search: thousands of lines, of which few are new

/** The job's log: what was there, what comes, searched and followed. */
export function Log({ job, lines }) {
  const wanted = useSignal(""),
    follows = useSignal(true);
  const box = useRef(null);
  const ended = hasEnded(job),
    text = wanted.value.toLowerCase();
  const found = text ? lines.filter(({ line, stage }) => bare(line).toLowerCase().includes(text) || stage === text) : lines;
  useLayoutEffect(() => {
    if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  if (lines.length === 0 && !isRunning(job) && !ended) return ""; // it begins when the job does
  const scrolled = ({ target }) => (follows.value = target.scrollTop + target.clientHeight >= target.scrollHeight - 24);
  const follow = (event) => (follows.value = event.target.checked);
  const draw = (line, n, all) =>
    text ? html`<${Line} line=${line} text=${text} />` : plain(line, n > 0 && all[n - 1].stage !== line.stage);
  const nothing = text ? "No such line." : ended ? "It said nothing, or its log is not kept any more." : "Nothing yet.";
  return html`<section class="card" aria-labelledby="log-title">
    <div class="head">
      <h2 id="log-title">Log <span class="soft number">
        ${text ? `${found.length} of ${plural(lines.length, "line")}` : plural(lines.length, "line")}</span></h2>
      ${
        lines.length > 0 &&
        html`<div class="row fit">
        <${Search} id="log-search" label="Search the log" wanted=${wanted} />
        <label class="check"><input type="checkbox" checked=${follows.value} onChange=${follow} /> Follow</label>
      </div>`
      }
    </div>
    ${
      found.length === 0
        ? html`<p class="soft">${nothing}</p>`
        : html`<div class="log" ref=${box} tabindex="0" role="log" aria-live="off" aria-label="Lines of the log"
          onScroll=${scrolled}>${found.slice(-SHOWN).map(draw)}</div>`
    }
  </section>`;
}

function plain(line, first) {
  if (!drawn.has(line)) drawn.set(line, html`<${Line} line=${line} first=${first} text="" />`);
  return drawn.get(line);
}

function Line({ line, text, first = false }) {
  return html`<p class=${first ? "first" : ""}><span class="when">${clock(line.ts)}</span><span class="stage">
    ${line.stage}</span><span><${Marked} line=${line.line} text=${text} /></span></p>`;
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
