import { readFileSync } from 'node:fs';
import path from 'node:path';

type Everyday = {
  readonly sources: readonly string[];
  readonly seed: number;
  /** What the first word of each command is one of. */
  readonly programs: readonly string[];
  readonly commands: readonly string[];
};

/** The file's bytes: its hash is kept by the test. */
export const EVERYDAY_TEXT = readFileSync(path.join(import.meta.dirname, 'commands.json'), 'utf8');

/** 1,000 commands that agents are told to run, fixed before the rules were written (SOURCES.md). */
export const EVERYDAY: Everyday =
  // The file has this shape; everyday.test.ts checks each field.
  JSON.parse(EVERYDAY_TEXT) as Everyday;
