/* Headgate's events, version 1 */

/** Why a job's priority or place changed. */
export type ChangeReason = "operator" | "user" | "aged" | "spaced";

/** What this user's jobs were made from, made and said is gone: inputs, workspaces, results, logs. */
export interface ContentErased {
  readonly by: string;
  readonly reason?: string;
  readonly user_id: string;
}

/** What this user's jobs were made from, made and said is gone: inputs, workspaces, results, logs. */
export interface ContentErasedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.content_erased.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: ContentErased;
}

/**
 * What an attempt goes on from: how far the job has come, and how long earlier attempts had it.
 *
 * `cycle_over`: the next stage opens another iteration. `granted`: by confirmations, beside what its tier gives.
 * `tried`: how often the stage that it goes on with has failed already. `answers`: what its user has answered.
 */
export interface EarlierWork {
  readonly iteration?: number;
  readonly cycle_over?: boolean;
  readonly finished_stages?: ReadonlyArray<string>;
  readonly checkpoint?: string | null;
  readonly granted?: number;
  readonly worked_s?: number;
  readonly tried?: Tried | null;
  readonly answers?: ReadonlyArray<KeptAnswer>;
}

/** The forecast that was shown when the job entered the queue: seconds until its start. None is of `high` yet. */
export interface Estimate {
  readonly estimate_seconds: number;
  readonly lower_bound: number;
  readonly upper_bound: number;
  readonly confidence: "high" | "medium" | "low";
}

/** What was not good enough, in words for the job's user. */
export interface FailedWork {
  readonly summary: string;
  readonly detail?: string;
}

/** Whose fault a failure was. Only a `system` fault gives the day's place back. */
export type Fault = "job" | "system" | "limit" | "timeout";

/** Why a running job returned to the queue. Only `lost` counts towards the limit of lost workers. */
export type GivenBackReason = "lost" | "drained" | "provider" | "outage" | "forced" | "retry";

/** A named group that a job needs a slot of, and the limit to set where none is set. */
export interface Group {
  readonly name: string;
  readonly limit?: number | null;
}

/**
 * Slots of this group are held outside jobs, for a day from here. `limit`: as many as were asked for, where nobody
 * has set it.
 */
export interface GroupLeased {
  readonly by: string;
  readonly reason?: string;
  readonly group: string;
  readonly limit?: number | null;
}

/**
 * Slots of this group are held outside jobs, for a day from here. `limit`: as many as were asked for, where nobody
 * has set it.
 */
export interface GroupLeasedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.group_leased.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: GroupLeased;
}

/**
 * The user answered this question of a stage: the job is back at its old place. What was answered is content, kept
 * under the name `answer` where the job's input is.
 */
export interface JobAnswered {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly question: string;
  readonly answer: string;
  readonly by: string;
}

/**
 * The user answered this question of a stage: the job is back at its old place. What was answered is content, kept
 * under the name `answer` where the job's input is.
 */
export interface JobAnsweredEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.answered.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobAnswered;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * The job gave its slots back and asks its user: whether to go on, as the iterations granted so far are used up, or
 * what a stage wants to know. That stage begins again once it is answered.
 *
 * `next_batch`: how many iterations a yes grants. Without a `question` it is "Continue?", as an older writer asked it.
 */
export interface JobAwaitingConfirmation {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly question?: Question | null;
  readonly iterations_used: number;
  readonly next_batch?: number | null;
  readonly expires_at: string;
  readonly checkpoint?: string | null;
}

/**
 * The job gave its slots back and asks its user: whether to go on, as the iterations granted so far are used up, or
 * what a stage wants to know. That stage begins again once it is answered.
 *
 * `next_batch`: how many iterations a yes grants. Without a `question` it is "Continue?", as an older writer asked it.
 */
export interface JobAwaitingConfirmationEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.awaiting_confirmation.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobAwaitingConfirmation;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** Somebody asked for the end of a running job; its worker will write `cancelled`. */
export interface JobCancelRequested {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly by: string;
  readonly reason?: string;
}

