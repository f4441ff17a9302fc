// A line of a build's log in its colours: pieces of text, each with the classes that draw it. Colours alone come through;
// whatever else a terminal would obey is no text either.

const SEQUENCE = /\x1b\[([0-9;:]*)m|\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The line without its colours: what is searched and copied. */
export const bare = (line) => line.replace(SEQUENCE, "");

/** [{text, kind}], in order; `kind` is a list of classes. */
export function pieces(line) {
  const found = [];
  let style = {},
    from = 0;
  const add = (text) => text && found.push({ text, kind: Object.values(style).filter(Boolean).join(" ") });
  for (const each of line.matchAll(SEQUENCE)) {
    add(line.slice(from, each.index));
    from = each.index + each[0].length;
    if (each[1] !== undefined) style = styled(style, each[1]);
  }
  add(line.slice(from));
  return found;
}

function styled(style, codes) {
  let next = { ...style };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let n = 0; n < numbers.length; n += 1) {
    const code = numbers[n];
    if (code === 38 || code === 48) {
      const [kind, index] = numbers.slice(n + 1);
      if (code === 38 && kind === 5 && index < 16) next = one(next, index < 8 ? 30 + index : 82 + index);
      n += kind === 5 ? 2 : 4; // of 256 the first 16 have names, others and all colours are passed over
    } else {
      next = one(next, code);
    }
  }
  return next;
}

function one(style, code) {
  if (code === 0) return {};
  if (code === 1) return { ...style, weight: "ansi-bold" };
  if (code === 2) return { ...style, weight: "ansi-dim" };
  if (code === 3) return { ...style, slant: "ansi-italic" };
  if (code === 4) return { ...style, line: "ansi-underline" };
  if (code === 23) return { ...style, slant: "" };
  if (code === 24) return { ...style, line: "" };
  if (code === 22) return { ...style, weight: "" };
  if (code === 39) return { ...style, ink: "" };
  const name = NAMES[code % 10];
  const isInk = (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
  return isInk ? { ...style, ink: `ansi-${name}` } : style;
}
