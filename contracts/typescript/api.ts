/* The bodies of Headgate's HTTP API, version 1 */

/**
 * Waits by priority and tier, and what the forecasts were worth, over the starts since `since`; what was refused
 * in the last 24 hours. `forecast` begins with that of all and goes on by tier; `by_class` has one for each class.
 */
export interface Analytics {
  readonly since: string | null;
  readonly waits: ReadonlyArray<Waits>;
  readonly forecast: ReadonlyArray<HitRate>;
  readonly by_class?: ReadonlyArray<HitRate>;
  readonly refused?: ReadonlyArray<Refused>;
}

/** The answer to what a job asks, by the question's id: one of its choices, what its schema wants, or a text. */
export interface AnswerQuestion {
  readonly question: string;
  readonly answer: JsonValue;
}

/** What somebody did to others' jobs or to the queue, and why. */
export interface AuditEntry {
  readonly seq: number;
  readonly at: string;
  readonly act: string;
  readonly by: string;
  readonly reason: string;
  readonly about: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Why a job should end. */
export interface CancelJob {
  readonly reason?: string;
}

/** Which of one's jobs should end: name one of project, workflow and label (`key=value`). */
export interface CancelJobs {
  readonly project?: string | null;
  readonly workflow?: string | null;
  readonly label?: string | null;
  readonly reason?: string;
}

/** Another class for a job that has not started. */
export interface ChangePriority {
  readonly priority: Priority;
  readonly reason?: string;
}

/**
 * What is to be paused or resumed, and why. Users and projects may be named by any id that they sign in with.
 * `project:shop` is the shared project of that name, `project:ann:shop` is ann's own.
 */
export interface ChangeScope {
  readonly scope: string;
  readonly reason?: string;
}

/** What was erased of a user. As long as jobs are `unfinished`, their workers may still write: erase again then. */
export interface Erasure {
  readonly user_id: string;
  readonly jobs: number;
  readonly cancelled: ReadonlyArray<string>;
  readonly unfinished: ReadonlyArray<string>;
  readonly message: string;
}

/** Why a job waits, and what would let it run. */
export interface Explanation {
  readonly id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly message: string;
  readonly queue: QueuePart | null;
  readonly waiting_on: ReadonlyArray<WaitingOn>;
  readonly would_run: ReadonlyArray<string>;
  readonly may_wait_s?: number | null;
}

/** For how long from now, in seconds; left out: as long as a lease may be. `held_until`: what was told last. */
export interface ExtendLease {
  readonly ttl_s?: number | null;
  readonly limit?: number | null;
  readonly held_until?: string | null;
}

/** What was not good enough, in words for the job's user. */
export interface FailedWork {
  readonly summary: string;
  readonly detail?: string;
}

/**
 * One event of a job's history: what every event says. What this one says besides stands beside it under the names
 * that the events have; of the jobs that it passed it tells how many.
 */
export interface HistoryEntry {
  readonly seq: number;
  readonly at: string;
  /** as in the types of events: `queued`, `stage`, …; more may come */
  readonly event: string;
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
}

/**
 * How often the real wait lay inside the interval that was shown; `error` is the mean absolute error in seconds.
 * Of jobs of a tier, or of those that were shown it in a class.
 */
export interface HitRate {
  readonly tier: string | null;
  readonly priority?: Priority | null;
  readonly count: number;
  readonly hit_rate: number;
  readonly error: number;
}

/** What became of one of many: the job, or the problem in its place. */
export interface ItemOutcome {
  readonly status: number;
  readonly job?: ShownJob | null;
  readonly problem?: Refusal | null;
}

/** How many iterations a job has used, and how many it may. */
export interface Iterations {
  readonly used: number;
  readonly batch: number;
  readonly cap: number;
  readonly confirmations: number;
}

/** How many jobs there are: kind (`status`, `project`, …) → name → jobs. */
export interface JobCounts {
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Why a job failed. */
export interface JobError {
  readonly summary: string;
  readonly detail: string;
  readonly debug_id: string;
}

/** What a job, and each phase of a workflow, may ask for. */
export interface JobOrder {
  readonly input: Readonly<Record<string, unknown>>;
  readonly title?: string | null;
  readonly pipeline?: string;
  readonly pool?: string;
  readonly concurrency_group?: string | null;
  readonly concurrency_limit?: number | null;
  readonly run_timeout_s?: number | null;
}

export type JsonValue = unknown;

/** What came of a forced release: a lease outside jobs ends with it, a running job's slot when it is given back. */
export interface LeaseRelease {
  readonly group: string;
  readonly lease: string;
  readonly job_id: string | null;
  readonly attempt: number | null;
  readonly message: string;
}

/** Where a queued job should stand: right before or right after another. */
export interface MoveJob {
  readonly job_id: string;
  readonly before?: string | null;
  readonly after?: string | null;
  readonly reason?: string;
}

/** What became of each, in the order in which they were asked for. */
export interface Outcomes {
  readonly results: ReadonlyArray<ItemOutcome>;
}

/** Where one of one's own jobs stands. */
export interface OwnPosition {
  readonly job_id: string;
  readonly position: number;
}

/** The classes of the queue. A lower number always goes first. */
export type Priority = "urgent" | "high" | "normal" | "low" | "background";

/** What a job asks its user: whether to go on after a batch of iterations, or what a stage wants to know. */
export type QuestionKind = "continue" | "ask";

/** One job of the queue, as operators see it. */
export interface QueueLine {
  readonly position: number;
  readonly job_id: string;
  readonly title?: string | null;
  readonly user_id: string;
  readonly project_id: string;
  /** bootstrapper, partner, cto_scale. More may come. */
  readonly tier: string;
  readonly priority: Priority;
  readonly pool: string;
  readonly pipeline: string;
  readonly workflow: string | null;
  readonly queued_at: string;
  readonly passed_by: number;
  readonly estimate_seconds: number | null;
  readonly waiting_on: ReadonlyArray<WaitingOn>;
  readonly labels: Readonly<Record<string, string>>;
}

/** Where a queued job stands. */
export interface QueuePart {
  readonly position: number;
  readonly position_original: number;
  readonly position_message: string;
  readonly passed_by: number;
  readonly estimate_seconds?: number | null;
  readonly lower_bound?: number | null;
  readonly upper_bound?: number | null;
  readonly message?: string | null;
  readonly confidence?: "high" | "medium" | "low" | null;
}

/** A problem (RFC 9457), as it would stand in a reply of its own. */
export interface Refusal {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly debug_id: string;
}

/** How many submissions were refused in the hour that began at `hour`, for this reason (the problem's slug). */
export interface Refused {
  readonly hour: string;
  readonly reason: string;
  readonly count: number;
}

/** A policy file, as its TOML is in JSON. What it does not name has its default. */
export interface ReloadPolicy {
  readonly policy: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** A pipeline for which no job is taken in any more. */
export interface RemovedPipeline {
  readonly name: string;
  readonly pool: string;
  readonly message: string;
}

/**
 * Once more: with the work that its finished stages left or, with `from`, from a stage that ran, on the workspace
 * that it began with. `input` takes the place of the first one's.
 */
export interface RetryJob {
  readonly from?: string | null;
  readonly input?: Readonly<Record<string, unknown>> | null;
}

/** The token that is taken back, by its claim `jti`, and why. */
export interface RevokeToken {
  readonly jti: string;
  readonly reason?: string;
}

/**
 * What came of a pause or a resume. Where nothing was to change, nothing was written. `paused`: all that is now.
 */
export interface ScopeChange {
  readonly scope: string;
  readonly changed: boolean;
  readonly message: string;
  readonly paused: ReadonlyArray<ShownPause>;
}

/** How many slots a group has from now on. */
export interface SetGroupLimit {
  readonly limit: number;
  readonly reason?: string;
}

/** One file of a result. `type` is one of few that are safe to show; what is not known is octets. */
export interface ShownFile {
  readonly path: string;
  readonly size: number;
  readonly type: string;
}

/** What a result holds, by path; `bytes` is the size of all of it unpacked. */
export interface ShownFiles {
  readonly job_id: string;
  readonly bytes: number;
  readonly files: ReadonlyArray<ShownFile>;
}

/** A group's slots. */
export interface ShownGroup {
  readonly group: string;
  readonly limit: number;
  readonly active: number;
  readonly waiting: number;
  readonly shut_until?: string | null;
  readonly holders: ReadonlyArray<ShownHolder>;
}

/** Who has a slot. Without a job it was asked for outside any, by `user_id`. */
export interface ShownHolder {
  readonly lease: string;
  readonly user_id?: string | null;
  readonly job_id: string | null;
  readonly title?: string | null;
  readonly attempt: number | null;
  readonly worker: string | null;
  readonly since: string | null;
  readonly expires_at: string;
}

/**
 * A job, as its owner sees it. `stages` are those of its pipeline, in order, once a worker has told them;
 * `stage` is the one that it is in, or has ended in: those before it are done. `tried`: how often that, or the one
 * that it goes on with, has failed and is run again. `question` is what it asks, as long as it waits for the
 * answer. `title` is null where none was given or found, and where it was erased, `model_usage` where it has asked
 * no model. `trace_url` is where its trace is read, for operators where policy says so (`tracing.url_template`).
 */
export interface ShownJob {
  readonly id: string;
  readonly title?: string | null;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly project_id: string;
  readonly user_id: string;
  /** bootstrapper, partner, cto_scale. More may come. */
  readonly tier: string;
  readonly priority: Priority;
  readonly pool: string;
  readonly pipeline: string;
  readonly attempt: number;
  readonly stage?: string | null;
  readonly stages?: ReadonlyArray<StageTitle>;
  readonly tried?: Tried | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly message: string;
  readonly progress?: ShownProgress | null;
  readonly question?: ShownQuestion | null;
  readonly model_usage?: ShownModelUsage | null;
  readonly queue: QueuePart | null;
  readonly waiting_on: ReadonlyArray<WaitingOn>;
  readonly scheduled_for: string | null;
  readonly iterations: Iterations;
  readonly usage: Usage;
  readonly upgrade: Upgrade | null;
  readonly error: JobError | null;
  readonly result_url: string | null;
  readonly workflow: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly debug_id: string;
  readonly trace_url?: string | null;
}

/** A slot that is held outside any job, for `ttl_s` from when it was asked for at least. */
export interface ShownLease {
  readonly group: string;
  readonly lease: string;
  readonly ttl_s: number;
  readonly expires_at: string;
}

/**
 * What a job has asked of models, in all and by `stages`: each provider and model of each, over all iterations and
 * attempts. What the stage that runs has asked comes with its end.
 */
export interface ShownModelUsage {
  readonly calls: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  readonly took_ms: number;
  readonly stages: ReadonlyArray<StageUsage>;
}

/** A scope in which nothing is started. */
export interface ShownPause {
  readonly scope: string;
  readonly by: string;
  readonly reason: string;
  readonly since: string;
}

/**
 * A pipeline that jobs can be submitted for in its pool. `input_schema` is the JSON Schema of a job's input, where
 * its author has given one. Without a `pool` it is built in, and no worker has announced it yet.
 */
export interface ShownPipeline {
  readonly name: string;
  readonly pool?: string | null;
  readonly version?: string | null;
  readonly stages?: ReadonlyArray<StageTitle>;
  readonly input_schema?: Readonly<Record<string, unknown>> | null;
}

/**
 * The policy in force: since when, by whom and why, or null where it is the file that the services started with.
 * `version` is a digest of the numbers that a reload may change, so two replicas with the same numbers tell the same
 * one; in quotes it is the ETag. `changed` names what this request has changed, number by number.
 */
export interface ShownPolicy {
  readonly policy: Readonly<Record<string, unknown>>;
  readonly version: string;
  readonly since?: string | null;
  readonly by?: string | null;
  readonly reason?: string;
  readonly changed?: ReadonlyArray<string>;
}

/** How far the stage is that the job is in, from 0 to 1, by its own account. */
export interface ShownProgress {
  readonly fraction: number;
  readonly message: string;
}

/**
 * What a job asks its user, until `expires_at`: whether to go on (`continue`), or what a stage wants to know
 * (`ask`). An answer is one of the `choices`, or what the JSON Schema wants, or a text where there is neither.
 * `reason`: what was not good enough.
 */
export interface ShownQuestion {
  readonly id: string;
  readonly kind: QuestionKind;
  readonly text: string;
  readonly choices?: ReadonlyArray<string>;
  readonly schema?: Readonly<Record<string, unknown>> | null;
  readonly reason?: FailedWork | null;
  readonly expires_at: string;
}

/** The queue: every job in order for operators, its length and one's own positions for users. */
export interface ShownQueue {
  readonly length: number;
  readonly cap: number;
  readonly paused?: ReadonlyArray<ShownPause>;
  readonly jobs?: ReadonlyArray<QueueLine> | null;
  readonly own?: ReadonlyArray<OwnPosition>;
}

/** A stage from which a job can be run again, or why it cannot. */
export interface ShownStart {
  readonly stage: string;
  readonly title: string;
  readonly can_start: boolean;
  readonly why_not?: string;
}

/** From where a job that has ended can be run again: its stages, in order. */
export interface ShownStarts {
  readonly job_id: string;
  readonly stages: ReadonlyArray<ShownStart>;
}

/** Figures over time, in steps that begin at `times`. `unknown`: what cannot be told, and why. */
export interface ShownStats {
  readonly since: string;
  readonly until: string;
  readonly step_s: number;
  readonly times: ReadonlyArray<string>;
  readonly lines: ReadonlyArray<StatsLine>;
  readonly unknown: ReadonlyArray<string>;
}

/**
 * A piece of a job's waits, and what held it then: the first of it, in the order of `waiting_on`. Null as `until`:
 * it still does.
 *
 * `after`: how the job came to the queue (`submitted`, `released`, `phase_ready`, `confirmed`, `answered`), or why it
 * came back (`lost`, `drained`, `provider`, `outage`, `forced`, `retry`).
 */
export interface ShownWait {
  readonly since: string;
  readonly until?: string | null;
  /**
   * daily_window, room, paused, provider_paused, earlier_phase, user_limit, project_limit, group_limit, global_limit, pool_full, confirmation, retry; turn: nothing that is in the log. More may come: `message` says each in words.
   */
  readonly reason: string;
  readonly message: string;
  readonly group?: string | null;
  readonly limit?: number | null;
  readonly by?: string | null;
  readonly after?: string | null;
}

/** A job's waits so far, oldest first. */
export interface ShownWaits {
  readonly job_id: string;
  readonly waits: ReadonlyArray<ShownWait>;
}

/** A worker that is heard of. */
export interface ShownWorker {
  readonly worker: string;
  readonly pool: string;
  readonly slots: number;
  readonly jobs: ReadonlyArray<string>;
  readonly heard_at: string;
  readonly draining: boolean;
}

/** A workflow: its phases in order. */
export interface ShownWorkflow {
  readonly id: string;
  readonly project_id: string;
  readonly user_id: string;
  readonly priority: Priority;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly phases: ReadonlyArray<ShownJob>;
}

/** A stage, as its pipeline's author names it, and what people are told while it runs. */
export interface StageTitle {
  readonly name: string;
  readonly title: string;
}

/**
 * The same of one stage, over all its iterations, tries and attempts. Without a `stage` it was of one that the
 * reader does not know.
 */
export interface StageUsage {
  readonly provider: string;
  readonly model: string;
  readonly calls: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cached_tokens?: number;
  readonly took_ms?: number;
  readonly stage?: string | null;
}

/**
 * One line of a chart: a number for each moment, null where nobody knows it. `queued` and `running` are how many
 * there were at the end of the step; `wait_p50` and `wait_p90` are seconds; all else is how many came in the step.
 * `of`: of which pool, provider or reason.
 */
export interface StatsLine {
  /** more may come */
  readonly name: string;
  readonly of?: string | null;
  readonly values: ReadonlyArray<number | null>;
}

/** Opens one stream, once, as `?ticket=`. */
export interface StreamTicket {
  readonly ticket: string;
  readonly expires_at: string;
}

/** Jobs that are taken or refused one by one. */
export interface SubmitBatch {
  readonly jobs: ReadonlyArray<Readonly<Record<string, unknown>>>;
}

/** What to run, for which project. */
export interface SubmitJob {
  readonly input: Readonly<Record<string, unknown>>;
  readonly title?: string | null;
  readonly pipeline?: string;
  readonly pool?: string;
  readonly concurrency_group?: string | null;
  readonly concurrency_limit?: number | null;
  readonly run_timeout_s?: number | null;
  readonly project_id: string;
  readonly priority?: Priority;
  readonly queue_ttl_s?: number | null;
  readonly run_at?: string | null;
  readonly notify_url?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Phases in order: each is queued when the one before it is ready. All of them are accepted, or none. */
export interface SubmitWorkflow {
  readonly project_id: string;
  readonly phases: ReadonlyArray<JobOrder>;
  readonly priority?: Priority;
  readonly run_at?: string | null;
  readonly notify_url?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * A slot: under which name (a ULID), for how long, and for how long to wait for one. `limit`: how many slots the
 * group has where nobody has set it.
 */
export interface TakeLease {
  readonly lease: string;
  readonly ttl_s?: number | null;
  readonly wait_s?: number;
  readonly limit?: number | null;
}

/** A token that lets nobody in. `until`: no token can be good for longer; `changed`: an act was written. */
export interface TokenRevocation {
  readonly jti: string;
  readonly until: string;
  readonly changed: boolean;
  readonly message: string;
}

/**
 * How often a stage has failed by what its author takes for passing: `tries` of at most `most`, the last one with
 * these words, and from when on it is run again.
 */
export interface Tried {
  readonly stage: string;
  readonly iteration: number;
  readonly tries: number;
  readonly most: number;
  readonly summary: string;
  readonly detail?: string;
  readonly again_at: string;
}

/** What the next tier would change. */
export interface Upgrade {
  readonly message: string;
  readonly url: string;
}

/** How much of a day, and of a job, a user has used. */
export interface Usage {
  readonly jobs_used: number;
  readonly jobs_remaining: number;
  readonly iterations_used: number;
  readonly iterations_remaining: number;
  readonly daily_limit_resets_at: string;
}

/** One thing that keeps a job from running now. `jobs` hold the slots: a user is told of their own ones alone. */
export interface WaitingOn {
  /**
   * daily_window, room, paused, provider_paused, earlier_phase, user_limit, project_limit, group_limit, global_limit, no_worker, behind, confirmation, retry. More may come: `message` says each in words.
   */
  readonly reason: string;
  readonly message: string;
  readonly group?: string | null;
  readonly limit?: number | null;
  readonly active?: number | null;
  readonly since?: string | null;
  readonly until?: string | null;
  readonly by?: string | null;
  readonly jobs?: ReadonlyArray<string>;
}

/** How long the jobs of one priority and tier waited for their first start, in seconds. */
export interface Waits {
  readonly priority: Priority;
  /** bootstrapper, partner, cto_scale. More may come. */
  readonly tier: string;
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** What a worker took up, and what became of it: a status, or why it was given back; null while it runs. */
export interface WorkerAttempt {
  readonly job_id: string;
  readonly attempt: number;
  readonly worker: string;
  readonly pool: string;
  readonly began_at: string;
  readonly ended_at?: string | null;
  readonly end?: string | null;
}
