/**
 * Nothing waits or ends by the time of day, since it is set while sessions run.
 */

import { type Fault, isNode, type Node, nameOf, type Source, walk } from './source.js';

/**
 * The files that may ask for the time of day. None of them measures a wait or a deadline with it.
 */
const ALLOWED: ReadonlySet<string> = new Set([
  'packages/agent/src/platform/clock.ts', // the clock of sessions, which is steady while a timer runs
  'packages/verify/src/simulation/simulate.ts', // replaces the clock of simulated processes

  // compare it with the times of files, which are times of day
  'packages/agent/src/command/sandbox/git-history.ts', // also dates the entries of a reflog
  'packages/agent/src/command/sandbox/protected-files.ts',
  'packages/agent/src/command/sandbox/protected-scan.ts',
  'packages/agent/src/command/earlier-processes.ts',
  'packages/agent/src/workspace/git.ts',
  'packages/agent/src/workspace/repository-snapshot.ts',
  'packages/agent/src/workspace/checkpoints/scan.ts',
  'packages/agent/src/workspace/checkpoints/session-checkpoints.ts',
  'packages/agent/src/workspace/checkpoints/store.ts',
  'packages/agent/src/workspace/format-files.ts',

  'packages/agent/src/journal/lock.ts', // when the lock was taken, and whether that was before the computer started
  'packages/agent/src/models/wire-model.ts', // a server may say until which time of day to wait
  'packages/agent/src/models/catalogue.ts', // prices have a date
  'packages/pawl/src/commands/doctor.ts', // shows whether the clock is right

  // note when something happened
  'packages/pawl/src/sessions/stored-sessions.ts',
  'packages/agent/src/extensions/trust.ts',
]);

/**
 * `Date` in `new Date(time)`, `Date.parse(text)`, `Date.UTC(…)` and `value instanceof Date` asks no
 * clock.
 */
const asksNoClock = (node: Node, parent: Node, field: string): boolean => {
  if (parent.type === 'NewExpression')
    return field === 'callee' && Array.isArray(parent.arguments) && parent.arguments.length > 0;
  if (parent.type === 'BinaryExpression')
    return parent.operator === 'instanceof' && parent.right === node;
  if (parent.type === 'MemberExpression' && field === 'object')
    return parent.computed !== true && ['parse', 'UTC'].includes(nameOf(parent.property) ?? '');
  return false;
};

/** A type, or a name of something's field. */
const isOnlyName = (parent: Node, field: string): boolean =>
  parent.type.startsWith('TS') ||
  (field === 'property' && parent.computed !== true && nameOf(parent.object) !== 'globalThis') ||
  (field === 'key' && parent.computed !== true);

/** `Temporal.Now` is the other way to the time of day. */
const isClock = (node: Node, parent: Node | null, field: string): boolean => {
  const name = nameOf(node);
  if (!isNode(parent) || isOnlyName(parent, field)) return false;
  return name === 'Temporal' || (name === 'Date' && !asksNoClock(node, parent, field));
};

/**
 * The clock of the wall is set while sessions run, so nothing waits or ends by it: waits are
 * counted by `performance.now()` or the session's clock. For the sources of packages.
 */
export const wallClockFaults = (source: Source): readonly Fault[] => {
  if (ALLOWED.has(source.file)) return [];
  const faults: Fault[] = [];
  walk(source.program, (node, parent, field) => {
    if (!isClock(node, parent, field)) return;
    const text =
      'asks for the time of day, which may jump: use performance.now(), or the clock you are given';
    faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  return faults;
};
