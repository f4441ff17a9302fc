// The iterations of a job from its events: how far each stage came, from when to when. Pure.

import { isRunning, stageNames } from "./state.js";

/** [{number, stages: {code: {state, from, until}}, asked, granted}]; state: done, now, broken (checks that did not
 *  pass), failed, left or ready. */
export function iterationsOf(events, job) {
  const iterations = [];
  let names = stageNames(job);
  for (const event of events) {
    const last = iterations.at(-1);
    if (event.event === "started") names = (event.stages ?? []).map(({ name }) => name);
    else if (event.event === "stage") enter(iterations, event, names);
    else if (last && event.event === "awaiting_confirmation" && event.question?.kind === "ask")
      leave(last, event.at, "left");
    else if (last && event.event === "awaiting_confirmation")
      ((last.asked = event.at), leave(last, event.at, "broken"));
    else if (last && event.event === "confirmed") last.granted = event.batch;
    else if (last && event.event === "given_back") leave(last, event.at, "left");
    else if (last && event.event === "ready") leave(last, event.at, "ready");
    else if (last && event.event === "failed")
      leave(last, event.at, last.stages[names.at(-1)]?.state === "now" ? "broken" : "failed");
    else if (last && event.event === "cancelled") leave(last, event.at, "left");
  }
  if (iterations.length && !isRunning(job)) leave(iterations.at(-1), null, "left");
  return iterations;
}

/** A stage begins, so what was under way is over: well, or with checks that did not pass. */
function enter(iterations, { stage, iteration, at, restored }, names) {
  const before = iterations.at(-1);
  if (before) leave(before, at, before.number < iteration ? "broken" : "done");
  while (iterations.length < iteration) iterations.push({ number: iterations.length + 1, stages: {}, asked: null, granted: null });
  const { stages } = iterations[iteration - 1];
  for (const name of names.slice(names.indexOf(stage))) delete stages[name]; // an attempt that begins again
  for (const name of names.slice(0, names.indexOf(stage)))
    stages[name] ??= { state: "done", from: null, until: null };
  stages[stage] = { state: "now", from: at, until: null, restored: Boolean(restored) };
}

function leave(iteration, at, state) {
  for (const stage of Object.values(iteration.stages)) {
    if (stage.state === "now") Object.assign(stage, { state, until: at });
  }
}

/** [[stage, {input, output}]]: the tokens of each stage, over all iterations and attempts. An event tells those of the stage
 *  before it. */
export function tokensOf(events) {
  const stages = new Map();
  let stage = null;
  for (const event of events) {
    for (const { input_tokens, output_tokens } of event.usage ?? []) {
      const sum = stages.get(stage) ?? { input: 0, output: 0 };
      stages.set(stage, { input: sum.input + input_tokens, output: sum.output + output_tokens });
    }
    if (event.event === "stage") stage = event.stage;
  }
  return [...stages];
}

/** How far the stages of the current iteration have come, from the one that the job is in. */
export function stagesOf(job) {
  const names = stageNames(job),
    at = names.indexOf(job.stage);
  return Object.fromEntries(
    names.map((stage, n) => [stage, job.status === "ready" || n < at ? "done" : n === at ? "now" : ""]),
  );
}
