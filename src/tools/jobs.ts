import type { Job, Jobs } from '../ports/tool.js';

/** An empty list of background jobs. One per session. */
export const createJobs = (): Jobs => {
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
  };
};
