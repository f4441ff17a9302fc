// What a job is called, in lists, on its page and in the browser's tab.

const PIPELINES = { build: "Build", rehearsal: "Rehearsal" };
export const isOwnTitle = (job) => Boolean(job.title);
export const titleOf = (job) => job.title || `${PIPELINES[job.pipeline] ?? job.pipeline} for ${job.project_id}`;
