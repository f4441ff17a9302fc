// Puts the page together: the view that the address names, inside the frame, fed by one stream.

import { effect, html, render } from "/assets/vendor/preact.js";
import { Announcer } from "./announce.js";
import { Dialog } from "./dialog.js";
import { followAll, forgetAll } from "./feed.js";
import { Bar, WORDS } from "./frame.js";
import "./keys.js";
import { Toast } from "./parts.js";
import { route } from "./route.js";
import { isOperator, token } from "./session.js";
import { jobs } from "./state.js";
import { titleOf } from "./titles.js";
import { Outcomes } from "./views/bulk.js";
import { Groups } from "./views/groups.js";
import { Insight } from "./views/insight.js";
import { Job } from "./views/job.js";
import { Help } from "./views/help.js";
import { Jobs } from "./views/jobs.js";
import { Palette } from "./views/palette.js";
import { Queue } from "./views/queue.js";
import { Offer, SignIn } from "./views/signin.js";
import { SubmitDialog } from "./views/submit.js";
import { Workers } from "./views/workers.js";
import { Workflow } from "./views/workflow.js";

const OPERATORS = { queue: Queue, groups: Groups, workers: Workers, insight: Insight };

function View() {
  const { name, id } = route.value;
  if (name === "jobs" && id) return html`<${Job} key=${id} id=${id} />`;
  if (name === "workflows" && id) return html`<${Workflow} key=${id} id=${id} />`;
  const Found = isOperator.value ? OPERATORS[name] : undefined;
  return Found ? html`<${Found} />` : html`<${Jobs} />`;
}

function App() {
  return html`<${Bar} /><main id="main" tabindex="-1">${token.value ? html`<${View} />` : html`<${SignIn} />`}</main>
    <${Toast} /><${Announcer} /><${Dialog} /><${Offer} />
    ${token.value && html`<${SubmitDialog} /><${Palette} /><${Help} /><${Outcomes} />`}`;
}

let stop = () => {};
effect(() => {
  stop();
  forgetAll();
  stop = token.value ? followAll() : () => {};
});
effect(() => {
  const job = route.value.id && jobs.value.get(route.value.id);
  const view = job ? titleOf(job) : route.value.name === "workflows" ? "Workflow" : (WORDS[route.value.name] ?? WORDS.jobs);
  document.title = `${token.value ? view : "Sign in"} · Headgate`;
});

render(html`<${App} />`, document.getElementById("app"));
