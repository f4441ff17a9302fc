import { html } from "/assets/vendor/preact.js";
import { Empty } from "../parts.js";
import { clock, plural } from "../words.js";

const HOUR_MS = 3_600_000;

/** Submissions that were refused: how many in each of the last 24 hours, and why. */
export function Refused({ refused }) {
  return html`<section class="card" aria-labelledby="refused-title">
    <h2 id="refused-title">Refused submissions, last 24 hours</h2>
    ${
      refused.length === 0
        ? html`<${Empty}>Nothing was refused.</>`
        : html`<${Hours} refused=${refused} />
      <${Reasons} refused=${refused} />`
    }
  </section>`;
}

function Hours({ refused }) {
  const first = Math.floor(Date.now() / HOUR_MS) - 23;
  const counts = Array.from({ length: 24 }, (_, n) =>
    refused
      .filter((row) => Math.floor(Date.parse(row.hour) / HOUR_MS) === first + n)
      .reduce((total, row) => total + row.count, 0),
  );
  const most = Math.max(1, ...counts);
  return html`<div>
    <div class="hours" role="img" aria-label=${`By hour, the newest last: ${counts.join(", ")}`}>
      ${counts.map((count, n) => html`<${Bar} count=${count} most=${most} hour=${hourOf(first + n)} />`)}</div>
    <p class="axis" aria-hidden="true"><span>${hourOf(first)}</span>
      <span>at most ${most} an hour</span><span>now</span></p>
  </div>`;
}

const hourOf = (hour) => clock(hour * HOUR_MS).slice(0, 5);

function Bar({ count, most, hour }) {
  return html`<i title=${`${hour}: ${plural(count, "refusal")}`}>
    ${count > 0 && html`<b style=${{ height: `${(100 * count) / most}%` }}></b>`}</i>`;
}

function Reasons({ refused }) {
  const by = new Map();
  for (const { reason, count } of refused) by.set(reason, (by.get(reason) ?? 0) + count);
  return html`<table><thead><tr><th>Why</th><th class="number">Times</th></tr></thead><tbody>
    ${[...by]
      .sort(([, one], [, other]) => other - one)
      .map(
        ([reason, count]) => html`<tr key=${reason}><td>
    ${reason.replaceAll("-", " ")}</td><td class="number">${count}</td></tr>`,
      )}</tbody></table>`;
}
