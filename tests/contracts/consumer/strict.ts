// Says whether each schema of an event is one in Ajv's strict mode, and whether its golden example follows it: exit 1 and
// each error where not.
//
//   node strict.ts contracts

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const [root = ""] = process.argv.slice(2);
const read = (kind: string, name: string) => JSON.parse(readFileSync(join(root, kind, name), "utf8"));
const ajv = new Ajv2020({ strict: true, strictRequired: true, allErrors: true });
addFormats.default(ajv);
const names = readdirSync(join(root, "schemas"));
for (const name of names) ajv.addSchema(read("schemas", name));
const errors: string[] = [];
for (const name of names) {
  const { $id } = read("schemas", name);
  const example = read("examples", name);
  try {
    for (const [schema, value] of [[$id, example], [example.dataschema, example.data]]) {
      const validate = ajv.getSchema(schema);
      if (validate === undefined) errors.push(`${name}: ${schema} is no schema`);
      else if (!validate(value)) errors.push(`${name}: ${ajv.errorsText(validate.errors)}`);
      else if (validate({})) errors.push(`${name}: ${schema} takes anything`);
    }
  } catch (error) {
    errors.push(`${name}: ${error}`);
  }
}
for (const error of errors) console.error(error);
console.log(JSON.stringify({ schemas: names.length }));
process.exitCode = errors.length > 0 ? 1 : 0;
