// What a screen reader is told besides what has the focus: one place in the page, and never more than a few words at
// once. Of what comes faster than it can be said the newest of each kind is said.

import { html, signal } from "/assets/vendor/preact.js";

const APART_MS = 4_000;
const said = signal("");
const waiting = new Map(); // kind → words
let timer = 0;

export function announce(kind, words) {
  waiting.set(kind, words);
  timer ||= setTimeout(speak, said.peek() ? APART_MS : 150);
}

function speak() {
  said.value = [...waiting.values()].join(". ");
  waiting.clear();
  timer = setTimeout(rest, APART_MS);
}

function rest() {
  timer = 0;
  if (waiting.size) speak();
  else said.value = "";
}

export const Announcer = () =>
  html`<div id="announcer" class="visually-hidden" role="status" aria-live="polite" aria-atomic="true">${said.value}</div>`;
