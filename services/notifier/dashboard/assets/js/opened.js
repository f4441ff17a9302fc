// Which of the page's own dialogs is open: submit, palette, help, or none.

import { html, signal, useLayoutEffect, useRef } from "/assets/vendor/preact.js";

export const opened = signal("");
export const open = (name) => (opened.value = name);
export const close = () => (opened.value = "");

/** A dialog over the page, as long as it is the one that is open. What was focused before is focused again. */
export function Over({ name, title, kind = "", children }) {
  const box = useRef(null);
  const shown = opened.value === name;
  useLayoutEffect(() => {
    if (!shown) return;
    const from = document.activeElement;
    box.current.showModal();
    box.current.querySelector("textarea, input, select")?.focus();
    return () => from?.isConnected && from.focus();
  }, [shown]);
  if (!shown) return "";
  const outside = (event) => event.target === box.current && close();
  return html`<dialog ref=${box} class=${kind} aria-label=${title} onClose=${close} onClick=${outside}>${children}</dialog>`;
}
