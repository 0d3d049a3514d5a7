/**
 * How the library offers ask: everything in `ask/` is loaded with the first call of a method, not
 * with the package.
 */

import type { FileJournalOptions } from '@pawl/agent/journal/file-store';
import { listSessions } from '@pawl/agent/journal/list';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import { fileBlobs } from '@pawl/agent/journal/state-folder';
import { checkModel } from '@pawl/agent/session/outside-values';
import type { Asker, AskerOptions } from './create-asker.js';
import type { AskTypes } from './ports.js';

/** Gives what `load` gave the first time. */
const once = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let loaded: Promise<T> | null = null;
  return () => {
    loaded ??= load();
    return loaded;
  };
};

/** Asks questions about large inputs: one model, one place for journals, any number of runs. */
export const createAsker = (options: AskerOptions): Asker => {
  checkModel(options.model);
  if (options.subModel !== undefined) checkModel(options.subModel);
  for (const model of options.models ?? []) checkModel(model);
  const load = once(async () => (await import('./create-asker.js')).createAsker(options));
  return {
    ask: async (asked) => (await load()).ask(asked),
    resume: async (sessionId, resumed) => (await load()).resume(sessionId, resumed),
  };
};

/** Runs of code mode as files under `folder`, beside the agent's sessions. */
export const fileAskJournals = (options: FileJournalOptions): InspectableStore<AskTypes> => {
  const load = once(async () =>
    (await import('./journaled-ask-machine.js')).fileAskJournals(options),
  );
  return {
    blobs: fileBlobs(options.folder),
    list: () => listSessions(options.folder),
    create: async (header) => (await load()).create(header),
    open: async (sessionId) => (await load()).open(sessionId),
    peek: async (sessionId) => (await load()).peek(sessionId),
    fork: async (...copied) => (await load()).fork(...copied),
    async *read(sessionId, from) {
      yield* (await load()).read(sessionId, from);
    },
    inspect: async (sessionId) => (await load()).inspect(sessionId),
    delete: async (sessionId) => (await load()).delete(sessionId),
    replay: async (sessionId, replayed) => (await load()).replay(sessionId, replayed),
  };
};
