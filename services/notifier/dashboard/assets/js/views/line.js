import { html, useRef } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { askThenDo } from "../dialog.js";
import { now } from "../feed.js";
import { Badge } from "../parts.js";
import { jobLink } from "../route.js";
import { isPaused, PRIORITIES } from "../state.js";
import { titleOf } from "../titles.js";
import { date, short } from "../words.js";
import { Copy } from "./copy.js";
import { grabbed, keysOf } from "./moving.js";

/** One job of the queue, and what an operator can do with it. */
export function Line({ line, n, lines, held, drop, told }) {
  const own = useRef(null);
  const holds = held.value?.id === line.job_id;
  const hand = { line, n, lines, held, drop, told };
  const others = held.value && !holds ? lines.filter(({ job_id }) => job_id !== held.value.id) : [];
  const marks = [
    line.priority,
    holds && "held",
    holds && held.value.lifted && "lifted",
    others[held.value?.at]?.job_id === line.job_id && "over",
    held.value?.at >= others.length && others.at(-1)?.job_id === line.job_id && "under",
    isPaused(line) && "paused",
  ];
  return html`<tr ref=${own} data-job=${line.job_id} class=${marks.filter(Boolean).join(" ")}>
    <td class="c-grip">
      <button class="grip" aria-label=${`Move job ${line.job_id}, on line ${line.n + 1}`} aria-pressed=${holds}
        onKeyDown=${keysOf(hand)} onPointerDown=${grabbed(hand, own)}>⠿</button></td>
    <td class="c-where where">${placeOf(line)}</td>
    <td class="c-class"><${Class} line=${line} /></td>
    <td class="c-job"><span class="job-name"><a class="cut" href=${jobLink(line.job_id)} title=${line.job_id}>${titleOf(line)}</a>
      <${Copy} of=${line.job_id} label=${`Copy the job ${line.job_id}`} /></span></td>
    <td class="c-user"><span class="cut" title=${`${line.user_id}, ${line.tier}`}>${line.user_id}</span></td>
    <td class="c-project"><span class="cut" title=${`${line.project_id}, ${line.pipeline}, pool ${line.pool}`}>
      ${line.project_id}</span></td>
    <td class="c-waits number" data-short="waits"><time datetime=${line.queued_at} title=${date(line.queued_at)}>
      ${short(Math.max(0, (Math.max(now.value, Date.now() - 1000) - Date.parse(line.queued_at)) / 1000))}</time></td>
    <td class="c-start number" data-short="starts in">
      ${line.estimate_seconds == null ? "" : short(line.estimate_seconds)}</td>
    <td class="c-why"><${Why} line=${line} /></td>
    <td class="c-acts"><div class="acts">
      <button class="bare" aria-label=${`Move ${line.job_id} to a place`} onClick=${toPlace(line, lines)}>
        Move…</button>
      <button class="bare danger" aria-label=${`Cancel ${line.job_id}`} onClick=${cancel(line)}>Cancel</button></div>
      </td>
  </tr>`;
}

/** As its owner is told: in its pool, and of what is paused no place counts. */
const placeOf = (line) => (isPaused(line) ? "–" : `${line.position}`);

const spotOf = (line) => (isPaused(line) ? "paused" : `#${line.position}`);

function Why({ line }) {
  const why = line.waiting_on.map(({ message }) => message).join(". ");
  return html`<span class="why soft">
    ${isPaused(line) && html`<${Badge} kind="paused">paused</>`}
    ${line.passed_by > 0 && html`<${Badge}>passed ${line.passed_by}×</>`}
    <span class="cut" title=${why}>${why}</span></span>`;
}

function Class({ line }) {
  const change = ({ target }) => {
    const priority = target.value;
    target.value = line.priority; // until the server says otherwise
    const text = `“${titleOf(line)}” of ${line.user_id}, now ${line.priority}.`;
    askThenDo(
      { title: `Priority ${priority}`, text, act: "Change it" },
      ({ reason }) => send("PATCH", `/jobs/${line.job_id}`, { priority, reason }),
      () => "Changed.",
    );
  };
  return html`<select aria-label=${`Priority of ${line.job_id}`} value=${line.priority} onChange=${change}>
    ${PRIORITIES.map((name) => html`<option value=${name}>${name}</option>`)}</select>`;
}

const cancel = (line) => () =>
  askThenDo(
    {
      title: "Cancel this job?",
      text: `“${titleOf(line)}” of ${line.user_id} will end.`,
      act: "Cancel the job",
      danger: true,
    },
    ({ reason }) => send("POST", `/jobs/${line.job_id}/cancel`, { reason }),
    () => "Cancelled.",
  );

const toPlace = (line, lines) => () => {
  const others = lines.filter(({ job_id }) => job_id !== line.job_id);
  const nameOf = (other) =>
    `${spotOf(other)}: ${titleOf(other)} (${other.user_id}, ${other.project_id}, ${other.priority})`;
  const Fields = () => html`<div><label for="to-place">Before the job at</label>
    <select id="to-place" name="before" required>
      ${others.map((other) => html`<option value=${other.job_id}>${nameOf(other)}</option>`)}</select></div>`;
  const text = `“${titleOf(line)}” of ${line.user_id}, now ${isPaused(line) ? "paused" : `at ${spotOf(line)}`}.`;
  return askThenDo(
    { title: "Move this job", text, act: "Move it", Fields },
    ({ before, reason }) => send("POST", "/queue/move", { job_id: line.job_id, before, reason }),
    () => "Moved.",
  );
};
