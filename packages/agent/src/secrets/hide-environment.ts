/**
 * Removes secrets from `/proc/PID/environ`.
 *
 * The kernel shows there the environment that a process was started with, whatever the process has
 * changed since. Any process of the same user may read it, so a command without a sandbox could
 * find the keys that its own environment lacks. So the bytes in our own memory are overwritten,
 * after the variables were copied.
 *
 * 1. `process.env` keeps every value.
 * 2. Nothing is written unless the memory holds exactly the expected bytes.
 * 3. It is best effort: on other systems, or without /proc, nothing happens. It does not protect
 *    against processes that may read our memory (root, or a debugger if the system allows one).
 */

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { secretValues, secretVariables } from './redactor.js';

/** Index in /proc/self/stat, counted after the name, of the environment's address (field 50). */
const ENVIRONMENT_START = 47;

type Entry = { readonly name: string; readonly bytes: Buffer; readonly at: number };

const parseEntries = (block: Buffer): readonly Entry[] => {
  const entries: Entry[] = [];
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const stop = end < 0 ? block.length : end;
    const bytes = block.subarray(at, stop);
    const sign = bytes.indexOf('=');
    if (sign > 0) entries.push({ name: bytes.toString('latin1', 0, sign), bytes, at });
    at = stop + 1;
  }
  return entries;
};

/** Moves a variable to new memory, which the C library allocates for every value that is set. */
const moveAway = (name: string, environment: NodeJS.ProcessEnv): void => {
  const value = environment[name];
  if (value !== undefined) environment[name] = value;
};

const overwrite = (memory: number, address: number, { name, bytes }: Entry): void => {
  const there = Buffer.alloc(bytes.length);
  readSync(memory, there, 0, there.length, address);
  if (!there.equals(bytes)) return; // other bytes than expected are never written over
  const from = name.length + 1;
  const length = bytes.length - from;
  writeSync(memory, Buffer.alloc(length), 0, length, address + from);
};

/** Call it once, before anything keeps references to the environment. Never throws. */
export const hideEnvironment = (): void => {
  if (process.platform !== 'linux') return;
  // also includes proxies with a password
  const held = secretValues(process.env).map(({ name }) => name);
  const names = new Set([...secretVariables(process.env), ...held]);
  if (names.size === 0) return;
  let memory: number | null = null;
  try {
    const status = readFileSync('/proc/self/stat', 'latin1');
    const start = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[ENVIRONMENT_START]);
    const entries = parseEntries(readFileSync('/proc/self/environ')).filter(({ name }) =>
      names.has(name),
    );
    memory = openSync('/proc/self/mem', 'r+');
    for (const entry of entries) {
      const value = process.env[entry.name];
      moveAway(entry.name, process.env);
      overwrite(memory, start + entry.at, entry);
      // If the C library did not move it, restore it from our copy.
      if (value !== undefined && process.env[entry.name] !== value) process.env[entry.name] = value;
    }
  } catch {
    // Without /proc the environment stays as it was.
  } finally {
    if (memory !== null) closeSync(memory);
  }
};
