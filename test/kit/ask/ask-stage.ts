import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { machineMemoryJournals } from '../../../packages/agent/src/journal/memory-store.js';
import type { InspectableStore } from '../../../packages/agent/src/journal/reader.js';
import {
  messageText,
  type Script,
  scriptedModel,
} from '../../../packages/agent/src/models/scripted-model.js';
import type { Model, ModelRequest } from '../../../packages/agent/src/ports/model.js';
import type { Stepped } from '../../../packages/agent/src/ports/session.js';
import {
  type AskerOptions,
  type AskOptions,
  type AskRun,
  createAsker,
} from '../../../packages/ask/src/create-asker.js';
import { python } from '../../../packages/ask/src/environments/python.js';
import { quickjs } from '../../../packages/ask/src/environments/quickjs/quickjs.js';
import { askMachine } from '../../../packages/ask/src/journaled-ask-machine.js';
import type { AskTypes } from '../../../packages/ask/src/ports.js';
import type { Outcome } from '../../../packages/ask/src/run/state.js';
import { temporaryFolder } from '../../temporary-folder.js';

/** What tests of code mode stand on: real environments, journals in memory, a scripted model that notes its requests. */

export const environments = { quickjs, python };

export const makeFolder = async (context: TestContext): Promise<string> => {
  const folder = temporaryFolder(context, 'ask-test');
  return folder;
};

export const program = (...lines: readonly string[]): string =>
  `\`\`\`repl\n${lines.join('\n')}\n\`\`\``;
export const answers = (expression: string): string =>
  program(`answer.content = ${expression};`, 'answer.ready = true;');

export type NotingModel = Model & { readonly requests: ModelRequest[] };

/** The last messages of the requests, in the order in which they came. */
export const askedOf = ({ requests }: NotingModel): readonly string[] =>
  requests.map(({ messages }) => messageText(messages.at(-1)));

export const notingModel = (script: Script, id?: string): NotingModel => {
  const model = scriptedModel(script, id === undefined ? {} : { id });
  const requests: ModelRequest[] = [];
  const stream: Model['stream'] = (request, signal) => {
    requests.push(request);
    return model.stream(request, signal);
  };
  return { ...model, stream, requests };
};

export const memoryRuns = (): InspectableStore<AskTypes> => machineMemoryJournals(askMachine);

export type AskStage = {
  readonly journals?: InspectableStore<AskTypes>;
  readonly script?: Script;
  readonly model?: Model;
  readonly options?: Partial<AskOptions>;
  readonly asker?: Pick<AskerOptions, 'clock' | 'effort' | 'environments' | 'policy' | 'secrets'>;
};

export type Asked = {
  readonly run: AskRun;
  readonly steps: Stepped<AskTypes>[];
  readonly journals: InspectableStore<AskTypes>;
};

/** A run over one small input; closed after the test. */
export const askAbout = async (
  context: TestContext,
  text: string,
  stage: AskStage,
): Promise<Asked> => {
  const folder = await makeFolder(context);
  await writeFile(path.join(folder, 'input.txt'), text);
  const {
    journals = memoryRuns(),
    script = { replies: [] },
    model = scriptedModel(script),
  } = stage;
  const asker = createAsker({ model, journals, environments, ...stage.asker });
  const steps: Stepped<AskTypes>[] = [];
  const run = await asker.ask({
    question: 'what is in it?',
    contexts: [{ path: path.join(folder, 'input.txt') }],
    workspace: folder,
    watcher: (stepped) => steps.push(stepped),
    ...stage.options,
  });
  context.after(() => run.close().catch(() => undefined)); // what stopped it is the test's to look at
  return { run, steps, journals };
};

/** How a run ended, without what became of its pieces. */
export const endOf = async ({ outcome }: Pick<AskRun, 'outcome'>): Promise<Outcome> => {
  const { pieces: _, ...ended } = await outcome;
  return ended;
};

/** The events that the journal holds. */
export const journaled = async (journals: InspectableStore<AskTypes>, id: string) =>
  (await journals.inspect(id)).records.map(({ entry }) => entry.event);

/** Resolves with the first step, past or future, that fits. */
export const stepOf = (
  { run, steps }: Asked,
  fits: (stepped: Stepped<AskTypes>) => boolean,
): Promise<Stepped<AskTypes>> => {
  const past = steps.find(fits);
  if (past !== undefined) return Promise.resolve(past);
  return new Promise((resolve) => {
    const unwatch = run.watch((stepped) => {
      if (!fits(stepped)) return;
      unwatch();
      resolve(stepped);
    });
  });
};
