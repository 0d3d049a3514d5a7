import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import {
  type Answer,
  rawCall,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { moveSecret } from '../../../../test/move-secret.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { JournalStore, SessionInfo } from '../../src/ports/journal.js';
import type { ModelRequest } from '../../src/ports/model.js';
import {
  type AgentOptions,
  openSession,
  type Session,
  type SessionOptions,
} from '../../src/session/create-agent.js';

/** Sessions that start tasks. */

/** What a call costs in these tests: 100 tokens for 1 $ a million, 10 for 10 $ a million. */
export const CALL_USD = 0.0002;

const isTask = ({ instructions }: ModelRequest): boolean =>
  instructions.includes('# This is a task');

/** A model whose answers to a task are a list of their own. */
export const twoSided = (own: Answer[], ofTasks: Answer[]) => {
  const model = testModel();
  const requests: { readonly task: boolean; readonly request: ModelRequest }[] = [];
  return {
    requests,
    model: {
      ...model,
      stream(request: ModelRequest, signal: AbortSignal) {
        const task = isTask(request);
        requests.push({ task, request });
        const answer = (task ? ofTasks : own).shift() ?? say('nothing left to say');
        return answer(request, signal);
      },
    },
  };
};

export const open = async (
  t: TestContext,
  options: Partial<SessionOptions> &
    Pick<AgentOptions, 'model'> & { readonly journals?: JournalStore },
): Promise<{ session: Session; journals: JournalStore; workspace: string }> => {
  const workspace = temporaryFolder(t, 'task');
  await writeFile(path.join(workspace, 'a.txt'), 'the answer is 42\n');
  const journals = memoryJournals();
  const session = await openSession({ journals, workspace, tasks: true, ...options });
  t.after(() => session.close().catch(() => undefined)); // a test may have ended it otherwise
  return { session, journals: options.journals ?? journals, workspace };
};

export const startTask = (callId = '1', more = {}) =>
  rawCall(callId, 'task', { purpose: 'look', prompt: 'What does a.txt say?', ...more });

export const listed = async (journals: JournalStore): Promise<readonly SessionInfo[]> => {
  const found: SessionInfo[] = [];
  for await (const info of journals.list()) found.push(info);
  return found;
};

export const resultIn = (session: Awaited<ReturnType<Session['state']>>, callId = '1'): string =>
  messagesOf(session.session.conversation)
    .map((message) => resultsOf([message])[callId])
    .find((text) => text !== undefined) ?? '';

/** Resolves when `holds` does; asked again with every step. */
export const until = (session: Session, holds: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = setInterval(() => {
      if (!holds()) return;
      clearInterval(look);
      resolve();
    }, 5);
    session.ended.catch(() => clearInterval(look));
  });

/** A state folder as a crash leaves it now, without the locks of this process. */
export const crashedCopy = async (t: TestContext, folder: string): Promise<string> => {
  const copy = temporaryFolder(t, 'crashed');
  await cp(folder, copy, { recursive: true, filter: (place) => !place.includes('.lock') });
  moveSecret(copy);
  return copy;
};