/** Somebody asked for the end of a running job; its worker will write `cancelled`. */
export interface JobCancelRequestedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.cancel_requested.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobCancelRequested;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job ended because somebody asked for it, or because an earlier phase failed. */
export interface JobCancelled {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly by: string;
  readonly reason?: string;
}

/** The job ended because somebody asked for it, or because an earlier phase failed. */
export interface JobCancelledEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.cancelled.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobCancelled;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The question is still open. */
export interface JobConfirmationReminder {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly hours_left: number;
}

/** The question is still open. */
export interface JobConfirmationReminderEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.confirmation_reminder.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobConfirmationReminder;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The user granted another batch of iterations: the job is back at its old place. */
export interface JobConfirmed {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly by: string;
  readonly batch: number;
}

/** The user granted another batch of iterations: the job is back at its old place. */
export interface JobConfirmedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.confirmed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobConfirmed;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * A worker of the pool may claim the job. It holds a slot in each of these groups from here on.
 *
 * It says all that a worker needs, so that none has to read the job before it claims it: what was asked for
 * (`pipeline`, `shared`, `input_digest`), its trace, what there is already (`earlier`, null where there is nothing),
 * and whether somebody has asked for its end. `starved` marks a start that its class was owed: nothing of it had been
 * started for long. `tier` is its user's now, which a newer submission of theirs may have changed. `alone` is null
 * where a link of the scheduler's chain names it.
 */
export interface JobDispatched {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly pool: string;
  readonly groups: ReadonlyArray<string>;
  readonly deadline?: string | null;
  readonly starved?: boolean;
  /** bootstrapper, partner, cto_scale. More may come. */
  readonly tier: string;
  readonly pipeline: string;
  readonly shared?: boolean;
  readonly input_digest: string;
  readonly traceparent?: string | null;
  readonly tracestate?: string | null;
  readonly earlier?: EarlierWork | null;
  readonly cancel_requested_by?: string | null;
  readonly alone?: LoneStart | null;
}

/**
 * A worker of the pool may claim the job. It holds a slot in each of these groups from here on.
 *
 * It says all that a worker needs, so that none has to read the job before it claims it: what was asked for
 * (`pipeline`, `shared`, `input_digest`), its trace, what there is already (`earlier`, null where there is nothing),
 * and whether somebody has asked for its end. `starved` marks a start that its class was owed: nothing of it had been
 * started for long. `tier` is its user's now, which a newer submission of theirs may have changed. `alone` is null
 * where a link of the scheduler's chain names it.
 */
export interface JobDispatchedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.dispatched.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobDispatched;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job ended badly. `summary` and `detail` are fit for its user's eyes. */
export interface JobFailed {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly summary: string;
  readonly detail?: string;
  readonly debug_id: string;
  readonly fault: Fault;
}

/** The job ended badly. `summary` and `detail` are fit for its user's eyes. */
export interface JobFailedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.failed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobFailed;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * The attempt is over without an end: the job is back at its old place with its finished stages.
 *
 * `provider` is the one it waits for, where that is the reason. Where it is to be tried again later (`retry`), it is
 * scheduled for `until` and enters the queue then.
 */
export interface JobGivenBack {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly reason: GivenBackReason;
  readonly provider?: string | null;
  readonly until?: string | null;
  readonly finished_stages?: ReadonlyArray<string>;
  readonly checkpoint?: string | null;
}

/**
 * The attempt is over without an end: the job is back at its old place with its finished stages.
 *
 * `provider` is the one it waits for, where that is the reason. Where it is to be tried again later (`retry`), it is
 * scheduled for `until` and enters the queue then.
 */
export interface JobGivenBackEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.given_back.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobGivenBack;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job changed its place. */
export interface JobMoved {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly from: Priority;
  readonly to: Priority;
  readonly place?: number | null;
  readonly by: string;
  readonly reason: ChangeReason;
  readonly note?: string;
}

/** The job changed its place. */
export interface JobMovedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.moved.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobMoved;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * The job entered the queue, at this place.
 *
 * `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
 */
export interface JobQueued {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly why: QueuedWhy;
  readonly arrival: number;
  readonly place: number;
  readonly passed?: ReadonlyArray<string>;
  readonly position_original: number;
  readonly quota_day?: string | null;
  readonly quota_cap?: number | null;
  readonly estimate?: Estimate | null;
  readonly submission?: Submission | null;
}

/**
 * The job entered the queue, at this place.
 *
 * `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
 */
