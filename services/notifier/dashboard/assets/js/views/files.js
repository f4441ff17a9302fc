import { html, useEffect, useSignal } from "/assets/vendor/preact.js";
import { ask, download, get } from "../api.js";
import { blocksOf, inlinesOf } from "../markdown.js";
import { Search, sayFault } from "../parts.js";
import { bytes, plural } from "../words.js";
import { Copy } from "./copy.js";

const PREVIEWED_BYTES = 1024 * 1024; // of text; images up to what is sent of one file
const SHOWN_CHARS = 200_000;
const SEARCHED = 12; // files: below it one sees them all

/** What the result holds, and one of its files at a time, before all of it is downloaded. */
export function Files({ job }) {
  const found = useSignal(null),
    fault = useSignal(null),
    chosen = useSignal(null),
    wanted = useSignal("");
  useEffect(() => {
    if (!job.result_url) return;
    get(`/jobs/${job.id}/files`).then(
      (told) => {
        found.value = named(told.files);
        chosen.value ??= found.value.find(({ name }) => name.toLowerCase() === "readme.md") ?? null;
      },
      (problem) => (fault.value = problem),
    );
  }, [job.id, job.result_url]);
  if (!job.result_url || (found.value === null && fault.value === null)) return "";
  const files = found.value ?? [];
  const shown = files.filter(({ path }) => path.toLowerCase().includes(wanted.value.toLowerCase()));
  return html`<section class="card" aria-labelledby="files-title">
    <div class="head"><h2 id="files-title">Files <span class="soft number">${fault.value ? "" : files.length}</span></h2>
      ${
        files.length > SEARCHED &&
        html`<div class="row fit"><${Search} id="files-search" label="Search the files" wanted=${wanted} /></div>`
      }</div>
    ${fault.value && html`<p class="soft">${fault.value.message}.</p>`}
    ${found.value && html`<div class="files">
      <ul class="file-list" aria-label="Files of the result">
        ${shown.map((file) => html`<${Row} key=${file.path} file=${file} chosen=${chosen} />`)}</ul>
      <div class="file-shown">${
        chosen.value
          ? html`<${Preview} key=${chosen.value.path} job=${job} file=${chosen.value} />`
          : html`<p class="soft">Choose a file to look into it.</p>`
      }</div></div>`}
  </section>`;
}

/** Each file with its name below the one folder that all are in, where there is one. */
function named(files) {
  const folder = /^[^/]+\//.exec(files[0]?.path ?? "")?.[0] ?? "";
  const all = files.every(({ path }) => path.startsWith(folder));
  return files.map((file) => ({ ...file, name: all ? file.path.slice(folder.length) : file.path }));
}

function Row({ file, chosen }) {
  const cut = file.name.lastIndexOf("/") + 1;
  const is = chosen.value?.path === file.path;
  return html`<li><button type="button" class="bare file" aria-pressed=${is ? "true" : "false"} onClick=${() => (chosen.value = file)}>
    <span class="cut" title=${file.path}><span class="soft">${file.name.slice(0, cut)}</span>${file.name.slice(cut)}</span>
    <span class="soft number">${bytes(file.size)}</span></button></li>`;
}

const isText = ({ type }) => type.startsWith("text/") || type === "application/json";
const isImage = ({ type }) => type.startsWith("image/");
const pathOf = (job, file) => `/jobs/${job.id}/files/${file.path.split("/").map(encodeURIComponent).join("/")}`;

function Preview({ job, file }) {
  const text = useSignal(null),
    image = useSignal(null),
    fault = useSignal(null);
  const large = isText(file) && file.size > PREVIEWED_BYTES;
  useEffect(() => {
    if (large || !(isText(file) || isImage(file))) return undefined;
    let made = null;
    const look = async () => {
      const answer = await ask(pathOf(job, file));
      if (isText(file)) text.value = await answer.text();
      else image.value = made = URL.createObjectURL(await answer.blob());
    };
    look().catch((problem) => (fault.value = problem));
    return () => made && URL.revokeObjectURL(made);
  }, [file.path]);
  const name = file.path.slice(file.path.lastIndexOf("/") + 1);
  return html`<div class="head"><strong class="cut">${name}</strong><div class="row">
      ${text.value !== null && html`<${Copy} of=${text.value} label=${`Copy ${name}`} look="quiet small">Copy</>`}
      <button class="quiet small" onClick=${() => download(pathOf(job, file), name).catch(sayFault)}>Download</button></div></div>
    ${fault.value && html`<p class="wrong">${fault.value.message}</p>`}
    ${image.value && html`<img class="file-image" src=${image.value} alt=${file.path} />`}
    ${text.value !== null && html`<${Text} file=${file} text=${text.value} />`}
    ${large && html`<p class="soft">${bytes(file.size)} of text: download it to read it.</p>`}
    ${!isText(file) && !isImage(file) && html`<p class="soft">${bytes(file.size)} that are no text: nothing to see here.</p>`}`;
}

function Text({ file, text }) {
  if (file.type.startsWith("text/markdown")) return html`<div class="markdown">${blocksOf(text).map(Block)}</div>`;
  const shown = text.slice(0, SHOWN_CHARS);
  return html`<pre class="file-text" tabindex="0">${shown}</pre>
    ${text.length > shown.length && html`<p class="soft">The first ${plural(SHOWN_CHARS, "character")}; the download has all.</p>`}`;
}

// ── Markdown, drawn: a heading of a file is below those of the page ──

const inlines = (text) =>
  inlinesOf(text).map((piece) => {
    if (piece.kind === "code") return html`<code>${piece.text}</code>`;
    if (piece.kind === "strong") return html`<strong>${piece.text}</strong>`;
    if (piece.kind === "em") return html`<em>${piece.text}</em>`;
    if (piece.kind === "link") return html`<a href=${piece.href} target="_blank" rel="noopener noreferrer">${piece.text}</a>`;
    return piece.text;
  });

function Block(block) {
  switch (block.kind) {
    case "heading":
      return html`<p class=${`heading level-${Math.min(3, block.level)}`} role="heading" aria-level=${Math.min(6, block.level + 2)}>
        ${inlines(block.text)}</p>`;
    case "code":
      return html`<pre tabindex="0">${block.text}</pre>`;
    case "list": {
      const items = block.items.map(({ text, depth }) => html`<li class=${`depth-${depth}`}>${inlines(text)}</li>`);
      return block.ordered ? html`<ol>${items}</ol>` : html`<ul>${items}</ul>`;
    }
    case "quote":
      return html`<blockquote>${inlines(block.text)}</blockquote>`;
    case "table":
      return html`<div class="scrolls"><table><thead><tr>${block.head.map((cell) => html`<th>${inlines(cell)}</th>`)}</tr></thead>
        <tbody>${block.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inlines(cell)}</td>`)}</tr>`)}</tbody></table></div>`;
    case "rule":
      return html`<hr />`;
    default:
      return html`<p>${inlines(block.text)}</p>`;
  }
}
