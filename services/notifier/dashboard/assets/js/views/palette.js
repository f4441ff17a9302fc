import { html, useEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { page } from "../api.js";
import { WORDS } from "../frame.js";
import { asked, filtersOf } from "../filters.js";
import { learn } from "../list.js";
import { close, open, Over } from "../opened.js";
import { StatusBadge } from "../parts.js";
import { jobLink, link } from "../route.js";
import { saved } from "../saved.js";
import { claims, isOperator, signOut } from "../session.js";
import { titleOf } from "../titles.js";

const TYPED_MS = 150;
const JOBS = 8;

const goTo = (hash) => () => (location.hash = hash);
const acts = () => [
  { words: "New job", keys: "N", act: () => open("submit") },
  { words: "All keys", keys: "?", act: () => open("help") },
  { words: "Failed jobs", act: goTo(link("jobs", { show: "failed" })) },
  { words: "Jobs that run", act: goTo(link("jobs", { show: "running" })) },
  { words: "Jobs that ask", act: goTo(link("jobs", { show: "asks" })) },
  ...saved.value.map(({ name, hash }) => ({ words: `Filters: ${name}`, act: goTo(hash) })),
  { words: "Sign out", act: () => signOut() },
];
const pages = () =>
  Object.entries(isOperator.value ? WORDS : { jobs: WORDS.jobs }).map(([name, words]) => ({
    words: `Go to ${words}`,
    act: goTo(link(name)),
  }));

/** Those that have each word of the text in theirs, in their order. */
export function fitting(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((entry) => words.every((word) => entry.words.toLowerCase().includes(word)));
}

/** Jobs, pages and acts, by a few letters. */
export function Palette() {
  return html`<${Over} name="palette" title="Go anywhere" kind="palette"><${Found} /></>`;
}

function Found() {
  const text = useSignal(""),
    at = useSignal(0),
    jobs = useSignal([]),
    box = useRef(null);
  useEffect(() => {
    const timer = setTimeout(async () => (jobs.value = await lookFor(text.value)), text.value ? TYPED_MS : 0);
    return () => clearTimeout(timer);
  }, [text.value]);
  const rest = fitting([...pages(), ...acts()], text.value);
  const all = text.value ? [...jobs.value, ...rest] : [...rest, ...jobs.value];
  const n = Math.min(at.value, Math.max(0, all.length - 1));
  const take = (entry) => (close(), entry?.act());
  const keyed = (event) => {
    const to = { ArrowDown: n + 1, ArrowUp: n - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Enter") return event.preventDefault(), take(all[n]);
    if (to === undefined || all.length === 0) return;
    event.preventDefault();
    at.value = (to + all.length) % all.length;
  };
  useEffect(() => box.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [n]);
  const typed = ({ target }) => ((text.value = target.value), (at.value = 0));
  return html`<input type="text" role="combobox" aria-label="Go anywhere" aria-expanded="true" aria-controls="palette-list"
      aria-activedescendant=${all.length ? `palette-${n}` : undefined} placeholder="A job, a page or an act" autocomplete="off"
      spellcheck="false" value=${text.value} onInput=${typed} onKeyDown=${keyed} />
    <ul id="palette-list" role="listbox" aria-label="What was found" ref=${box}>${all.map(
      (entry, number) => html`<li key=${entry.id ?? entry.words} id=${`palette-${number}`} role="option" aria-selected=${number === n}
        onPointerMove=${() => (at.value = number)} onClick=${() => take(entry)}>
        <span class="cut">${entry.words}</span>${entry.job && html`<${StatusBadge} job=${entry.job} />`}
        ${entry.keys && html`<kbd>${entry.keys}</kbd>`}</li>`,
    )}</ul>
    ${all.length === 0 && html`<p class="soft">Nothing has that in it.</p>`}`;
}

/** Jobs of that text; the newest, where there is none. */
async function lookFor(text) {
  const query = asked({ ...filtersOf({}), q: text }, { owner: isOperator.value ? "" : (claims.value?.sub ?? "") });
  query.set("limit", JOBS);
  const found = await page(`/jobs?${query}`).catch(() => ({ items: [] }));
  learn(found.items);
  return found.items.map((job) => ({ id: job.id, words: titleOf(job), job, act: goTo(jobLink(job.id)) }));
}
