import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { jobsOf } from "../api.js";
import { learn } from "../list.js";
import { jobLink } from "../route.js";
import { jobs } from "../state.js";
import { titleOf } from "../titles.js";
import { Copy } from "./copy.js";

/** A job by its title where that is known, and its id to copy. */
export function JobName({ id, title }) {
  const job = jobs.value.get(id);
  const name = title ?? (job ? titleOf(job) : html`<code>${id}</code>`);
  return html`<span class="job-name"><a class="cut" href=${jobLink(id)} title=${id}>${name}</a>
    <${Copy} of=${id} label=${`Copy the job ${id}`} /></span>`;
}

/** Ask for the jobs that are not known yet, all of them by one question and each once. */
export function useTitles(ids) {
  const asked = useSignal(new Set());
  useEffect(() => {
    const unknown = [...new Set(ids)].filter((id) => !jobs.value.has(id) && !asked.peek().has(id));
    for (const id of unknown) asked.peek().add(id);
    jobsOf(unknown).then(learn, () => {}); // without an answer the ids stand there
  }, [ids.join()]);
}