export interface JobQueuedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.queued.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobQueued;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job ended well. */
export interface JobReady {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly result?: string | null;
  readonly duration_s: number;
  readonly iterations: number;
}

/** The job ended well. */
export interface JobReadyEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.ready.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobReady;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job changed its class. `place` is null where it is not in the queue yet. */
export interface JobReprioritized {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly from: Priority;
  readonly to: Priority;
  readonly place?: number | null;
  readonly by: string;
  readonly reason: ChangeReason;
  readonly note?: string;
}

/** The job changed its class. `place` is null where it is not in the queue yet. */
export interface JobReprioritizedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.reprioritized.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobReprioritized;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * The job was accepted for a later day: it enters the queue at `scheduled_for`.
 *
 * `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
 */
export interface JobScheduled {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly scheduled_for: string;
  readonly quota_day?: string | null;
  readonly quota_cap?: number | null;
  readonly submission?: Submission | null;
}

/**
 * The job was accepted for a later day: it enters the queue at `scheduled_for`.
 *
 * `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
 */
export interface JobScheduledEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.scheduled.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobScheduled;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * A stage began, so the one before it is finished; `checkpoint` holds its work.
 *
 * `restored` marks a stage that an earlier attempt finished: the job passes through it without running it again. The
 * first of an attempt says again what all its `stages` are, for readers of one event at a time.
 */
export interface JobStage {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly stage: string;
  readonly stages?: ReadonlyArray<StageTitle> | null;
  readonly iteration: number;
  readonly checkpoint?: string | null;
  readonly restored?: boolean;
}

/**
 * A stage began, so the one before it is finished; `checkpoint` holds its work.
 *
 * `restored` marks a stage that an earlier attempt finished: the job passes through it without running it again. The
 * first of an attempt says again what all its `stages` are, for readers of one event at a time.
 */
export interface JobStageEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.stage.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobStage;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * This worker claimed the attempt.
 *
 * `stages` are those of the job's pipeline, in order; none where the worker has no such pipeline, and those of `build`
 * where nothing is said. A new iteration begins again at `again_at`, or at the first of them. What follows in the log
 * can be read by this alone.
 */
export interface JobStarted {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly worker: string;
  readonly stages?: ReadonlyArray<StageTitle>;
  readonly again_at?: string | null;
}

/**
 * This worker claimed the attempt.
 *
 * `stages` are those of the job's pipeline, in order; none where the worker has no such pipeline, and those of `build`
 * where nothing is said. A new iteration begins again at `again_at`, or at the first of them. What follows in the log
 * can be read by this alone.
 */
export interface JobStartedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.started.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobStarted;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/**
 * The stage failed by what its author takes for passing, and is run again: in this attempt, or in a later one where
 * `given_back` follows.
 */
export interface JobTryFailed {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly usage?: ReadonlyArray<ModelUsage>;
  readonly tried: Tried;
}

/**
 * The stage failed by what its author takes for passing, and is run again: in this attempt, or in a later one where
 * `given_back` follows.
 */
export interface JobTryFailedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.try_failed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobTryFailed;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** The job is a later phase of a workflow and waits for the one before it. */
export interface JobWaiting {
  readonly job_id: string;
  readonly user_id: string;
  readonly project_id: string;
  /**
   * queued, scheduled, waiting, starting, scaffold, code, deps, checks, running, awaiting_confirmation, ready, failed, cancelled. More may come.
   */
  readonly status: string;
  readonly attempt: number;
  readonly workflow: string;
  readonly phase: number;
  readonly submission?: Submission | null;
}

/** The job is a later phase of a workflow and waits for the one before it. */
export interface JobWaitingEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.job.waiting.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: JobWaiting;
  /**
   * An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)
   */
  readonly sequence: number;
}

/** An answer that was given: to the question of this key, kept under this name. */
export interface KeptAnswer {
  readonly key: string;
  readonly name: string;
}

