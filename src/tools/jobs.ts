import type { Job, Jobs } from '../needs.js';

/** The background jobs of one session. */
export type SessionJobs = Jobs & {
  /** Ends every job; for the end of the session. */
  killAll(): Promise<void>;
};

export const createJobs = (): SessionJobs => {
  const jobs = new Map<string, Job>();
  return {
    add(start) {
      const jobId = `job-${jobs.size + 1}`;
      const job = start(jobId);
      jobs.set(jobId, job);
      return job;
    },
    get: (jobId) => jobs.get(jobId),
    list: () => [...jobs.values()],
    killAll: async () => {
      await Promise.all([...jobs.values()].map((job) => job.kill()));
    },
  };
};
