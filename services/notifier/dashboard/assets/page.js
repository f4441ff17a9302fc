// The page: sign in, submit, follow. One stream a job; a lost one is opened again with the last id that was seen.

const STAGES = ["scaffold", "code", "deps", "checks"];
const ENDS = ["ready", "failed", "cancelled"];
const WORDS = { starting: "Starting", scaffold: "Setting up the project", code: "Writing code", deps: "Installing dependencies", checks: "Checking", queued: "In the queue", ready: "Ready", cancelled: "Cancelled", awaiting_confirmation: "Waiting for your answer" };
const LOG_LINES = 2000;
const $ = (selector, root = document) => root.querySelector(selector);
let token = sessionStorage.getItem("token") ?? "";
let streams = 0;
let lost = 0;
let pendingKey = crypto.randomUUID();

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...(options.body ? { "Content-Type": "application/json" } : {}), ...options.headers };
  const response = await fetch(path, { ...options, headers });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({ detail: response.statusText }));
    throw Object.assign(new Error(problem.detail), { status: response.status });
  }
  return response;
}

// ── one job ─────────────────────────────────────────────────────────────────

class Card {
  constructor(job) {
    this.id = job.id;
    this.node = $("#job").content.firstElementChild.cloneNode(true);
    this.iteration = 1;
    $(".id", this.node).textContent = job.id;
    $(".cancel", this.node).addEventListener("click", () => this.cancel());
    $(".confirm", this.node).addEventListener("click", () => this.confirm());
    $(".download", this.node).addEventListener("click", () => this.download());
    this.show(job);
  }

  show(job) {
    this.status(job.status, job.message);
    this.iteration = Math.max(1, job.iterations.used);
    this.reasons(job.waiting_on);
    $("#usage").textContent = `Today: ${job.usage.jobs_used} used, ${job.usage.jobs_remaining} left. Resets ${new Date(job.usage.daily_limit_resets_at).toLocaleString()}.`;
  }

  status(status, message) {
    this.now = status;
    const at = STAGES.indexOf(status);
    for (const [n, item] of [...$(".stages", this.node).children].entries()) {
      item.className = status === "ready" || n < at ? "done" : n === at ? "now" : "";
      item.toggleAttribute("aria-current", n === at);
    }
    const ended = ENDS.includes(status);
    this.node.classList.toggle("failed", status === "failed");
    $(".message", this.node).textContent = message ?? WORDS[status] ?? status;
    $(".cancel", this.node).hidden = ended;
    $(".confirm", this.node).hidden = status !== "awaiting_confirmation";
    $(".download", this.node).hidden = status !== "ready";
    if (status !== "queued") this.reasons([]);
  }

  reasons(all) {
    $(".reasons", this.node).replaceChildren(...all.map(({ message }) => Object.assign(document.createElement("li"), { textContent: message })));
  }

  hear(kind, data) {
    if (kind === "snapshot") this.show(data);
    else if (kind === "position") {
      if (this.now !== "queued") return; // told late: it runs already
      this.reasons(data.waiting_on);
      if (data.queue) $(".message", this.node).textContent = data.queue.position_message;
    } else if (kind === "confirmation" && data.next_batch) {
      $(".message", this.node).textContent = `${data.iterations_used} iterations used. Continue for ${data.next_batch} more?`;
    } else if (kind === "log") this.log(`[${data.stage}] ${data.line}`);
    else if (kind === "status") {
      if (data.iteration) this.iteration = data.iteration;
      const cycle = STAGES.includes(data.status) && this.iteration > 1 ? `, iteration ${this.iteration}` : "";
      this.status(data.status, data.summary ?? (WORDS[data.status] ? WORDS[data.status] + cycle : undefined));
    }
  }

  log(line) {
    const pre = $(".log pre", this.node);
    const follows = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
    pre.append(`${line}\n`);
    while (pre.childNodes.length > LOG_LINES) pre.firstChild.remove();
    if (follows) pre.scrollTop = pre.scrollHeight;
  }

  async cancel() {
    await ask(`/v1/jobs/${this.id}/cancel`, { method: "POST" }).catch((problem) => this.log(problem.message));
  }

  async confirm() {
    await ask(`/v1/jobs/${this.id}/confirm`, { method: "POST" }).catch((problem) => this.log(problem.message));
  }

  async download() {
    const blob = await (await ask(`/v1/jobs/${this.id}/result`)).blob();
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${this.id}.tar.gz` });
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

// ── streams ─────────────────────────────────────────────────────────────────

async function follow(card) {
  let lastId = "";
  streams += 1;
  connection();
  for (let done = false; !done && token; ) {
    try {
      const headers = lastId ? { "Last-Event-ID": lastId } : {};
      const response = await ask(`/v1/jobs/${card.id}/stream`, { headers });
      done = response.status === 204;
      if (!done) for await (const { kind, data, id } of events(response.body)) {
        if (id) lastId = id;
        done ||= kind === "end";
        card.hear(kind, data);
      }
    } catch (problem) {
      if ([401, 403, 404].includes(problem.status)) break;
    }
    if (!done) await pause();
  }
  streams -= 1;
  connection();
}

async function pause() {
  lost += 1;
  connection();
  await new Promise((resolve) => setTimeout(resolve, 1000 + Math.random() * 1500));
  lost -= 1;
  connection();
}

function connection() {
  $("#connection").textContent = lost ? "Connection lost, trying again…" : streams ? "Live" : "";
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":")).map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.event) yield { kind: fields.event, id: fields.id, data: JSON.parse(fields.data) };
    }
  }
}

// ── the page ────────────────────────────────────────────────────────────────

function add(job, { first = false } = {}) {
  const card = new Card(job);
  $("#list")[first ? "prepend" : "append"](card.node);
  if (!ENDS.includes(job.status)) follow(card);
}

async function enter() {
  const jobs = await (await ask("/v1/jobs?limit=20")).json();
  sessionStorage.setItem("token", token);
  for (const id of ["submit", "jobs", "sign-out"]) $(`#${id}`).hidden = false;
  $("#sign-in").hidden = true;
  $("#list").replaceChildren();
  for (const job of jobs) add(job);
}

function attempt(form, act) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wrong = $(".wrong", form);
    wrong.textContent = "";
    await act().catch((problem) => (wrong.textContent = problem.message));
  });
}

attempt($("#sign-in-form"), async () => {
  token = $("#token").value.trim();
  await enter();
});

attempt($("#submit-form"), async () => {
  const input = { stages: { scaffold: 0.5, code: Number($("#seconds").value), deps: 0.5, checks: 0.5 }, failing_cycles: Number($("#failing").value), log_lines: 8 };
  const body = JSON.stringify({ project_id: $("#project").value, pipeline: "rehearsal", priority: $("#priority").value, input });
  const headers = { "Idempotency-Key": pendingKey };
  add(await (await ask("/v1/jobs", { method: "POST", body, headers })).json(), { first: true });
  pendingKey = crypto.randomUUID(); // only now: a submission that nobody answered is sent again under its own key
});

$("#sign-out").addEventListener("click", () => {
  token = "";
  sessionStorage.removeItem("token");
  location.reload();
});

async function resume() {
  for (;;) {
    try {
      return await enter();
    } catch (problem) {
      if ([401, 403].includes(problem.status)) return sessionStorage.removeItem("token");
      await pause(); // away for a moment: the token is as good as before
    }
  }
}

if (token) resume();
