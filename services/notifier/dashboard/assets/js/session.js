// Who is signed in. The token stays in this tab; a link of `headgate up` brings one behind the #, which no server sees.

import { computed, signal } from "/assets/vendor/preact.js";

const KEPT = "headgate.token";

function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (letter) =>
      letter.charCodeAt(0),
    );
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

export const token = signal(sessionStorage.getItem(KEPT) ?? "");
export const claims = computed(() => claimsOf(token.value));
export const scopes = computed(() => String(claims.value?.scope ?? "").split(" "));
export const isOperator = computed(() => scopes.value.includes("ops"));
export const signedOutBecause = signal("");

export function signIn(text) {
  token.value = text.trim();
  signedOutBecause.value = "";
  sessionStorage.setItem(KEPT, token.value);
}

export function signOut(reason = "") {
  signedOutBecause.value = reason;
  token.value = "";
  sessionStorage.removeItem(KEPT);
}

export const offered = signal(""); // a token that a link has brought where somebody is signed in: they are asked first
export const offeredTo = computed(() => claimsOf(offered.value)?.sub ?? "somebody else");

/** A link that brings a token signs in where nobody is; the token does not stay in the address. */
function takeFromAddress() {
  const found = /^#token=([\w.-]+)$/.exec(location.hash);
  if (found === null) return;
  history.replaceState(null, "", `${location.pathname}#/jobs`);
  if (token.value && token.value !== found[1]) offered.value = found[1];
  else signIn(found[1]);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function takeOffered() {
  signIn(offered.value);
  offered.value = "";
}

takeFromAddress();
addEventListener("hashchange", takeFromAddress);
