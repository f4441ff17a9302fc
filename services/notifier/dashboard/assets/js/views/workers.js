import { html } from "/assets/vendor/preact.js";
import { usePoll } from "../feed.js";
import { Ago, Badge, Empty, Late, Looking, Slots } from "../parts.js";
import { link } from "../route.js";
import { plural } from "../words.js";
import { Attempts } from "./attempts.js";
import { Copy } from "./copy.js";
import { JobName, useTitles } from "./job_name.js";

/** Every worker that is heard of, and what it does. */
export function Workers() {
  const { value, fault } = usePoll("/workers", 2000);
  useTitles((value ?? []).flatMap((worker) => worker.jobs));
  if (value === null) return html`<${Looking} fault=${fault} />`;
  const slots = value.reduce((sum, worker) => sum + worker.slots, 0),
    taken = value.reduce((sum, worker) => sum + worker.jobs.length, 0);
  return html`<section class="stack" aria-labelledby="workers-title">
    <div class="head"><h1 class="title" id="workers-title">Workers</h1>
      <span class="soft number">${plural(value.length, "worker")}, ${taken} of ${plural(slots, "slot")} taken</span></div>
    <${Late} fault=${fault} />
    ${value.length === 0 && html`<${Empty} title="No worker is heard of">Jobs keep their places; nothing can start.</>`}
    <div class="packed">${value.map((worker) => html`<${Worker} key=${worker.worker} worker=${worker} />`)}</div>
    <${Attempts} />
  </section>`;
}

function Worker({ worker }) {
  return html`<article class="card" aria-label=${worker.worker}>
    <div class="head"><h2 class="mono"><a href=${link("workers", { worker: worker.worker })}>${worker.worker}</a>
      <${Copy} of=${worker.worker} label=${`Copy the worker ${worker.worker}`} /></h2><div class="row">
      <${Badge}>pool ${worker.pool}</>${worker.draining && html`<${Badge} kind="paused">draining</>`}</div></div>
    <${Slots} used=${worker.jobs.length} limit=${worker.slots} label=${`Slots of ${worker.worker}`} />
    <p class="soft number">
      ${worker.jobs.length} of ${plural(worker.slots, "slot")} taken, heard <${Ago} of=${worker.heard_at} /></p>
    ${
      worker.jobs.length > 0 &&
      html`<ul class="stack tight">${worker.jobs.map((job) => html`<li><${JobName} id=${job} /></li>`)}</ul>`
    }
  </article>`;
}
