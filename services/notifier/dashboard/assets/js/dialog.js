// A question before something that others feel: what will happen, what it needs, and why it is done.

import { html, signal, useEffect, useRef } from "/assets/vendor/preact.js";
import { say, sayFault } from "./parts.js";

const asked = signal(null);

/** Ask for a yes, a reason, and what `Fields` asks for: {reason, …}; null where it was let go. */
export function askFirst({ title, text, act, danger = false, Fields = null, reason = true }) {
  const from = document.activeElement;
  return new Promise((resolve) => {
    const done = (answer) => {
      asked.value = null;
      if (from?.isConnected) from.focus();
      resolve(answer);
    };
    asked.value = { title, text, act, danger, Fields, reason, done };
  });
}

/** Ask, and do it where the answer is yes. `said` makes words of what came of it and of the answer. */
export async function askThenDo(question, act, said) {
  const answer = await askFirst(question);
  if (answer !== null) await act(answer).then((told) => say(said(told, answer)), sayFault);
}

export function Dialog() {
  const box = useRef(null);
  const question = asked.value;
  useEffect(() => {
    if (question) box.current?.showModal();
  }, [question]);
  if (!question) return "";
  const { title, text, act, danger, Fields, reason, done } = question;
  const submit = (event) => {
    event.preventDefault();
    done(Object.fromEntries(new FormData(event.target)));
  };
  const close = () => asked.value === question && done(null);
  return html`<dialog ref=${box} aria-labelledby="dialog-title" aria-describedby="dialog-text" onClose=${close}>
    <h2 id="dialog-title">${title}</h2>
    <p id="dialog-text">${text}</p>
    <form class="stack" onSubmit=${submit} autocomplete="off">
      ${Fields && html`<${Fields} />`}
      ${
        reason &&
        html`<div><label for="dialog-reason">Why (others will read it)</label>
        <input id="dialog-reason" name="reason" maxlength="500" /></div>`
      }
      <div class="row"><button class=${danger ? "danger" : ""}>${act}</button>
        <button type="button" class="quiet" onClick=${() => done(null)}>Leave it</button></div>
    </form>
  </dialog>`;
}
