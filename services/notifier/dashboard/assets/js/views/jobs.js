import { html } from "/assets/vendor/preact.js";
import { byDay } from "../days.js";
import { Drawing } from "../drawing.js";
import { filtersOf, isFiltered } from "../filters.js";
import { liking } from "../liking.js";
import { list, pointing, showFresh, showOlder, tabs, useList } from "../list.js";
import { open } from "../opened.js";
import { Behind, Empty, Late } from "../parts.js";
import { route } from "../route.js";
import { isOperator } from "../session.js";
import { jobs } from "../state.js";
import { plural } from "../words.js";
import { Bulk } from "./bulk.js";
import { cardOf } from "./card.js";
import { Filters, Tabs } from "./filterbar.js";
import { Held } from "./pausing.js";
import { Table } from "./table.js";
import { UsedToday } from "./usage.js";

/** Jobs that the address asks for: one's own, an operator's: everybody's. */
export function Jobs() {
  const filters = filtersOf(route.value.query);
  useList(filters);
  const { ids, loaded, behind, fault } = list.value;
  const shown = ids.map((id) => jobs.value.get(id)).filter(Boolean);
  return html`<section class="jobs-page" aria-labelledby="jobs-title">
    <div class="jobs-head">
      <h1 class="title" id="jobs-title">${isOperator.value ? "Jobs" : "Your jobs"}</h1>
      <${Tabs} filters=${filters} />
      <div class="end"><${UsedToday} /><button class="small" onClick=${() => open("submit")} aria-keyshortcuts="n">New job
        ${" "}<kbd aria-hidden="true">N</kbd></button></div>
    </div>
    <${Filters} filters=${filters} />
    <${Late} fault=${fault} />
    <${Behind} of=${behind} />
    <${Held} />
    <${Fresh} />
    <div id="list" onPointerMove=${pointing}>
      ${shown.length > 0 && html`<${Found} shown=${shown} filters=${filters} />`}
      ${shown.length === 0 && loaded && html`<${Nothing} filters=${filters} />`}
    </div>
    <${Foot} count=${shown.length} show=${filters.show} />
    <${Bulk} />
  </section>`;
}

function Found({ shown, filters }) {
  const { sort } = filters;
  const groups =
    sort === "priority"
      ? [{ day: "", jobs: shown }]
      : byDay(shown, (job) => (sort === "updated" ? job.updated_at : job.created_at));
  if (liking.value.look === "table") return html`<${Table} groups=${groups} title="jobs-title" />`;
  return groups.map(
    ({ day, jobs: some }) => html`<div key=${day} class="jobs">${day && html`<h2 class="day">${day}</h2>`}${some.map(cardOf)}</div>`,
  );
}

function Fresh() {
  const count = list.value.fresh.length;
  return html`<div class="fresh" role="status">${
    count > 0 && html`<button class="quiet small" onClick=${showFresh}>${plural(count, "new job")}: show</button>`
  }</div>`;
}

function Foot({ count, show }) {
  const all = tabs.value?.[show] ?? count;
  if (count === 0) return "";
  return html`<div class="jobs-foot">
    ${list.value.next && html`<button class="quiet small" onClick=${showOlder}>More jobs</button>`}
    <span class="soft number">${count.toLocaleString()} of ${plural(Math.max(all, count), "job")}</span>
  </div>`;
}

function Nothing({ filters }) {
  if (isFiltered(filters)) return html`<${Empty} title="No such job"><a href="#/jobs">Show all jobs</a></>`;
  return html`<${Empty} picture=${html`<${Drawing} />`} title="Nothing here yet">
    <p>Submit the sample: it is built within seconds, and you see it wait, run and end here.</p>
    <p><button onClick=${() => open("submit")}>New job</button></p></>`;
}
