// What Headgate does, as a drawing: jobs wait in order before a gate, and behind it as many run as there is room for.

import { html } from "/assets/vendor/preact.js";

const WAITING = ["urgent", "high", "normal", "normal", "normal", "low"];
const SLOTS = [12, 44, 76];

export function Drawing() {
  return html`<svg class="drawing" viewBox="0 0 400 108" aria-hidden="true">
    <path class="water" d="M0 54H236" />
    <g class="line">${WAITING.map(
      (name, n) => html`<rect class=${`waits ${name}`} x=${196 - 36 * n} y="41" width="26" height="26" rx="7" />`,
    )}</g>
    <path class="gate" d="M236 8V100M258 8V100M236 38H258M236 70H258" />
    ${SLOTS.map(
      (y, n) => html`<g class=${`slot s${n}`}>
      <rect class="room" x="290" y=${y - 6} width="104" height="26" rx="7" />
      <rect class="runs" x="290" y=${y - 6} width=${[84, 52, 24][n]} height="26" rx="7" /></g>`,
    )}
  </svg>`;
}
