import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as v from 'valibot';

/**
 * What a later process must know of a command: the file `order` beside its output, written before it starts.
 *
 * The first line is for the launcher's shell: when the command is due, in ms since boot, or `-`. The second line is JSON.
 */

export type CommandRecord = {
  /** Identifies the call in its session; also in the environment of all its processes. */
  readonly call: string;
  readonly marker: string;
  readonly isFenced: boolean;
  /** In ms since boot. */
  readonly startedAt: number;
  /** Device and inode of the workspace. */
  readonly workspace: string;
  /** Of a background command. */
  readonly job: { readonly jobId: string; readonly command: string } | null;
};

const recordSchema: v.GenericSchema<unknown, CommandRecord> = v.object({
  call: v.string(),
  marker: v.string(),
  isFenced: v.boolean(),
  startedAt: v.number(),
  workspace: v.string(),
  job: v.nullable(v.object({ jobId: v.string(), command: v.string() })),
});

/** `due`: null without a deadline. */
export type CommandOrder = { readonly due: number | null; readonly record: CommandRecord | null };

/** Time since boot in ms. Unlike the clock of the wall it never jumps, and all processes share it. */
export const sinceBoot = (): number => {
  try {
    return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
  } catch {
    return performance.now(); // not Linux: nothing is recovered there
  }
};

const fileIn = (folder: string): string => path.join(folder, 'order');

export const writeOrder = (folder: string, { due, record }: CommandOrder): void =>
  writeFileSync(fileIn(folder), `${due ?? '-'}\n${record === null ? '' : `${JSON.stringify(record)}\n`}`);

/** Null if there is none, or none that was written to its end. */
export const readOrder = (folder: string): (CommandOrder & { readonly record: CommandRecord }) | null => {
  try {
    const [due = '', json = ''] = readFileSync(fileIn(folder), 'utf8').split('\n');
    const record = v.parse(recordSchema, JSON.parse(json));
    return { due: due === '-' ? null : Number(due), record };
  } catch {
    return null; // the agent was killed before: then the command was not started either
  }
};