/** This lease was forced free. */
export interface LeaseReleased {
  readonly by: string;
  readonly reason?: string;
  readonly group: string;
  readonly lease: string;
}

/** This lease was forced free. */
export interface LeaseReleasedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.lease_released.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: LeaseReleased;
}

/** The group has this many slots from here on. */
export interface LimitSet {
  readonly by: string;
  readonly reason?: string;
  readonly group: string;
  readonly limit: number;
}

/** The group has this many slots from here on. */
export interface LimitSetEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.limit_set.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: LimitSet;
}

/** What an operator has set is no longer so: the group has the slots that its jobs bring, or that policy says. */
export interface LimitUnset {
  readonly by: string;
  readonly reason?: string;
  readonly group: string;
}

/** What an operator has set is no longer so: the group has the slots that its jobs bring, or that policy says. */
export interface LimitUnsetEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.limit_unset.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: LimitUnset;
}

/**
 * What a link would have said of a start that was written without one.
 *
 * It stands right behind record `over`: all up to there was counted, and nothing else. `link` is the last link of the
 * chain up to there, of this `leader` itself. `limits` are those of the start's groups, in their order, `slots` those
 * of its pool.
 */
export interface LoneStart {
  readonly leader: string;
  readonly link: number;
  readonly over: number;
  readonly limits: ReadonlyArray<number>;
  readonly slots: number;
}

/**
 * What calls to one model of a provider came to: no word of them, only their numbers.
 *
 * `cached_tokens` are those of `input_tokens` that the provider still had. What it did not count is 0. `took_ms` is
 * how long all calls took together.
 */
export interface ModelUsage {
  readonly provider: string;
  readonly model: string;
  readonly calls: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cached_tokens?: number;
  readonly took_ms?: number;
}

/** No job of this pipeline is taken in for the pool, until a worker that has it announces it again. */
export interface PipelineRemoved {
  readonly by: string;
  readonly reason?: string;
  readonly pipeline: string;
  readonly pool: string;
}

/** No job of this pipeline is taken in for the pool, until a worker that has it announces it again. */
export interface PipelineRemovedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.pipeline_removed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: PipelineRemoved;
}

/**
 * These sections of the policy hold from here on, checked, each with all of its numbers. `changed`: those numbers
 * that were others before, by the path of their key.
 */
export interface PolicyReloaded {
  readonly by: string;
  readonly reason?: string;
  readonly sections: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly changed?: ReadonlyArray<string>;
}

/**
 * These sections of the policy hold from here on, checked, each with all of its numbers. `changed`: those numbers
 * that were others before, by the path of their key.
 */
export interface PolicyReloadedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.policy_reloaded.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: PolicyReloaded;
}

/** The classes of the queue. A lower number always goes first. */
export type Priority = "urgent" | "high" | "normal" | "low" | "background";

/**
 * What a job asks. `key` is the name that its author gave it: the same key has the same answer. An answer is one of
 * the `choices`, or what the JSON Schema wants, or a text where there is neither. `reason`: why the job cannot go on
 * by itself.
 */
export interface Question {
  readonly id: string;
  readonly kind: QuestionKind;
  readonly text: string;
  readonly key?: string | null;
  readonly choices?: ReadonlyArray<string>;
  readonly schema?: Readonly<Record<string, unknown>> | null;
  readonly reason?: FailedWork | null;
}

/** What a job asks its user: whether to go on after a batch of iterations, or what a stage wants to know. */
export type QuestionKind = "continue" | "ask";

/** Nothing in this scope is started until it is resumed. */
export interface QueuePaused {
  readonly by: string;
  readonly reason?: string;
  readonly scope: string;
}

/** Nothing in this scope is started until it is resumed. */
export interface QueuePausedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.paused.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: QueuePaused;
}

/** The scope may start again. */
export interface QueueResumed {
  readonly by: string;
  readonly reason?: string;
  readonly scope: string;
}

/** The scope may start again. */
export interface QueueResumedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.resumed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: QueueResumed;
}

/** Why a job entered the queue. */
export type QueuedWhy = "submitted" | "released" | "phase_ready";

/**
 * One link of the scheduler's chain: what it wrote in this batch, and the limits it counted with.
 *
 * One that names no job begins what its leader writes: from here on nothing is stored that another leader has sent.
 */
