import { html, useSignal } from "/assets/vendor/preact.js";
import { say } from "../parts.js";

const SHOWN_MS = 1_500;

/** Puts `of` (a text, or what gives one) where it can be pasted from, and says so for a moment. Inside it stands what is
 * copied, or what it does; without anything inside it is an icon. Where a browser lets no page copy, it says that. */
export function Copy({ of, label, look = "bare copy above", children }) {
  const copied = useSignal(false);
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    const text = typeof of === "string" ? of : of();
    try {
      await navigator.clipboard.writeText(text);
      copied.value = true;
      setTimeout(() => (copied.value = false), SHOWN_MS);
    } catch {
      say(`This browser lets no page copy${text.length < 100 ? `: ${text}` : ". Select the text."}`, "nudge");
    }
  };
  return html`<button type="button" class=${look} title=${copied.value ? "Copied" : label} aria-label=${label}
    onClick=${copy}>${typeof children === "string" && copied.value ? "Copied" : children}${
      typeof children === "string" ||
      html`<svg viewBox="0 0 24 24" aria-hidden="true">${
        copied.value ? html`<path d="M5 12.5l4.5 4.5L19 7.5" />` : html`<path d="M9 9h11v11H9zM5 15H4V4h11v1" />`
      }</svg>`
    }</button>`;
}
