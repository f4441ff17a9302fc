import { html, useSignal } from "/assets/vendor/preact.js";
import { say } from "../parts.js";

const SHOWN_MS = 1_500;

/** Puts the text where it can be pasted from, and says so for a moment. */
export function CopyId({ text, what = "id", label }) {
  const copied = useSignal(false);
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(text);
      copied.value = true;
      setTimeout(() => (copied.value = false), SHOWN_MS);
    } catch {
      say(`This browser lets no page copy. The ${what}: ${text}`, "nudge");
    }
  };
  return html`<button type="button" class="bare copy above" title=${copied.value ? "Copied" : `Copy ${text}`}
    aria-label=${`Copy the ${what} ${text}`} onClick=${copy}>${label ?? ""}
    <svg viewBox="0 0 24 24" aria-hidden="true">${
      copied.value ? html`<path d="M5 12.5l4.5 4.5L19 7.5" />` : html`<path d="M9 9h11v11H9zM5 15H4V4h11v1" />`
    }</svg></button>`;
}
