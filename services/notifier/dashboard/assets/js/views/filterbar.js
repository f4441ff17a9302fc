import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { get } from "../api.js";
import { zoneWords } from "../days.js";
import { asked, filtersOf, isFiltered, localOf, momentFrom, NAMED, OWN_TIME, SORTS, TABS, TIMES } from "../filters.js";
import { tabs } from "../list.js";
import { link, replaced, route } from "../route.js";
import { claims, isOperator } from "../session.js";
import { Display } from "./display.js";
import { Pick } from "./pick.js";
import { Saved } from "./saved.js";

const TYPED_MS = 250; // after the last letter
const NAMES_MS = 30_000;
const WORDS = { project: "Project", pipeline: "Pipeline", pool: "Pool", label: "Label", user: "Owner" };

/** Which statuses, with how many jobs each has that the other filters find. */
export function Tabs({ filters }) {
  const count = tabs.value ?? {};
  return html`<nav class="tabs" aria-label="Which jobs">${Object.entries(TABS).map(([show, word]) => {
    const said = show === "asks" && isOperator.value ? "Ask" : word;
    const kind = show === "asks" && count[show] ? "asks" : "";
    return html`<a class=${kind} href=${link("jobs", { ...filters, show })} aria-current=${filters.show === show ? "true" : undefined}>
      ${said}${count[show] ? html` <span class="number">${count[show].toLocaleString()}</span>` : ""}</a>`;
  })}</nav>`;
}

/** Text, names, time and order. Each choice is another address, so a link shares it and back undoes it. */
export function Filters({ filters }) {
  const names = useNames();
  const go = (change) => (location.hash = link("jobs", { ...filters, ...change }));
  const shown = NAMED.filter((name) => name !== "user" || isOperator.value);
  return html`<div class="filters" role="search" aria-label="Filters">
    <${Text} filters=${filters} />
    ${shown.map((name) => html`<${Name} key=${name} name=${name} value=${filters[name]} known=${names[name]} go=${go} />`)}
    <${Pick} label="Time" none="Any time" value=${filters.time} of=${TIMES} choose=${(time) => go({ time, since: "", until: "" })} />
    ${filters.time === OWN_TIME && html`<${Between} filters=${filters} />`}
    <${Saved} filters=${filters} />
    ${isFiltered(filters) && html`<a class="clear" href=${link("jobs", { sort: filters.sort })}>Clear</a>`}
    <span class="push"></span>
    <${Pick} label="Order" value=${filters.sort || "newest"} of=${SORTS}
      choose=${(sort) => go({ sort: sort === "newest" ? "" : sort })} />
    <${Display} />
  </div>`;
}

/** Submitted from then on, and before then; in the reader's zone, while the address has UTC. */
function Between({ filters }) {
  const change = ({ target }) =>
    replaced(link("jobs", { ...filtersOf(route.value.query), time: OWN_TIME, [target.name]: momentFrom(target.value) }));
  const field = (name, label) => html`<label>${label} <input type="datetime-local" name=${name} max="9999-12-31T23:59"
    value=${localOf(filters[name])} onChange=${change} /></label>`;
  return html`<span class="between" role="group" aria-label=${`When they were submitted, times in ${zoneWords()}`}>
    ${field("since", "from")}${field("until", "to")}<span class="soft">${zoneWords()}</span></span>`;
}

let timer = 0;

function Text({ filters }) {
  const typed = useSignal(filters.q);
  useEffect(() => void (typed.value = filters.q), [filters.q]);
  const write = ({ target }) => {
    typed.value = target.value;
    clearTimeout(timer);
    timer = setTimeout(
      () => replaced(link("jobs", { ...filtersOf(route.value.query), q: typed.value.trim() })),
      TYPED_MS,
    );
  };
  return html`<span class="find"><input id="find" type="search" aria-label="Search jobs" maxlength="200"
    placeholder="Title, id or label" aria-keyshortcuts="/" value=${typed.value} onInput=${write} /><kbd aria-hidden="true">/</kbd></span>`;
}

/** One of the names that there are, the most frequent first. */
function Name({ name, value, known = {}, go }) {
  const names = Object.keys(known);
  if (names.length < 2 && !value) return "";
  const of = Object.fromEntries([...new Set([...(value ? [value] : []), ...names])].map((each) => [each, each]));
  return html`<${Pick} label=${WORDS[name]} none=${WORDS[name]} value=${value} of=${of} counts=${known}
    choose=${(told) => go({ [name]: told })} />`;
}

/** What there is to choose from: the names that one's jobs have, an operator's: everybody's. */
function useNames() {
  const names = useSignal({});
  useEffect(() => {
    let timer = 0;
    const query = asked(filtersOf({}), { owner: isOperator.value ? "" : (claims.value?.sub ?? "") });
    for (const name of NAMED) if (name !== "user" || isOperator.value) query.append("by", name);
    const look = async () => {
      const told = await get(`/jobs/counts?${query}`).catch(() => null);
      if (told) names.value = told.counts;
      timer = setTimeout(look, NAMES_MS);
    };
    look();
    return () => clearTimeout(timer);
  }, []);
  return names.value;
}
