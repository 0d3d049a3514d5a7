import { readFile } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import { agentMachine } from '../../../packages/agent/src/journal/journaled-agent-machine.js';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState, step } from '../../../packages/agent/src/machine/machine.js';
import { defaultSettings } from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type {
  Entry,
  EntryDraft,
  Header,
  Journal,
} from '../../../packages/agent/src/ports/journal.js';
import { temporaryFolder } from '../../temporary-folder.js';

/** A folder of the test's own, removed when it ends. */
export const makeFolder = async (context: TestContext): Promise<string> => {
  const folder = temporaryFolder(context, 'journal');
  return folder;
};

export const headerOf = (sessionId: string, createdAt = 1_000): Header => ({
  version: 1,
  sessionId,
  createdAt,
  workspace: '/somewhere',
  parent: null,
  machine: agentMachine.fingerprint,
  machineVersion: agentMachine.version,
  settings: { ...defaultSettings, model: 'scripted/test', workspace: '/somewhere', hooks: 'never' },
  instructions: 'a'.repeat(64),
  tools: 'b'.repeat(64),
  prices: null,
});

const usage = {
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.5,
};

/** What happens next in a plain session: start, then the user asks and the model answers, again and again. */
const nextEvent = (state: State, at: number, text: string): Event => {
  switch (state.name) {
    case 'Ready':
      return { type: 'Start', at };
    case 'CallingLlm': {
      const message = {
        role: 'assistant',
        model: 'scripted/test',
        cut: false,
        parts: [{ type: 'text', text }],
      } as const;
      return {
        type: 'LlmCompleted',
        at,
        requestId: state.requestId,
        message,
        calls: [],
        stopReason: 'end',
        usage,
      };
    }
    default:
      return { type: 'UserInput', at, text, mode: 'steer' };
  }
};

/** `count` drafts that go on from `state`, as the runtime would hand them to the journal. */
export const tell = (
  count: number,
  state: State,
  text = (index: number) => `words ${index} äöü €`,
): EntryDraft[] => {
  const drafts: EntryDraft[] = [];
  for (let index = 1; index <= count; index++) {
    const from = drafts.at(-1)?.state ?? state;
    const event = nextEvent(from, 1_000 + index, text(index));
    drafts.push({ event, state: step(from, event).state });
  }
  return drafts;
};

export const tellFrom = (header: Header, count: number): EntryDraft[] =>
  tell(count, initialState(header.settings));

export const eventsOf = (drafts: readonly EntryDraft[]): readonly Event[] =>
  drafts.map(({ event }) => event);

export const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

export const readEvents = async (journal: Pick<Journal, 'read'>): Promise<readonly Event[]> =>
  (await collect<Entry>(journal.read())).map(({ event }) => event);

/** The state without views and identities, for comparing. */
export const plain = (state: State | undefined): unknown =>
  JSON.parse(JSON.stringify(state ?? null));

export const linesOf = async (path: string): Promise<string[]> =>
  (await readFile(path, 'utf8')).split('\n').slice(0, -1);
