import type { Event } from '../event.js';
import type { State } from '../state.js';

/** One rule of the machine: what holds, where it holds, and the tests that keep it. Its key is its anchor. */
export type MachineRule = {
  /** One to three sentences, as docs/rules.md prints them. */
  readonly text: string;
  readonly states: readonly State['name'][] | 'every';
  readonly events: readonly Event['type'][] | 'every';
  /** Titles of tests, by file. A title that is built from parts is named by its fixed part. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
};

/** Rules about one subject, by anchor. */
export type RuleSection = Readonly<Record<string, MachineRule>>;
