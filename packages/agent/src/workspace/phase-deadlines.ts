/**
 * Deadlines of the phases. Reading a repository takes milliseconds, a formatter takes seconds per file, and a model
 * writes the commit message.
 */
export const DEADLINES_MS = {
  CheckingGitCommits: 10_000,
  RunningAutoformatters: 60_000,
  AutoCommitting: 60_000,
} as const;
