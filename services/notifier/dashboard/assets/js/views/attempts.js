import { html } from "/assets/vendor/preact.js";
import { usePoll } from "../feed.js";
import { Behind, Empty, Late } from "../parts.js";
import { link, route } from "../route.js";
import { date, lasted, minute, statusWord } from "../words.js";
import { Copy } from "./copy.js";
import { JobName, useTitles } from "./job_name.js";

const BACK = {
  lost: "worker lost",
  drained: "worker stopped",
  provider: "provider paused",
  outage: "an outage",
  forced: "freed by force",
  retry: "tried again later",
};

/** What workers took up and what became of it, of all or of one that the address names. */
export function Attempts() {
  const worker = route.value.query.worker ?? "";
  const { value, behind, fault } = usePoll(`/workers/attempts?limit=100${worker ? `&worker=${encodeURIComponent(worker)}` : ""}`, 5_000);
  useTitles((value ?? []).map(({ job_id }) => job_id));
  if (value === null) return html`<${Late} fault=${fault} />`;
  return html`<section class="card" aria-labelledby="attempts-title">
    <div class="head"><h2 id="attempts-title">What they did${worker && html`: <span class="mono">${worker}</span>`}</h2>
      ${worker && html`<a class="soft" href=${link("workers")}>All workers</a>`}</div>
    <${Late} fault=${fault} />
    <${Behind} of=${behind} />
    ${value.length === 0 ? html`<${Empty}>Nothing was taken up yet.</>` : html`<${Rows} of=${value} />`}
  </section>`;
}

function Rows({ of }) {
  return html`<table class="cards attempts"><thead><tr><th>Taken up</th><th>Worker</th><th>Job</th><th class="number">Attempt</th>
    <th class="number">Lasted</th><th>Then</th></tr></thead><tbody>${of.map(
      (row) => html`<tr key=${row.job_id + row.attempt}>
      <td data-name="Taken up"><time datetime=${row.began_at} title=${date(row.began_at)}>${minute(row.began_at)}</time></td>
      <td data-name="Worker"><a class="mono" href=${link("workers", { worker: row.worker })}>${row.worker}</a>
        <${Copy} of=${row.worker} label=${`Copy the worker ${row.worker}`} /></td>
      <td data-name="Job"><${JobName} id=${row.job_id} /></td><td class="number" data-name="Attempt">${row.attempt}
        <${Copy} of=${`${row.job_id}:${row.attempt}`} label=${`Copy the attempt ${row.job_id}:${row.attempt}`} /></td>
      <td class="number" data-name="Lasted">${row.ended_at ? lasted(row.began_at, row.ended_at) : ""}</td>
      <td data-name="Then" class=${row.end === "failed" || row.end === "lost" ? "bad" : ""}>${endOf(row)}</td></tr>`,
    )}</tbody></table>`;
}

const endOf = ({ end }) => (end === null ? "runs" : (BACK[end] ?? statusWord(end)));
