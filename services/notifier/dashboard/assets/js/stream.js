// One stream over fetch, which can carry the token. A lost one is opened again with the last id that was seen and the
// last line of the log, so nothing is missed and nothing comes twice; how it stands is a signal that the page shows.

import { computed, signal } from "/assets/vendor/preact.js";
import { ask, Refusal } from "./api.js";

const SILENT_MS = 40_000; // comments come every 15 s
const GIVE_UP = new Set([401, 403, 404]);
const states = signal(new Map());
const wakes = new EventTarget();

/** live, lost, or nothing is open. */
export const connection = computed(() => {
  const all = [...states.value.values()];
  return all.includes("lost") ? "lost" : all.includes("live") ? "live" : "none";
});

/** Try what is lost again at once. */
export const tryNow = () => wakes.dispatchEvent(new Event("wake"));
addEventListener("online", tryNow);

function note(key, state) {
  const next = new Map(states.value);
  if (state === null) next.delete(key);
  else next.set(key, state);
  states.value = next;
}

/** Follow the path until stopped or until the stream has ended; gives the function that stops it. */
export function follow(path, hear, { lines = false } = {}) {
  const key = Symbol(path);
  const stopping = new AbortController();
  run(path, hear, lines, key, stopping.signal).finally(() => note(key, null));
  return () => stopping.abort();
}

async function run(path, hear, lines, key, stopping) {
  let lastId = "",
    lastLine = 0,
    failures = 0;
  while (!stopping.aborted) {
    try {
      const asked = lines ? `${path}?log_after=${lastLine}` : path;
      const answer = await ask(asked, { headers: lastId ? { "Last-Event-ID": lastId } : {}, signal: stopping });
      if (answer.status === 204) return;
      note(key, "live");
      for await (const { kind, data, id } of events(answer.body)) {
        failures = 0;
        if (id) lastId = id;
        if (kind === "log") lastLine = data.seq;
        if (kind === "resync") lastLine = 0;
        hear(kind, data);
        if (kind === "end") return;
      }
    } catch (fault) {
      if (stopping.aborted || (fault instanceof Refusal && GIVE_UP.has(fault.status))) return;
    }
    if (stopping.aborted) return;
    note(key, "lost");
    await pause(Math.min(8_000, 400 * 2 ** failures++) * (0.5 + Math.random()), stopping);
  }
}

/** The events of a stream. One that has fallen silent is over: its other end is gone. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "",
    silence = 0;
  try {
    for (;;) {
      silence = setTimeout(() => reader.cancel(), SILENT_MS);
      const { value, done } = await reader.read();
      clearTimeout(silence);
      if (done) return;
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event !== null) yield event;
      }
    }
  } finally {
    clearTimeout(silence);
    reader.cancel().catch(() => {});
  }
}

/** One block of a stream; null for comments and `retry:`. */
export function parsed(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
  }
  return fields.event ? { kind: fields.event, id: fields.id ?? "", data: JSON.parse(fields.data) } : null;
}

function pause(ms, stopping) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      stopping.removeEventListener("abort", over);
      wakes.removeEventListener("wake", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    stopping.addEventListener("abort", over);
    wakes.addEventListener("wake", over);
  });
}
