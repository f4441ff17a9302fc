// What stands around every view: where one is, who one is, and how the connection stands.

import { effect, html } from "/assets/vendor/preact.js";
import { announce } from "./announce.js";
import { offsetWords, zoneWords } from "./days.js";
import { open } from "./opened.js";
import { route } from "./route.js";
import { claims, isOperator, signOut, token } from "./session.js";
import { connection, tryNow } from "./stream.js";
import { Menu } from "./views/menu.js";
import { date, tierWord } from "./words.js";

export const WORDS = { jobs: "Jobs", queue: "Queue", groups: "Groups", workers: "Workers", insight: "Insight" };

export function Bar() {
  const names = isOperator.value ? Object.keys(WORDS) : ["jobs"];
  return html`<header class="bar">
    <a class="skip" href="#main" onClick=${toMain}>To the content</a>
    <a class="brand" href="#/jobs"><img src="/assets/mark.svg" alt="" width="26" height="26" />Headgate</a>
    ${
      token.value &&
      html`<nav class=${names.length === 1 ? "single" : ""} aria-label="Views">
      ${names.map(
        (name) => html`<a href=${`#/${name}`} aria-current=${route.value.name === name ? "page" : undefined}>
      ${WORDS[name]}</a>`,
      )}</nav>
      <div class="end"><span class="zone soft" title=${`All times are in ${zoneWords()}`}><span>Times in </span>${offsetWords()}</span>
        <${Connection} /><button class="bare palette-opener" onClick=${() => open("palette")}
        aria-keyshortcuts="Control+K" aria-label="Go anywhere: Ctrl K"><kbd>Ctrl K</kbd></button><${Account} /></div>`
    }
  </header>
  ${
    token.value && connection.value === "lost"
      ? html`<div class="lost-bar" id="lost"><span>
    <strong>Connection lost.</strong> Trying again; what you see may be old.</span>
    <button class="quiet danger small" onClick=${tryNow}>Try now</button></div>`
      : ""
  }`;
}

function toMain(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Connection() {
  const state = connection.value;
  const words = { live: "Live", lost: "Offline", none: "" };
  return html`<span id="connection">${
    state === "none"
      ? ""
      : html`<span class=${`badge dot ${state}`}>${words[state]}
    </span>`
  }</span>`;
}

let wasLost = false;
effect(() => {
  const lost = connection.value === "lost";
  if (lost !== wasLost) announce("connection", lost ? "Connection lost, trying again" : "Connected again");
  wasLost = lost;
});

function Account() {
  const { sub = "", tier, exp } = claims.value ?? {};
  return html`<${Menu} label=${sub}>
      <p><strong>${sub}</strong><br /><span class="soft">${tierWord(tier)}${isOperator.value ? ", operator" : ""}</span>
        </p>
      ${exp && html`<p class="soft">Signed in until ${date(exp * 1000)}</p>`}
      <p class="soft">All times are in ${zoneWords()}</p>
      <button class="quiet small" onClick=${() => signOut()}>Sign out</button>
  </>`;
}
