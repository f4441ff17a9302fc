import { html, useEffect, useRef, useSignal } from "/assets/vendor/preact.js";
import { Drawing } from "../drawing.js";
import { claims, offered, offeredTo, signedOutBecause, signIn, takeOffered } from "../session.js";

const NO_TOKEN =
  "That is no token: one has three parts with dots between them. Copy the whole line that headgate token prints.";

export function SignIn() {
  const wrong = useSignal("");
  const submit = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("token").trim();
    if (text.split(".").length === 3) signIn(text);
    else wrong.value = NO_TOKEN;
  };
  const said = wrong.value || signedOutBecause.value;
  return html`<div class="door">
    <div class="stack">
      <${Drawing} />
      <p class="promise">Work slows down. It never halts, and nothing accepted is ever lost.</p>
      <p>Headgate takes long, expensive jobs in, runs as many at once as there is room for, and shows everybody where
        theirs stand: the place, the reason, the time, and every stage while it runs.</p>
    </div>
    <section class="card" aria-labelledby="sign-in-title">
      <h1 class="title" id="sign-in-title">Sign in to Headgate</h1>
      <form class="stack" onSubmit=${submit} autocomplete="off">
        <div>
          <label for="token">Token</label>
          <textarea id="token" name="token" class="mono" rows="4" required spellcheck="false"
            aria-describedby="token-help"></textarea>
        </div>
        <div role="alert">${said ? html`<p class="wrong">${said}</p>` : ""}</div>
        <div class="row"><button>Sign in</button></div>
      </form>
      <div id="token-help" class="stack tight soft">
        <p><strong>Where is it?</strong> <code>make up</code> prints two, a user's and an operator's, each with a link
          that signs in by itself. For another user: <code>.venv/bin/headgate token --user you --tier partner</code></p>
      </div>
    </section>
  </div>`;
}

/** A link wants to sign somebody in where another one is: nobody is made another without a word. */
export function Offer() {
  const box = useRef(null);
  useEffect(() => {
    if (offered.value) box.current?.showModal();
  }, [offered.value]);
  if (!offered.value) return "";
  const stay = () => (offered.value = "");
  return html`<dialog ref=${box} aria-labelledby="offer-title" aria-describedby="offer-text" onClose=${stay}>
    <h2 id="offer-title">Sign in as ${offeredTo.value}?</h2>
    <p id="offer-text">A link wants to sign you in as ${offeredTo.value}. You are signed in as ${claims.value?.sub}: what you
      submit then is theirs.</p>
    <div class="row"><button onClick=${takeOffered}>Sign in as ${offeredTo.value}</button>
      <button class="quiet" onClick=${stay}>Stay ${claims.value?.sub}</button></div>
  </dialog>`;
}
