import { html, signal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { askFirst } from "../dialog.js";
import { expect, learn, chosen } from "../list.js";
import { stirred } from "../feed.js";
import { close, open, Over } from "../opened.js";
import { jobLink } from "../route.js";
import { jobs, PRIORITIES } from "../state.js";
import { titleOf } from "../titles.js";
import { plural } from "../words.js";

const AT_ONCE = 4;
const results = signal(null); // {title, of: [{job, said, fault, link}], left}

/** What was chosen, and what can be done to all of it. */
export function Bulk() {
  const ids = [...chosen.value];
  if (ids.length === 0) return "";
  return html`<div class="bulk" role="toolbar" aria-label="What to do with the selected jobs">
    <strong class="number">${ids.length} selected</strong>
    <button class="quiet small" onClick=${() => reprioritize(ids)}>Priority…</button>
    <button class="quiet small" onClick=${() => retry(ids)}>Submit again…</button>
    <button class="quiet danger small" onClick=${() => cancel(ids)}>Cancel…</button>
    <button class="bare" onClick=${() => (chosen.value = new Set())}>Select none</button>
  </div>`;
}

async function cancel(ids) {
  const text = "Those that run end in a moment; those that have ended are left as they are.";
  const answer = await askFirst({ title: `Cancel ${plural(ids.length, "job")}?`, text, act: "Cancel them", danger: true });
  if (answer)
    forEach(ids, "Cancelled", (id) => send("POST", `/jobs/${id}/cancel`, { reason: answer.reason }), () => "is ending");
}

async function retry(ids) {
  const text = "Each that failed or was cancelled becomes a new job, with the work that its finished stages left.";
  const answer = await askFirst({ title: `Submit ${plural(ids.length, "job")} again?`, text, act: "Submit again", reason: false });
  if (!answer) return;
  const again = async (id) => {
    const job = await send("POST", `/jobs/${id}/retry`, {}, { "Idempotency-Key": crypto.randomUUID() });
    expect(job.id);
    return job;
  };
  forEach(ids, "Submitted again", again, () => "is submitted again");
}

async function reprioritize(ids) {
  const Fields = () => html`<div><label for="bulk-priority">Priority</label><select id="bulk-priority" name="priority">
    ${PRIORITIES.map((name) => html`<option selected=${name === "normal"}>${name}</option>`)}</select></div>`;
  const text = "It counts for those that have not started.";
  const answer = await askFirst({ title: `Priority of ${plural(ids.length, "job")}`, text, act: "Change it", Fields });
  if (!answer) return;
  const { priority, reason } = answer;
  forEach(ids, "New priority", (id) => send("PATCH", `/jobs/${id}`, { priority, reason }), () => `is ${priority} now`);
}

/** One after the other, a few at once; what became of each is shown as it comes. */
async function forEach(ids, title, act, said) {
  const of = ids.map((id) => ({ id, job: jobs.value.get(id), said: "", fault: "", link: jobLink(id) }));
  results.value = { title, of };
  open("outcomes");
  const left = [...of.keys()];
  const work = async () => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      const told = await act(ids[n]).then(
        (job) => (learn([job]), { said: said(job), link: jobLink(job.id) }),
        (fault) => ({ fault: fault.message }),
      );
      of[n] = { ...of[n], ...told };
      results.value = { title, of: [...of] };
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  chosen.value = new Set();
  stirred.value += 1;
}

/** What became of each. */
export function Outcomes() {
  const { title, of } = results.value ?? { title: "", of: [] };
  const done = of.filter(({ said }) => said).length,
    refused = of.filter(({ fault }) => fault).length;
  const summary = `${done} of ${plural(of.length, "job")}${refused ? `, ${refused} refused` : ""}`;
  return html`<${Over} name="outcomes" title=${title} kind="outcomes"><div class="head"><h2>${title}</h2>
      <span class="soft number" role="status">${summary}</span></div>
    <ul>${of.map(
      ({ id, job, said, fault, link }) => html`<li key=${id}><a class="cut" href=${link} onClick=${close}>${job ? titleOf(job) : id}</a>
      <span class=${fault ? "bad" : "soft"}>${fault || said || "…"}</span></li>`,
    )}</ul>
    <div class="row"><button onClick=${close}>Close</button></div></>`;
}
