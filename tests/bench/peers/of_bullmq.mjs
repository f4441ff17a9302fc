// BullMQ: `node of_bullmq.mjs worker` and `node of_bullmq.mjs client`, told and telling as `told.py` says.
import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Queue, Worker } = createRequire(`${process.env.BENCH_MODULES}/`)("bullmq");
const url = new URL(process.env.BENCH_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const now = () => (BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n).toString();

if (process.argv[2] === "worker") {
  const pipe = openSync(process.env.BENCH_STARTS, "w");
  new Worker("bench", async (job) => void writeSync(pipe, `${job.data} ${now()}\n`), { connection, concurrency: 8 });
} else {
  const queue = new Queue("bench", { connection });
  for await (const line of createInterface({ input: process.stdin })) {
    const [first, count] = line.split(" ").map(Number);
    const begun = now();
    for (let number = first; number < first + count; number++) await queue.add("nothing", number);
    process.stdout.write(`${begun} ${now()}\n`);
  }
}
