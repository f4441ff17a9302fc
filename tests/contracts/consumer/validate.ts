// Says whether the AsyncAPI document is one: exit 1 and each error where it is not.
//
//   node validate.ts contracts/asyncapi.yaml

import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const [path = ""] = process.argv.slice(2);
const { document, diagnostics } = await new Parser().parse(readFileSync(path, "utf8"));
const errors = diagnostics.filter((found) => found.severity < 2);
for (const error of errors) console.error(`${error.path.join(".")}: ${error.message}`);
console.log(JSON.stringify({ messages: document?.allMessages().length ?? 0, channels: document?.allChannels().length ?? 0 }));
process.exitCode = document === undefined || errors.length > 0 ? 1 : 0;
