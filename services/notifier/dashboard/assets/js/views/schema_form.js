// The pipelines that there are, and a form for the input of any of them, made from its JSON Schema.

import { effect, html, signal } from "/assets/vendor/preact.js";
import { get } from "../api.js";
import { token } from "../session.js";

const LONG = 200; // characters: more than a line shows
const DEEPEST = 3; // of objects within objects: what lies deeper is typed as JSON
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

const WHOLE_INPUT = { path: [], title: "", preset: undefined, required: true };

/** What each part of the input is: the schema that counts, its name in words, and how it is typed in. The parts of an
 *  object within it are fields of their own, where their names are known. */
export const fieldsOf = (schema) => fieldsIn(schema ?? {}, schema ?? {}, WHOLE_INPUT);

function fieldsIn(object, schema, above) {
  return Object.entries(partsOf(object, schema)).flatMap(([own, part]) => {
    const meant = { ...resolved(part, schema), ...(part.description ? { description: part.description } : {}) };
    const path = [...above.path, own],
      title = [above.title, part.title ?? meant.title ?? own].filter(Boolean).join(": "),
      preset = above.preset?.[own] ?? part.default,
      required = above.required && (object.required ?? []).includes(own);
    if (path.length < DEEPEST && Object.keys(partsOf(meant, schema)).length)
      return fieldsIn(meant, schema, { path, title, preset, required });
    const told = { name: path.join("."), path, title, required, preset, isWithin: above.required };
    return [{ ...told, kind: kindOf(meant), ...about(meant) }];
  });
}

/** The parts that an object has by name: its properties, or one for each name that a map may have. */
function partsOf({ properties, propertyNames, additionalProperties }, schema) {
  if (properties) return properties;
  const names = resolved(propertyNames ?? {}, schema).enum ?? [];
  return Object.fromEntries(names.map((name) => [name, additionalProperties ?? {}]));
}

const about = ({ description, enum: choices, examples, minimum, maximum, maxLength, type }) => ({
  description,
  choices,
  examples,
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
  const input = Object.create(null); // so that no name means more than itself
  for (const field of fieldsOf(schema)) {
    const text = typed[keyOf(field.name)] ?? presetOf(field);
    if (text === "" && !field.isWithin) continue;
    const object = field.path.slice(0, -1).reduce((above, name) => (above[name] ??= Object.create(null)), input);
    if (text !== "") object[field.path.at(-1)] = valueOf(field, text);
  }
  return input;
}

/** What a new form begins with: the first example of each field that has to be filled in. */
export const begun = (schema) =>
  Object.fromEntries(
    fieldsOf(schema)
      .filter(({ required, examples, preset }) => required && examples?.length && preset === undefined)
      .map((field) => [keyOf(field.name), presetOf({ ...field, preset: field.examples[0] })]),
  );

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
  return html`${schema.description && html`<p class="soft">${schema.description}</p>`}
    <div class="fields">${fieldsOf(schema).map(
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
    <${Examples} field=${field} id=${id} />
    ${notes.length > 0 && html`<p class=${faults.length ? "wrong" : "soft"} id="${id}-notes">${notes.join(". ")}</p>`}
  </div>`;
}

/** To be taken with a click: as if somebody had typed it. */
function Examples({ field: { kind, examples }, id }) {
  if (!(examples?.length > 1 && (kind === "line" || kind === "text"))) return "";
  const take = (text) => () => {
    const control = document.getElementById(id);
    control.value = text;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return html`<div class="chips" role="group" aria-label="Examples">
    ${examples.map((text) => html`<button type="button" class="quiet" onClick=${take(text)}>${text}</button>`)}</div>`;
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
