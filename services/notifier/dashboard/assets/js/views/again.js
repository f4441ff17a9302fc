import { html, useEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { get, send } from "../api.js";
import { keep } from "../feed.js";
import { say, Wrong } from "../parts.js";
import { jobLink } from "../route.js";

/** Run a job that has ended again, from a stage of one's choice, with its input or another one. */
export function Again({ job, close }) {
  const box = useRef(null);
  const starts = useSignal(null),
    start = useSignal(""),
    input = useSignal(null),
    fault = useSignal(null),
    busy = useSignal(false);
  useEffect(() => {
    box.current?.showModal();
    get(`/jobs/${job.id}/retry`).then(
      ({ stages }) => ((starts.value = stages), (start.value = stages.find((each) => each.can_start)?.stage ?? "")),
      (problem) => (fault.value = problem),
    );
  }, [job.id]);
  const change = async ({ target }) => {
    if (!target.checked) return (input.value = null);
    return get(`/jobs/${job.id}/input`).then(
      (found) => (input.value = JSON.stringify(found, null, 2)),
      (problem) => (fault.value = problem),
    );
  };
  const submit = async (event) => {
    event.preventDefault();
    const content = input.value === null ? {} : parsed(input.value);
    if (content === null) return (fault.value = new Error("The input is no JSON object: compare its braces and quotes."));
    busy.value = true;
    return send("POST", `/jobs/${job.id}/retry`, { from: start.value, ...content }).then(
      (fresh) => {
        keep(fresh);
        close();
        location.hash = jobLink(fresh.id);
        say("It runs again, as a job of its own.");
      },
      (problem) => ((fault.value = problem), (busy.value = false)),
    );
  };
  return html`<dialog ref=${box} class="again" aria-labelledby="again-title" onClose=${close}>
    <h2 id="again-title">Run again from here</h2>
    <p class="soft">A new job begins with the stage that you choose, on the workspace that it began with the last time.
      ${" "}It takes a place of your day.</p>
    <form class="stack" onSubmit=${submit}>
      ${starts.value !== null && html`<${Stages} starts=${starts.value} start=${start} />`}
      ${starts.value === null && fault.value === null && html`<p class="soft">Looking what is still there…</p>`}
      <label class="check"><input type="checkbox" checked=${input.value !== null} onChange=${change} /> Change the input</label>
      ${
        input.value !== null &&
        html`<div><label for="again-input">Input, as JSON</label>
        <textarea id="again-input" class="mono" rows="8" value=${input.value}
          onInput=${({ target }) => (input.value = target.value)}></textarea></div>`
      }
      <${Wrong} fault=${fault.value} />
      <div class="row"><button disabled=${busy.value || !start.value}>Run again</button>
        <button type="button" class="quiet" onClick=${close}>Leave it</button></div>
    </form>
  </dialog>`;
}

function Stages({ starts, start }) {
  if (starts.length === 0) return html`<p class="soft">No worker has had it: submit it again instead.</p>`;
  return html`<fieldset class="starts"><legend class="label">From</legend>${starts.map(
    (each, n) => html`<label class=${`check ${each.can_start ? "" : "off"}`}>
      <input type="radio" name="start" value=${each.stage} disabled=${!each.can_start} checked=${start.value === each.stage}
        onChange=${() => (start.value = each.stage)} />
      <span>${n === 0 ? "The beginning" : each.title}${" "}
        <span class="soft">${each.why_not || (n === 0 ? each.title : "")}</span></span>
    </label>`,
  )}</fieldset>`;
}

/** {input} where the text is a JSON object, else null. */
function parsed(text) {
  try {
    const input = JSON.parse(text);
    return input && typeof input === "object" && !Array.isArray(input) ? { input } : null;
  } catch {
    return null;
  }
}
