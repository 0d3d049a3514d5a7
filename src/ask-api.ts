import { realpath } from 'node:fs/promises';
import { chooseEnvironment } from './environments/choose.js';
import { askMachine } from './journal/ask.js';
import type { Clock, JournalStore, Model, OpenJournal, Watcher } from './needs.js';
import type { AskSettings, AskTypes, EnvironmentKind, EnvironmentName } from './needs-recursive.js';
import { codeModeInstructions, subcallInstructions } from './prompt/code-mode.js';
import { type CodeSettings, defaultCodeSettings, type Reserve } from './recursive/settings.js';
import type { Outcome } from './recursive/state.js';
import { initialTree, type Tree } from './recursive/tree-state.js';
import { systemClock } from './runtime/clock.js';
import type { AskEquipment, StopPolicy } from './runtime/recursive/equipment.js';
import { type InputSource, measureInputs, verifyInputs } from './runtime/recursive/inputs.js';
import { LiveTree } from './runtime/recursive/live-tree.js';
import { newSessionId } from './runtime/session-id.js';
import { attempt } from './runtime/wall.js';

/** Code mode as a library: questions about inputs that are too large for a model's window. */

type EnvironmentKinds = Readonly<Record<EnvironmentName, EnvironmentKind>>;

export type AskerOptions = {
  readonly model: Model;
  /** What sub-calls go to; the same model, if not given. */
  readonly subModel?: Model;
  readonly journals: JournalStore<AskTypes>;
  /** Where programs may run; those that come with Pawl, if not given. */
  readonly environments?: EnvironmentKinds;
  readonly clock?: Clock;
  /** Asked before every model call, beside the limits. */
  readonly policy?: StopPolicy;
  /** Told of faults that stop nothing; a process warning, if not given. */
  readonly report?: (fault: Error) => void;
};

export type AskOptions = {
  readonly question: string;
  /** Files of text in UTF-8, 100 MB together at most. They must stay as they are until the run is over. */
  readonly contexts: readonly InputSource[];
  /** The folder that the run is listed under. */
  readonly workspace: string;
  /** By default `javascript` where it works, else `quickjs`. */
  readonly environment?: EnvironmentName;
  readonly settings?: Partial<
    Omit<AskSettings, 'model' | 'subModel' | 'question' | 'inputs' | 'files' | 'environment'>
  >;
  /** Called with every step, from the first. */
  readonly watcher?: Watcher<AskTypes>;
};

export type AskRun = {
  readonly id: string;
  readonly settings: AskSettings;
  /** Why its programs do not run where they would run best; null where they do. */
  readonly note: string | null;
  /** What was cut off the journal's end, of a run that goes on. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Rejects with what stopped the run before its end, e.g. a full disk. */
  readonly outcome: Promise<Outcome>;
  state(): Tree;
  /** Calls with every step from now on; the returned function ends that. */
  watch(watcher: Watcher<AskTypes>): () => void;
  /** Ends it as it stands; `outcome` says so. */
  cancel(): Promise<void>;
  /** What still runs stands down and can be resumed; the journal's lock is free when it resolves. */
  close(): Promise<void>;
};

export type Asker = {
  ask(options: AskOptions): Promise<AskRun>;
  /** Goes on where it was: what was paid for is not asked again. A run that is over is only looked at. */
  resume(sessionId: string, watcher?: Watcher<AskTypes>): Promise<AskRun>;
};

/** No environment that was asked for works here; the message says why, and what to do. */
export class EnvironmentUnavailable extends Error {
  override readonly name = 'EnvironmentUnavailable';
}

/** Loaded when the first run begins. */
const loadEnvironments = async (): Promise<EnvironmentKinds> => {
  const [{ javascript }, { quickjs }, { python }] = await Promise.all([
    import('./environments/javascript.js'),
    import('./environments/quickjs.js'),
    import('./environments/python.js'),
  ]);
  return { javascript, quickjs, python };
};

type Chosen = { readonly kind: EnvironmentKind; readonly note: string | null };

const CHARACTERS_PER_TOKEN = 4;
/** Tokens of a reply that nobody knows yet. */
const REPLY_TOKENS = 500;

/** What a call is expected to cost, by the dearer of the models. */
const reserveOf = (models: readonly Model[]): Reserve => {
  const most = (kind: 'input' | 'output'): number =>
    Math.max(...models.map(({ facts }) => facts.prices?.[kind] ?? 0)) / 1_000_000;
  return {
    callUsd: REPLY_TOKENS * most('output'),
    callTokens: REPLY_TOKENS,
    characterUsd: most('input') / CHARACTERS_PER_TOKEN,
    characterTokens: 1 / CHARACTERS_PER_TOKEN,
  };
};

const refuseUnpriced = (models: readonly Model[], { limits }: Pick<CodeSettings, 'limits'>): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || limits.usd === 0) return;
  throw new Error(
    `a limit in dollars can't be kept: the price of ${unknown.id} is not known. Set a limit in tokens, iterations or minutes instead.`,
  );
};

const defaults: Pick<AskSettings, 'memoryMax' | 'firstByteMs' | 'silenceMs'> = {
  memoryMax: 512 * 1024 * 1024,
  firstByteMs: 120_000,
  silenceMs: 90_000,
};

