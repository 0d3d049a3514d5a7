import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { headerOf, makeFolder, plain, tell } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { agentMachine } from '../../src/journal/journaled-agent-machine.js';
import type { VisitedOpening } from '../../src/journal/reader.js';
import type { JournaledMachine } from '../../src/journal/replay.js';
import { initialState } from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';
import type { AgentTypes, EntryDraft, Header, Journal } from '../../src/ports/journal.js';

const atOnce = { every: 1, later: (work: () => void): void => work() };

export const storeOf = (folder: string, every = 1, machine: JournaledMachine = agentMachine) =>
  fileJournals({ folder, checkEvery: 1, snapshots: { ...atOnce, every }, machine });
export type Store = ReturnType<typeof storeOf>;

export const pathsIn = (folder: string, sessionId = 'a') => ({
  journal: join(folder, 'sessions', `${sessionId}.jsonl`),
  snapshot: join(folder, 'sessions', `${sessionId}.snapshot`),
  mark: join(folder, 'sessions', `${sessionId}.mark`),
});

export const write = async (
  store: Store,
  header: Header,
  drafts: readonly EntryDraft[],
  group = 1,
): Promise<void> => {
  const journal = await store.create(header);
  for (let from = 0; from < drafts.length; from += group)
    await appendAndRest(journal, drafts.slice(from, from + group));
  await journal.close();
};

/** Appends, and lets a snapshot be written, as a session does while it waits for the model. */
export const appendAndRest = async (
  journal: Journal,
  drafts: readonly EntryDraft[],
): Promise<void> => {
  await journal.append(drafts);
  await setImmediate();
};

/** Opens and closes the session: its state, what is told of files, and the steps that were folded. */
export const openOnce = async (
  store: Store,
  options: VisitedOpening<AgentTypes> = {},
  sessionId = 'a',
) => {
  const folded: { seq: number; before: State }[] = [];
  const visit = ({ seq, before }: { seq: number; before: State }): void =>
    void folded.push({ seq, before });
  const { journal, state, past } = await store.open(sessionId, { visitLast: 0, ...options, visit });
  await journal.close();
  return { state, past, folded };
};

export const texts = (index: number): string =>
  `line ${index}\n"quoted" äöü € ${'x'.repeat(300)}${index}`;

export const stage = async (
  context: TestContext,
  { count = 20, every = 4, machine = agentMachine } = {},
) => {
  const folder = await makeFolder(context);
  const store = storeOf(folder, every, machine);
  const drafts = tell(count, initialState(headerOf('a').settings), texts);
  await write(store, headerOf('a'), drafts);
  return { folder, store, drafts, ...pathsIn(folder), last: plain(drafts.at(-1)?.state) };
};

/** Asserts that opening folds so many entries, to this state. */
export const foldsAll = async (
  store: Store,
  count: number,
  last: unknown,
  sessionId = 'a',
): Promise<void> => {
  const { folded, state } = await openOnce(store, {}, sessionId);
  assert.equal(folded.length, count);
  assert.deepEqual(plain(state), last);
};
