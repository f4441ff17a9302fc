import { html, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { askThenDo } from "../dialog.js";
import { usePoll } from "../feed.js";
import { Ago } from "../parts.js";
import { PRIORITIES } from "../state.js";
import { plural } from "../words.js";

const KINDS = {
  all: "everything",
  priority: "one priority",
  pool: "one pool",
  user: "one user",
  project: "one project (shop: the shared one; ann:shop: ann's own)",
  workflow: "one workflow",
};

const scopeOf = ({ kind, name }) => (kind === "all" ? "all" : `${kind}:${name}`);

/** Nothing in a scope starts until it is resumed. */
export function Pause() {
  const text = "Nothing in it starts until it is resumed. What runs goes on.";
  const pause = () =>
    askThenDo(
      { title: "Pause", text, act: "Pause it", Fields: Scope },
      (answer) => send("POST", "/queue/pause", { scope: scopeOf(answer), reason: answer.reason }),
      (_, answer) => `Paused ${scopeOf(answer)}.`,
    );
  return html`<button class="quiet" onClick=${pause}>Pause…</button>`;
}

function Scope() {
  const kind = useSignal("all");
  return html`<div class="fields">
    <div><label for="pause-kind">What</label>
      <select id="pause-kind" name="kind" value=${kind.value} onChange=${(event) => (kind.value = event.target.value)}>
        ${Object.entries(KINDS).map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select></div>
    ${
      kind.value === "priority" &&
      html`<div><label for="pause-name">Which</label><select id="pause-name" name="name">
      ${PRIORITIES.map((name) => html`<option selected=${name === "low"}>${name}</option>`)}</select></div>`
    }
    ${
      !["all", "priority"].includes(kind.value) &&
      html`<div><label for="pause-name">Which</label>
      <input id="pause-name" name="name" required maxlength="256" /></div>`
    }
  </div>`;
}

/** Said to whoever submits or waits: what is held, by whom and why. A user is told of what holds theirs. */
export function Held() {
  const { value } = usePoll("/queue", 10_000);
  const all = value?.paused ?? [];
  if (all.length === 0) return "";
  return html`<ul class="stack tight" aria-label="What is paused">${all.map(
    ({ scope, by, since, reason }) => html`<li key=${scope} class="nudge held"><strong>${scopeWords(scope)} paused</strong> by
      ${" "}${by}, <${Ago} of=${since} />${reason ? `: ${reason}` : ""}. What is submitted is taken in, keeps its place, and starts
      ${" "}once it is resumed.</li>`,
  )}</ul>`;
}

const scopeWords = (scope) => (scope === "all" ? "Everything is" : `${scope.replace(":", " ")} is`);

/** What is paused, by whom and why, and the way to go on. */
export function Paused({ all }) {
  if (all.length === 0) return "";
  return html`<ul class="stack tight" aria-label=${plural(all.length, "pause")}>
    ${all.map((pause) => html`<${Resumable} key=${pause.scope} pause=${pause} />`)}</ul>`;
}

function Resumable({ pause: { scope, by, since, reason } }) {
  const resume = () =>
    askThenDo(
      { title: `Resume ${scope}?`, text: "Its jobs may start again.", act: "Resume" },
      (answer) => send("POST", "/queue/resume", { scope, reason: answer.reason }),
      () => `Resumed ${scope}.`,
    );
  return html`<li class="question">
    <p><strong>${scope === "all" ? "Everything" : scope} is paused</strong>
      ${" "}by ${by}, <${Ago} of=${since} />${reason ? `: ${reason}` : ""}</p>
    <button class="quiet small" aria-label=${`Resume ${scope}`} onClick=${resume}>Resume</button></li>`;
}