class Askers implements Asker {
  readonly #options: AskerOptions;
  readonly #models: readonly Model[];
  readonly #clock: Clock;

  constructor(options: AskerOptions) {
    this.#options = options;
    this.#models = [options.model, options.subModel ?? options.model];
    this.#clock = options.clock ?? systemClock;
  }

  async ask(options: AskOptions): Promise<AskRun> {
    const { journals } = this.#options;
    const chosen = await this.#choose(options.environment ?? null);
    const settings = await this.#settingsFor(options, chosen.kind);
    const { language } = chosen.kind;
    const { cellDeadlineMs, outputMax, depthMax } = settings;
    const recursive = depthMax > 1 ? 'yes' : 'no';
    const instructions = codeModeInstructions({ language, recursive, cellDeadlineMs, outputMax });
    // first, so that no header is ever durable without what it names
    const [instructionsHash, tools] = await Promise.all([
      journals.blobs.put(instructions),
      journals.blobs.put('[]'),
    ]);
    const journal = await journals.create({
      version: 1,
      kind: 'ask',
      sessionId: newSessionId(this.#clock),
      createdAt: this.#clock.now(),
      workspace: await realpath(options.workspace),
      parent: null,
      machine: askMachine.fingerprint,
      settings,
      instructions: instructionsHash,
      tools,
      prices: this.#options.model.facts.prices,
    });
    const opened = { journal, state: initialTree(settings), tornTail: null };
    return this.#start(opened, chosen, instructions, options.watcher);
  }

  async resume(sessionId: string, watcher?: Watcher<AskTypes>): Promise<AskRun> {
    const opened = await this.#options.journals.open(sessionId);
    const { journal, state } = opened;
    const started = await attempt(async () => {
      const { settings } = journal.header;
      refuseUnpriced(this.#models, settings);
      if (state.name !== 'Ended') await verifyInputs(settings.files);
      const chosen = await this.#chooseAgain(settings, state);
      return this.#start(opened, chosen, (await journal.frozen()).instructions, watcher);
    });
    if (started.kind === 'done') return started.value;
    // the first failure is the one to report; the journal is let go of as well as it can be
    await attempt(() => journal.close());
    throw started.fault;
  }

  async #environments(): Promise<EnvironmentKinds> {
    return this.#options.environments ?? loadEnvironments();
  }

  async #choose(wanted: EnvironmentName | null): Promise<Chosen> {
    const choice = await chooseEnvironment(wanted, await this.#environments());
    if (choice.status === 'chosen') return choice;
    throw new EnvironmentUnavailable(`There is no environment for the model's programs. ${choice.why}`);
  }

  /** The one it began in: what was bound there can't be built again elsewhere. A run that is over needs none. */
  async #chooseAgain({ environment }: AskSettings, state: Tree): Promise<Chosen> {
    if (state.name !== 'Ended') return this.#choose(environment);
    return { kind: (await this.#environments())[environment], note: null };
  }

  async #settingsFor(options: AskOptions, kind: EnvironmentKind): Promise<AskSettings> {
    const { model, subModel = model, policy } = this.#options;
    const inputs = await measureInputs(options.contexts);
    const settings: AskSettings = {
      ...defaultCodeSettings,
      ...defaults,
      reserve: reserveOf(this.#models),
      subcallInstructions,
      userPolicy: policy === undefined ? 'no' : 'yes',
      ...options.settings,
      model: model.id,
      subModel: subModel.id,
      question: options.question,
      inputs: inputs.map(({ facts }) => facts),
      files: inputs.map(({ file }) => file),
      environment: kind.name,
    };
    refuseUnpriced(this.#models, settings);
    return settings;
  }

  async #start(
    { journal, state, tornTail }: OpenJournal<AskTypes>,
    { kind, note }: Chosen,
    instructions: string,
    watcher: Watcher<AskTypes> | undefined,
  ): Promise<AskRun> {
    const { report = (fault) => process.emitWarning(fault) } = this.#options;
    const tree = new LiveTree(journal, state, this.#equip(kind, instructions), report);
    if (watcher !== undefined) tree.watch(watcher);
    await tree.start();
    return {
      id: journal.header.sessionId,
      settings: journal.header.settings,
      note,
      tornTail,
      outcome: tree.outcome,
      state: () => tree.state,
      watch: (later) => tree.watch(later),
      cancel: () => tree.cancel(),
      close: () => tree.close(),
    };
  }

  #equip(environment: EnvironmentKind, instructions: string): AskEquipment {
    const model = (modelId: string): Model => {
      const found = this.#models.find(({ id }) => id === modelId);
      if (found !== undefined) return found;
      throw new Error(
        `the model ${modelId} is not connected: this run was opened with ${this.#options.model.id}`,
      );
    };
    const policy = this.#options.policy ?? null;
    return { model, environment, instructions, policy, clock: this.#clock, random: Math.random };
  }
}

/** Asks questions about large inputs: one model, one place for journals, any number of runs. */
export const createAsker = (options: AskerOptions): Asker => new Askers(options);
