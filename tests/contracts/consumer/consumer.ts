// Counts how the jobs of a run ended, by project: what a team that bills or reports would do first.
//
//   node consumer.ts ASYNCAPI.yaml NATS_URL DURABLE UNTIL
//
// Subjects, stream and the consumer's settings come from the AsyncAPI document, types from the generated ones. It has
// read-only credentials and a durable consumer of its own, acknowledges what it has counted, and ends once it has
// counted UNTIL jobs. Started again under the same name it goes on where it was.

import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import { type ConsumerConfig, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { HeadgateEvent, JobCancelledEvent, JobFailedEvent, JobReadyEvent } from "../../../contracts/typescript/events.ts";

type End = JobReadyEvent | JobFailedEvent | JobCancelledEvent;

const ENDS: ReadonlySet<string> = new Set<End["type"]>([
  "dev.headgate.job.ready.v1",
  "dev.headgate.job.failed.v1",
  "dev.headgate.job.cancelled.v1",
]);
const [path = "", url = "", durable = "", until = "0"] = process.argv.slice(2);

function isEnd(event: HeadgateEvent): event is End {
  return ENDS.has(event.type);
}

interface JetStream {
  readonly stream: { readonly name: string };
  readonly consumer: { readonly config: ConsumerConfig };
}

async function facts(): Promise<JetStream & { filters: string[] }> {
  const { document } = await new Parser().parse(readFileSync(path, "utf8"));
  const said = document?.info().extensions().get("x-jetstream")?.value<JetStream>();
  if (document === undefined || said === undefined) throw new Error(`${path} does not say how Headgate's events are read`);
  const channels = document.allChannels().filterBy((channel) => channel.messages().all().some((each) => ENDS.has(each.name() ?? "")));
  return { ...said, filters: channels.map((channel) => (channel.address() ?? "").replaceAll(/\{\w+\}/g, "*")) };
}

async function count(): Promise<void> {
  const { stream: { name: stream }, consumer: { config }, filters } = await facts();
  const { username, password, host } = new URL(url);
  const nc = await connect({ servers: host, user: username, pass: decodeURIComponent(password) });
  const manager = await jetstreamManager(nc);
  await manager.consumers.add(stream, { ...config, durable_name: durable, filter_subjects: filters });
  const consumer = await jetstream(nc).consumers.get(stream, durable);
  const counted = new Map<string, Record<string, number>>();
  const seen = new Set<string>();
  while (seen.size < Number(until)) {
    const missing = Math.min(100, Number(until) - seen.size);
    for await (const message of await consumer.fetch({ max_messages: missing, expires: 5_000 })) {
      const event = message.json<HeadgateEvent>();
      if (isEnd(event) && !seen.has(event.id)) {
        seen.add(event.id);
        const project = counted.get(event.data.project_id) ?? {};
        counted.set(event.data.project_id, { ...project, [event.data.status]: (project[event.data.status] ?? 0) + 1 });
      }
      await message.ackAck();
    }
  }
  console.log(JSON.stringify(Object.fromEntries(counted)));
  await nc.close();
}

await count();
