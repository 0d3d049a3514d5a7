import type { Job, Jobs } from '../ports/tool.js';

/** An empty list of background jobs. One per session. */
export const createJobs = (): Jobs => {
  const jobs = new Map<string, Job>();
  let count = 0;
  return {
    add(start) {
      count += 1;
      const jobId = `job-${count}`;
      const job = start(jobId);
      jobs.set(jobId, job);
      return job;
    },
    restore(job) {
      jobs.set(job.jobId, job);
      count = Math.max(count, Number(job.jobId.replace('job-', '')));
    },
    get: (jobId) => jobs.get(jobId),
    list: () => [...jobs.values()],
  };
};
