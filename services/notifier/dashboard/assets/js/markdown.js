// Markdown as blocks and pieces of text, for a view to draw. Pure. HTML in it is text like any other, an image is its
// words, and a link leads to the web or nowhere.

const FENCE = /^ {0,3}(```+|~~~+)\s*(\S*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const ROW = /^\s*\|(.*)\|\s*$/;

/** [{kind: heading | code | list | quote | table | rule | paragraph, …}] */
export function blocksOf(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const [block, next] = blockAt(lines, at);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines, at) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at + 1, fence);
  const heading = HEADING.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1].length, text: heading[2] }, at + 1];
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (/^ {0,3}>/.test(line)) return gathered(lines, at, /^ {0,3}> ?/, (rest) => ({ kind: "quote", text: rest.join(" ") }));
  if (ITEM.test(line)) return list(lines, at);
  if (ROW.test(line) && /^[\s|:-]+$/.test(lines[at + 1] ?? "")) return table(lines, at);
  if (/^ {4}\S/.test(line)) return gathered(lines, at, /^ {4}/, (rest) => ({ kind: "code", text: rest.join("\n") }));
  return paragraph(lines, at);
}

function code(lines, from, [, marks]) {
  let until = from;
  while (until < lines.length && !lines[until].trim().startsWith(marks)) until += 1;
  return [{ kind: "code", text: lines.slice(from, until).join("\n") }, until + 1];
}

function gathered(lines, from, mark, made) {
  let until = from;
  while (until < lines.length && mark.test(lines[until])) until += 1;
  return [made(lines.slice(from, until).map((line) => line.replace(mark, ""))), until];
}

function list(lines, from) {
  const items = [];
  const ordered = ITEM.exec(lines[from])[2] !== undefined;
  let at = from;
  for (; at < lines.length && lines[at].trim(); at += 1) {
    const found = ITEM.exec(lines[at]);
    if (found) items.push({ text: found[3], depth: Math.min(3, Math.floor(found[1].length / 2)) });
    else items.at(-1).text += ` ${lines[at].trim()}`;
  }
  return [{ kind: "list", ordered, items }, at];
}

function table(lines, from) {
  const cells = (line) => ROW.exec(line)[1].split("|").map((cell) => cell.trim());
  let until = from + 2;
  while (until < lines.length && ROW.test(lines[until])) until += 1;
  return [{ kind: "table", head: cells(lines[from]), rows: lines.slice(from + 2, until).map(cells) }, until];
}

function paragraph(lines, from) {
  let until = from + 1;
  const ends = (line) => !line.trim() || FENCE.test(line) || HEADING.test(line) || ITEM.test(line);
  while (until < lines.length && !ends(lines[until])) until += 1;
  return [{ kind: "paragraph", text: lines.slice(from, until).map((line) => line.trim()).join(" ") }, until];
}

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|!?\[([^\]]*)\]\(\s*([^)\s]*)[^)]*\)/g;

/** [{kind: text | code | strong | em | link, text, href}] */
export function inlinesOf(text) {
  const found = [];
  let from = 0;
  for (const each of text.matchAll(INLINE)) {
    if (each.index > from) found.push({ kind: "text", text: text.slice(from, each.index) });
    from = each.index + each[0].length;
    found.push(inline(each));
  }
  if (from < text.length) found.push({ kind: "text", text: text.slice(from) });
  return found;
}

function inline([whole, code, strong, strongToo, em, words, href]) {
  if (code !== undefined) return { kind: "code", text: code };
  if (strong ?? strongToo) return { kind: "strong", text: strong ?? strongToo };
  if (em !== undefined) return { kind: "em", text: em };
  const leads = !whole.startsWith("!") && /^https?:\/\/\S/.test(href);
  return leads ? { kind: "link", text: words, href } : { kind: "text", text: words || href };
}
