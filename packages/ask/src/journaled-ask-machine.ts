/**
 * The machine of code mode (`pawl ask`) as a journal needs it: how a tree of runs is checked,
 * folded and hashed. The agent's is in journal/journaled-agent-machine.ts of packages/agent.
 */

import { type FileJournalOptions, machineFileJournals } from '@pawl/agent/journal/file-store';
import { sha256 } from '@pawl/agent/journal/journaled-agent-machine';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import { edgesFingerprint, type JournaledMachine } from '@pawl/agent/journal/replay';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { AskTypes } from './ports.js';
import { codeMode } from './run/table.js';
import { stepTreeUnchecked } from './tree/step-tree.js';
import { initialTree, type Tree } from './tree/tree-state.js';

/**
 * What a resumed run needs of the past: only the time of its last event. `see` gets each event;
 * what else `past` returns is about files, which only the agent has.
 */
const collectPast: NonNullable<JournaledMachine<AskTypes>['collectPast']> = () => {
  let lastAt: number | null = null;
  return {
    see({ at }) {
      lastAt = at;
    },
    past: () => ({ lastAt, hashes: new Map(), batchId: null, seen: new Map() }),
  };
};

/**
 * To be raised when the machine computes other states from the same events. Runs of an earlier
 * version go on, also where their recorded hashes differ.
 */
export const ASK_VERSION = 3;

/** Objects with a longer serialization are represented by their hash. */
const HASH_FROM = 512;

/**
 * Returns a function that hashes the states of one tree, incrementally.
 *
 * 1. A state shares nearly all of its objects with the one before, and objects never change: each
 *    is serialized once. An array that is made anew is serialized with all its texts.
 * 2. An object with a long serialization is represented by its hash in its parent.
 * 3. Keys are sorted, so the insertion order of fields does not matter.
 */
export const createTreeCheck = (): ((tree: Tree) => string) => {
  const serialized = new WeakMap<object, string>();
  const serialize = (value: unknown): string => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
    const known = serialized.get(value);
    if (known !== undefined) return known;
    const text = compose(value);
    const kept = text.length > HASH_FROM ? `#${sha256(text)}` : text;
    serialized.set(value, kept);
    return kept;
  };
  const compose = (value: object): string => {
    if (value instanceof AppendList) return `[${value.toArray().map(serialize).join(',')}]`;
    if (Array.isArray(value)) return `[${value.map(serialize).join(',')}]`;
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([left], [right]) => (left < right ? -1 : 1));
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${serialize(field)}`).join(',')}}`;
  };
  return (tree) => sha256(serialize(tree));
};

/** One journal holds a whole tree of runs. */
export const askMachine: JournaledMachine<AskTypes> = {
  kind: 'ask',
  initialState: initialTree,
  // Events in a journal were checked when they were written.
  step: stepTreeUnchecked,
  fingerprint: edgesFingerprint(codeMode.edges),
  version: ASK_VERSION,
  isAtRest: ({ name }) => name !== 'Running',
  collectPast,
  createCheck: createTreeCheck,
};

/**
 * A store that keeps the journals of code mode as files under `folder`, beside the agent's
 * sessions.
 */
export const fileAskJournals = (options: FileJournalOptions): InspectableStore<AskTypes> =>
  machineFileJournals(askMachine, options);
