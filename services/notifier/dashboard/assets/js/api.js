// Requests with the token. What the server refuses is a Refusal with its own words; 401 signs out.

import { signOut, token } from "./session.js";

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
    this.status = status;
    this.debugId = problem.debug_id ?? "";
    this.errors = problem.errors ?? [];
  }
}

export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  const told = { Authorization: `Bearer ${token.value}`, ...headers };
  if (body !== undefined) told["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(`/v1${path}`, { method, headers: told, signal, body: text }).catch(saidPlainly);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) signOut(problem.detail ?? "Your token is not valid any more.");
  throw new Refusal(response.status, problem);
}

/** A browser has words of its own for a server that it cannot reach, each another one. */
function saidPlainly(fault) {
  throw fault.name === "AbortError" ? fault : new Error("the server cannot be reached", { cause: fault });
}

export const get = async (path, options) => (await ask(path, options)).json();
export const send = async (method, path, body, headers) => {
  const response = await ask(path, { method, body, headers });
  return response.status === 204 ? null : response.json();
};

/** What a path answers, and how far the index is that it comes from, where that does not have all yet. */
export async function read(path) {
  const response = await ask(path);
  return { value: await response.json(), behind: response.headers.get("Headgate-Catching-Up") ?? "" };
}

/** A page of a list, and the way to the next one. */
export async function page(path) {
  const response = await ask(path);
  const next = /<(?:\/v1)?([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "")?.[1] ?? null;
  const behind = response.headers.get("Headgate-Catching-Up") ?? "";
  return { items: await response.json(), next: next?.replace(/^\/v1/, "") ?? null, behind };
}

const AT_ONCE = 100; // as many jobs as one question may name

/** The jobs of these ids, those that there are. */
export async function jobsOf(ids) {
  const found = [];
  for (let n = 0; n < ids.length; n += AT_ONCE) {
    const named = new URLSearchParams(ids.slice(n, n + AT_ONCE).map((id) => ["id", id]));
    found.push(...(await get(`/jobs?limit=${AT_ONCE}&${named}`)));
  }
  return found;
}

export async function download(path, name) {
  const blob = await (await ask(path)).blob();
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
