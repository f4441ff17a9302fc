// Filters that somebody has saved by name. This browser keeps them, each user's apart; what they mean is an address.

import { effect, signal } from "/assets/vendor/preact.js";
import { claims } from "./session.js";

const KEPT = "headgate.filters";
const MOST = 50;
const keyOf = () => `${KEPT}.${claims.value?.sub ?? ""}`;

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf()));
    return Array.isArray(kept) ? kept.filter(({ name, hash }) => typeof name === "string" && hash?.startsWith("#/jobs")) : [];
  } catch {
    return [];
  }
}

export const saved = signal([]); // [{name, hash}]
effect(() => void (saved.value = read()));

function keep(all) {
  saved.value = all;
  try {
    localStorage.setItem(keyOf(), JSON.stringify(all));
  } catch {
    // a browser that keeps nothing: they are there as long as the page is open
  }
}

/** Those with this one among them, by name; what had the name before is gone. */
export const withSaved = (all, one) =>
  [...all.filter(({ name }) => name !== one.name), one].sort((a, b) => a.name.localeCompare(b.name)).slice(0, MOST);

export const save = (name, hash) => keep(withSaved(saved.value, { name, hash }));
export const forget = (name) => keep(saved.value.filter((each) => each.name !== name));
