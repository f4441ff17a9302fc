// The pipelines that there are, and a form for the input of any of them, made from its JSON Schema.

import { effect, html, signal } from "/assets/vendor/preact.js";
import { get } from "../api.js";
import { token } from "../session.js";

const LONG = 200; // characters: more than a line shows
const BUILT_IN = [
  { name: "build", pool: null },
  { name: "rehearsal", pool: null },
];
export const offered = signal(BUILT_IN);
effect(() => void (token.value && lookAgain()));

/** At what there is now: workers may have announced more. */
export async function lookAgain() {
  try {
    offered.value = await get("/pipelines");
  } catch {
    offered.value = BUILT_IN; // these are always there
  }
}

/** What an option of the list is called; the pool is said where it is not the default one. */
export const labelOf = ({ name, pool }) => (pool && pool !== "default" ? `${name} (${pool})` : name);
export const offeredAs = (label) => offered.value.find((each) => labelOf(each) === label) ?? { name: label, pool: null };

/** Each once: the same pipeline of several pools is several. */
export const labels = () => [...new Set([...BUILT_IN, ...offered.value].map(labelOf))].sort();

/** What one part of the input is: the schema that counts, its name in words, and how it is typed in. */
export function fieldsOf(schema) {
  const required = schema?.required ?? [];
  return Object.entries(schema?.properties ?? {}).map(([name, part]) => {
    const meant = { ...resolved(part, schema), ...(part.description ? { description: part.description } : {}) };
    const title = part.title ?? meant.title ?? name;
    return { name, title, required: required.includes(name), kind: kindOf(meant), preset: part.default, ...about(meant) };
  });
}

const about = ({ description, enum: choices, minimum, maximum, maxLength, type }) => ({
  description,
  choices,
  minimum,
  maximum,
  maxLength,
  step: type === "integer" ? 1 : "any",
});

/** Behind a reference and beside null. */
function resolved(part, schema) {
  const named = /^#\/\$defs\/(.+)$/.exec(part.$ref ?? "")?.[1];
  if (named) return resolved({ ...schema.$defs?.[named] }, schema);
  const others = (part.anyOf ?? []).filter((each) => each.type !== "null");
  return others.length === 1 ? { ...part, ...resolved(others[0], schema), title: part.title } : part;
}

function kindOf({ type, enum: choices, maxLength }) {
  if (choices?.every((each) => typeof each === "string")) return "choice";
  if (type === "boolean") return "yes or no";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return maxLength === undefined || maxLength <= LONG ? "line" : "text";
  return "json";
}

const keyOf = (name) => `input.${name}`; // in the draft, and in what the server says of a field
const WHOLE = "input";

/** The input that is meant by what was typed. What was left empty is left out. */
export function inputFrom(schema, typed) {
  if (!schema?.properties) return read(typed[WHOLE] || "{}", "The input");
  const said = fieldsOf(schema).map((field) => [field, typed[keyOf(field.name)] ?? presetOf(field)]);
  return Object.fromEntries(said.filter(([, text]) => text !== "").map(([field, text]) => [field.name, valueOf(field, text)]));
}

function valueOf({ kind, title }, text) {
  if (kind === "number") return Number(text);
  if (kind === "yes or no") return text === "yes";
  return kind === "json" ? read(text, title) : text;
}

function read(text, title) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${title} is no JSON: write numbers and "texts", [lists] and {"names": "values"}`);
  }
}

function presetOf({ kind, preset }) {
  if (preset === undefined || preset === null) return "";
  if (kind === "yes or no") return preset ? "yes" : "no";
  return kind === "json" ? JSON.stringify(preset) : String(preset);
}

/** The fields of the input, with what the server says against each. `of`: what tells these from others of the page. */
export function SchemaFields({ schema, typed, faults = [], of = "f" }) {
  if (!schema?.properties) {
    return html`<div><label for="f-input">Input, as JSON</label>
      <textarea id="f-input" name=${WHOLE} class="code" placeholder="{}" value=${typed[WHOLE] ?? ""}></textarea></div>`;
  }
  const said = (name) => faults.filter(({ field }) => field === keyOf(name) || field.startsWith(`${keyOf(name)}.`));
  return html`<div class="fields">${fieldsOf(schema).map(
    (field) =>
      html`<${Field} key=${field.name} of=${of} field=${field} text=${typed[keyOf(field.name)] ?? presetOf(field)}
        faults=${said(field.name)} />`,
  )}</div>`;
}

function Field({ of, field, text, faults }) {
  const id = `${of}-${field.name}`;
  const notes = [field.description, ...faults.map(({ message }) => message)].filter(Boolean);
  const told = { id, name: keyOf(field.name), required: field.required, value: text };
  if (notes.length) told["aria-describedby"] = `${id}-notes`;
  return html`<div class=${field.kind === "text" || field.kind === "json" ? "wide" : ""}>
    <label for=${id}>${field.title}</label><${Control} field=${field} told=${told} />
    ${notes.length > 0 && html`<p class=${faults.length ? "wrong" : "soft"} id="${id}-notes">${notes.join(". ")}</p>`}
  </div>`;
}

function Control({ field, told }) {
  const { kind, choices, minimum, maximum, maxLength, step } = field;
  const option = (name) => html`<option value=${name}>${name}</option>`;
  const empty = !field.required && html`<option value="">not set</option>`;
  if (kind === "choice") return html`<select ...${told}>${empty}${choices.map(option)}</select>`;
  if (kind === "yes or no") return html`<select ...${told}>${empty}${["yes", "no"].map(option)}</select>`;
  if (kind === "number") return html`<input type="number" min=${minimum} max=${maximum} step=${step} ...${told} />`;
  if (kind === "line") return html`<input maxlength=${maxLength} ...${told} />`;
  return html`<textarea maxlength=${maxLength} class=${kind === "json" ? "code" : ""} ...${told}></textarea>`;
}