export interface SchedulerCommitted {
  readonly shard: string;
  readonly leader: string;
  readonly jobs: ReadonlyArray<string>;
  readonly limits?: Readonly<Record<string, number>>;
  readonly slots?: Readonly<Record<string, number>>;
}

/**
 * One link of the scheduler's chain: what it wrote in this batch, and the limits it counted with.
 *
 * One that names no job begins what its leader writes: from here on nothing is stored that another leader has sent.
 */
export interface SchedulerCommittedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.sched.committed.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: SchedulerCommitted;
}

/** A stage, as its pipeline's author names it, and what people are told while it runs. */
export interface StageTitle {
  readonly name: string;
  readonly title: string;
}

/**
 * What was asked for. It stands in the first event of a job and never changes.
 *
 * `project_name` is what the client called its project, where that is no token and `project_id` says another thing.
 * `shared`: the project is that of all who share the name, and not its user's own.
 * `phases` is how many the workflow has. `input_bytes` is the size of its input, 0 where nobody has said it.
 * A job submitted again (`retry_of`) begins with the `finished_stages` of the first iteration that the other one left
 * in its `checkpoint`; `retry_from` is the stage from which somebody wanted it to run again.
 * `traceparent` and `tracestate` (W3C) are those of the request: the job's trace is its request's.
 */
export interface Submission {
  /** bootstrapper, partner, cto_scale. More may come. */
  readonly tier: string;
  readonly priority?: Priority;
  readonly project_name?: string | null;
  readonly shared?: boolean;
  readonly pool?: string;
  readonly pipeline?: string;
  readonly groups?: ReadonlyArray<Group>;
  readonly workflow?: string | null;
  readonly phase?: number | null;
  readonly phases?: number | null;
  readonly submitted_at: string;
  readonly run_at?: string | null;
  readonly queue_ttl_s?: number | null;
  readonly run_timeout_s?: number | null;
  readonly notify_url?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly input_digest: string;
  readonly input_bytes?: number;
  readonly retry_of?: string | null;
  readonly retry_from?: string | null;
  readonly finished_stages?: ReadonlyArray<string>;
  readonly checkpoint?: string | null;
  readonly traceparent?: string | null;
  readonly tracestate?: string | null;
}

/** The token with this `jti` lets nobody in any more. `until`: no token can be good for longer than that. */
export interface TokenRevoked {
  readonly by: string;
  readonly reason?: string;
  readonly jti: string;
  readonly until: string;
}

/** The token with this `jti` lets nobody in any more. `until`: no token can be good for longer than that. */
export interface TokenRevokedEvent {
  readonly specversion: "1.0";
  /** A ULID, the event's own for ever, however often it is delivered. */
  readonly id: string;
  readonly type: "dev.headgate.ops.token_revoked.v1";
  /** What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard. */
  readonly subject: string;
  /** The writer's clock. The order is the stream's, not this one's. */
  readonly time: string;
  readonly datacontenttype?: "application/json";
  /** The service that wrote it. */
  readonly source: "/headgate/admission" | "/headgate/scheduler" | "/headgate/worker";
  /** The schema of `data`: a part of `schemas/<type>.json`. */
  readonly dataschema: string;
  readonly data: TokenRevoked;
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

/** Any event of the log; `type` tells which. */
export type HeadgateEvent = ContentErasedEvent | GroupLeasedEvent | JobAnsweredEvent | JobAwaitingConfirmationEvent | JobCancelRequestedEvent | JobCancelledEvent | JobConfirmationReminderEvent | JobConfirmedEvent | JobDispatchedEvent | JobFailedEvent | JobGivenBackEvent | JobMovedEvent | JobQueuedEvent | JobReadyEvent | JobReprioritizedEvent | JobScheduledEvent | JobStageEvent | JobStartedEvent | JobTryFailedEvent | JobWaitingEvent | LeaseReleasedEvent | LimitSetEvent | LimitUnsetEvent | PipelineRemovedEvent | PolicyReloadedEvent | QueuePausedEvent | QueueResumedEvent | SchedulerCommittedEvent | TokenRevokedEvent;
