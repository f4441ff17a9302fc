import { html, useSignal } from "/assets/vendor/preact.js";
import { send } from "../api.js";
import { askThenDo } from "../dialog.js";
import { usePoll } from "../feed.js";
import { Ago, Badge, Empty, Late, Looking, Search, Slots, Until } from "../parts.js";
import { plural } from "../words.js";
import { Copy } from "./copy.js";
import { JobName, useTitles } from "./job_name.js";

/** Groups, the fullest first: how many slots each has, and who holds them since when. */
export function Groups() {
  const { value, fault } = usePoll("/concurrency", 2000);
  const wanted = useSignal("");
  useTitles((value ?? []).flatMap(({ holders }) => holders.filter(isUntitled).map(({ job_id }) => job_id)));
  if (value === null) return html`<${Looking} fault=${fault} />`;
  const shown = byUse(value.filter(({ group }) => group.toLowerCase().includes(wanted.value.toLowerCase())));
  const busy = shown.filter(isUsed),
    idle = shown.filter((group) => !isUsed(group));
  return html`<section class="stack" aria-labelledby="groups-title">
    <div class="head"><h1 class="title" id="groups-title">Groups</h1>
      <div class="fit"><${Search} id="group-search" label="Search groups" wanted=${wanted} /></div></div>
    <${Late} fault=${fault} />
    ${shown.length === 0 && html`<${Empty} title="No such group">A group is shown once a slot of it is asked for.</>`}
    ${
      busy.length > 0 &&
      html`<div class="packed">
      ${busy.map((group) => html`<${Group} key=${group.group} group=${group} />`)}</div>`
    }
    ${
      idle.length > 0 &&
      html`<section class="card" aria-labelledby="idle-title"><h2 id="idle-title">Not in use</h2>
      <ul class="lines">${idle.map(
        (group) => html`<li key=${group.group}><span class="job-name"><span class="mono cut" title=${group.group}>${group.group}</span>
      <${Copy} of=${group.group} label=${`Copy the group ${group.group}`} /></span>
      <span class="row soft number">${plural(group.limit, "slot")}<${Limit} group=${group} />
      </span></li>`,
      )}</ul></section>`
    }
  </section>`;
}

const isUntitled = ({ job_id, title }) => job_id && !title; // what it is called instead, its job says
const isUsed = ({ active, waiting, shut_until }) => active + waiting > 0 || Boolean(shut_until);

/** The fullest first; of equally full ones that for which most wait. */
export function byUse(groups) {
  const share = ({ active, limit }) => active / Math.max(1, limit);
  return [...groups].sort(
    (one, other) =>
      share(other) - share(one) ||
      other.waiting - one.waiting ||
      other.active - one.active ||
      one.group.localeCompare(other.group),
  );
}

const pathOf = ({ group }) => `/concurrency/${encodeURIComponent(group)}`;

function Group({ group }) {
  return html`<article class="card" aria-label=${group.group}>
    <div class="head">
      <h2 class="mono">${group.group} <${Copy} of=${group.group} label=${`Copy the group ${group.group}`} /></h2><div class="row">
      ${group.shut_until && html`<${Badge} kind="paused">shut, opens <${Until} of=${group.shut_until} /></>`}
      ${group.waiting > 0 && html`<${Badge} kind="scheduled">${group.waiting} waiting</>`}
      <${Limit} group=${group} /></div></div>
    <${Slots} used=${group.active} limit=${group.limit} label=${`Slots of ${group.group}`} />
    <p class="soft number">${group.active} of ${plural(group.limit, "slot")} taken</p>
    ${
      group.holders.length > 0 &&
      html`<table class="cards holders"><thead><tr><th>Holder</th><th>Worker</th>
      <th>Since</th><th><span class="visually-hidden">Acts</span></th></tr></thead><tbody>
      ${group.holders.map((holder) => html`<${Holder} key=${holder.lease} group=${group} holder=${holder} />`)}</tbody>
      </table>`
    }
  </article>`;
}

function Holder({ group, holder }) {
  const name = holder.job_id
    ? html`<${JobName} id=${holder.job_id} title=${holder.title} />`
    : html`<span class="job-name"><span class="cut" title=${holder.lease}>${holder.user_id ?? holder.lease}</span>
    <${Copy} of=${holder.lease} label=${`Copy the lease ${holder.lease}`} /></span>`;
  return html`<tr><td data-name="Holder">${name}</td><td data-name="Worker">${holder.worker ?? ""}</td>
    <td data-name="Since">${holder.since && html`<${Ago} of=${holder.since} />`}
    ${!holder.job_id && html`, until <${Until} of=${holder.expires_at} />`}</td><td class="number">
    <button class="bare danger" aria-label=${`Free the slot of ${holder.job_id ?? holder.lease}`} onClick=${release(group, holder)}>
      Free…</button></td></tr>`;
}

function Limit({ group }) {
  if (group.group.startsWith("pool:")) return ""; // its workers' slots: nobody sets it
  const Fields = () => html`<div><label for="slots">Slots</label>
    <input id="slots" name="limit" type="number" min="1" max="10000" required defaultValue=${group.limit} /></div>`;
  const text = "It counts at once. Below what runs it stops nothing; nothing new starts until there is room.";
  const change = () =>
    askThenDo(
      { title: `Slots of ${group.group}`, text, act: "Set the limit", Fields },
      ({ limit, reason }) => send("PUT", pathOf(group), { limit: Number(limit), reason }),
      (_, { limit }) => `${group.group} has ${plural(Number(limit), "slot")} now.`,
    );
  return html`<button class="bare" aria-label=${`Change the limit of ${group.group}`} onClick=${change}>
    Limit…</button>`;
}

const release = (group, holder) => () => {
  const own = "Where it is the job's own slot, its attempt is given back and starts again later.";
  const text = holder.job_id ? `Job ${holder.job_id} holds it. ${own}` : "Its holder is told that it is gone.";
  return askThenDo(
    { title: "Free this slot by force?", text, act: "Free it", danger: true },
    ({ reason }) => send("DELETE", `${pathOf(group)}/leases/${encodeURIComponent(holder.lease)}${because(reason)}`),
    (told) => told?.message ?? "Freed.",
  );
};

const because = (reason) => (reason ? `?${new URLSearchParams({ reason })}` : "");
