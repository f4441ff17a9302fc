import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { get } from "../api.js";
import { usePoll } from "../feed.js";
import { learn } from "../list.js";
import { Empty, Late } from "../parts.js";
import { jobLink, link, route } from "../route.js";
import { jobs } from "../state.js";
import { titleOf } from "../titles.js";
import { date, lasted, minute, statusWord } from "../words.js";

const LOOKED_UP = 40; // jobs of a page whose titles are asked for one by one
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
  const { value, fault } = usePoll(`/workers/attempts?limit=100${worker ? `&worker=${encodeURIComponent(worker)}` : ""}`, 5_000);
  useTitles((value ?? []).map(({ job_id }) => job_id));
  if (value === null) return html`<${Late} fault=${fault} />`;
  return html`<section class="card" aria-labelledby="attempts-title">
    <div class="head"><h2 id="attempts-title">What they did${worker && html`: <span class="mono">${worker}</span>`}</h2>
      ${worker && html`<a class="soft" href=${link("workers")}>All workers</a>`}</div>
    <${Late} fault=${fault} />
    ${value.length === 0 ? html`<${Empty}>Nothing was taken up yet.</>` : html`<${Rows} of=${value} />`}
  </section>`;
}

function Rows({ of }) {
  return html`<table class="cards"><thead><tr><th>Taken up</th><th>Worker</th><th>Job</th><th class="number">Attempt</th>
    <th class="number">Lasted</th><th>Then</th></tr></thead><tbody>${of.map(
      (row) => html`<tr key=${row.job_id + row.attempt}>
      <td data-name="Taken up"><time datetime=${row.began_at} title=${date(row.began_at)}>${minute(row.began_at)}</time></td>
      <td data-name="Worker"><a class="mono" href=${link("workers", { worker: row.worker })}>${row.worker}</a></td>
      <td data-name="Job"><${JobName} id=${row.job_id} /></td><td class="number" data-name="Attempt">${row.attempt}</td>
      <td class="number" data-name="Lasted">${row.ended_at ? lasted(row.began_at, row.ended_at) : ""}</td>
      <td data-name="Then" class=${row.end === "failed" || row.end === "lost" ? "bad" : ""}>${endOf(row)}</td></tr>`,
    )}</tbody></table>`;
}

const endOf = ({ end }) => (end === null ? "runs" : (BACK[end] ?? statusWord(end)));

/** A job by its title, once that is known. */
export function JobName({ id }) {
  const job = jobs.value.get(id);
  return html`<a href=${jobLink(id)} title=${id}>${job ? titleOf(job) : html`<code>${id}</code>`}</a>`;
}

/** Ask for the jobs that are not known yet, once each. */
export function useTitles(ids) {
  const asked = useSignal(new Set());
  useEffect(() => {
    const unknown = [...new Set(ids)].filter((id) => !jobs.value.has(id) && !asked.peek().has(id)).slice(0, LOOKED_UP);
    if (unknown.length === 0) return;
    for (const id of unknown) asked.peek().add(id);
    Promise.all(unknown.map((id) => get(`/jobs/${id}`).catch(() => null))).then((found) => learn(found.filter(Boolean)));
  }, [ids.join()]);
}
