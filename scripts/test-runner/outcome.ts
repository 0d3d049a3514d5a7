/**
 * What the process of a test file tells about its tests, one JSON line each; the last line says
 * that all have ended.
 */

export type TestOutcome = {
  readonly type: 'passed' | 'failed' | 'skipped' | 'todo';
  /** The names of what is around it and its own. */
  readonly name: string;
  /** Of a failed one what was thrown, as text; else empty. */
  readonly error: string;
};

export type OutcomeLine =
  | TestOutcome
  | { readonly type: 'suite'; readonly name: string; readonly durationMs: number }
  /** What node says beside: an error after the end of a test, for example. */
  | { readonly type: 'note'; readonly text: string }
  /** `cpuMs`: of the process and its children until then. */
  | { readonly type: 'ended'; readonly cpuMs: number };
