/**
 * Code mode as a library: questions about inputs that are too large for a model's window. A run is
 * one conversation about a question; in it the model writes programs, which an environment
 * executes.
 *
 * From top to bottom: the types; `createAsker`; `JournaledAsker`, which starts and resumes runs;
 * its environments; what its settings need; and the costs of calls, estimated in advance.
 */

import { realpath } from 'node:fs/promises';
import {
  HIDDEN_TOKENS_MAX,
  highestInputPrice,
  OUTPUT_TOKENS_MAX,
  OUTPUT_TOKENS_MIN,
} from '@pawl/agent/machine/moves/request';
import { type Effort, isLimited } from '@pawl/agent/machine/settings';
import { attempt, reportThrough } from '@pawl/agent/platform/attempt';
import { type Clock, systemClock } from '@pawl/agent/platform/clock';
import type { JournalStore, OpenJournal } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session';
import { createRedactor, findSecrets } from '@pawl/agent/secrets/redactor';
import { newSessionId } from '@pawl/agent/session/equipment';
import { checkModel } from '@pawl/agent/session/outside-values';
import { codeModeInstructions, subcallInstructions } from './code-mode-instructions.js';
import { askMachine } from './journaled-ask-machine.js';
import type {
  AskSettings,
  AskTypes,
  EnvironmentKind,
  EnvironmentName,
  WrittenEnvironment,
} from './ports.js';
import { EnvironmentUnavailable, UnknownPrice } from './run/eager-values.js';
import type { ChangedLimits } from './run/event.js';
import {
  allowedModels,
  type CallBounds,
  type CodeSettings,
  defaultCodeSettings,
  type Reserve,
  type RunLimits,
  readRunLimits,
} from './run/settings.js';
import type { Outcome } from './run/state.js';
import { LiveTree } from './runtime/live-tree.js';
import { type InputSource, measureInputs, verifyInputs } from './runtime/measure-inputs.js';
import type { AskEquipment, StopPolicy } from './runtime/model-calls.js';
import { canGoOn } from './tree/raise-limits.js';
import { initialTree, type Pieces, piecesOf, type Tree } from './tree/tree-state.js';

// ---- The types ----

/** The environments by their names. */
type EnvironmentKinds = Readonly<Record<EnvironmentName, EnvironmentKind>>;

export type AskerOptions = {
  readonly model: Model;
  /** The model for sub-calls. Default: `model`. */
  readonly subModel?: Model;
  /** Further models that programs may name: `llm_query(prompt, model)`. */
  readonly models?: readonly Model[];
  readonly journals: JournalStore<AskTypes>;
  /** The environments for programs. Default: the ones that come with Pawl. */
  readonly environments?: EnvironmentKinds;
  readonly clock?: Clock;
  /** How much the models should think. Default: `auto`, which leaves it to them. */
  readonly effort?: Effort;
  /**
   * Secrets in addition to those in the environment. Each key is the name that models see in place
   * of its value.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Called before every model call, in addition to the limits. */
  readonly policy?: StopPolicy;
  /** Called with faults that do not stop a run. Default: emits a process warning. */
  readonly report?: (fault: Error) => void;
};

/** Settings of a run. A missing field has its default. */
export type AskSettingsPatch = Partial<
  Omit<
    AskSettings,
    | 'model'
    | 'subModel'
    | 'models'
    | 'question'
    | 'inputs'
    | 'files'
    | 'environment'
    | 'limits'
    | 'childLimits'
  >
> & { readonly limits?: Partial<RunLimits>; readonly childLimits?: Partial<RunLimits> };

export type AskOptions = {
  readonly question: string;
  /** UTF-8 files (unchanged until the run ends), or texts and JSON. At most 100 MB in all. */
  readonly contexts: readonly InputSource[];
  /** The folder that the run is listed under. */
  readonly workspace: string;
  /** Default: `quickjs`. */
  readonly environment?: WrittenEnvironment;
  readonly settings?: AskSettingsPatch;
  /** Called with every step, from the first. */
  readonly watcher?: Watcher<AskTypes>;
};

/** The outcome of a run, with counts of the prompts that its programs sent to models. */
export type AskOutcome = Outcome & { readonly pieces: Pieces };

export type AskRun = {
  readonly id: string;
  readonly settings: AskSettings;
  /** The incomplete end that was cut off the journal of a resumed run. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Rejects with the error that stopped the run before its end, e.g. a full disk. */
  readonly outcome: Promise<AskOutcome>;
  state(): Tree;
  /** Calls the watcher with every step from now on. The returned function removes it. */
  watch(watcher: Watcher<AskTypes>): () => void;
  /** Ends the run; `outcome` then has the status `cancelled`. */
  cancel(): Promise<void>;
  /**
   * Stops the run so that it can be resumed. The journal's lock is free when the promise resolves.
   */
  close(): Promise<void>;
};

export type Asker = {
  ask(options: AskOptions): Promise<AskRun>;
  /**
   * Continues an interrupted run; answered model calls are not repeated. A finished run is only
   * opened for reading, unless `limits` is set and a limit ended the run or refused some of its
   * sub-calls.
   */
  resume(sessionId: string, options?: ResumeOptions): Promise<AskRun>;
};

export type ResumeOptions = {
  /** Called with every step from the resume on. */
  readonly watcher?: Watcher<AskTypes>;
  /** New limits; a missing one stays as it was. 0 means no limit; `timeMs` counts from now. */
  readonly limits?: ChangedLimits;
  /**
   * Resume the run even if another process may have it open. That process stops before it writes
   * again.
   */
  readonly takeOver?: boolean;
};

/**
 * Creates an asker, which answers questions about large inputs: one model, one journal store, any
 * number of runs.
 */
export const createAsker = (options: AskerOptions): Asker => new JournaledAsker(options);

/** One journal per run. An interrupted run is resumed from its journal. */
class JournaledAsker implements Asker {
  readonly #options: AskerOptions;
  readonly #models: readonly Model[];
  readonly #clock: Clock;

  constructor(options: AskerOptions) {
    this.#options = options;
    this.#models = [options.model, options.subModel ?? options.model, ...(options.models ?? [])];
    // throws if the object is no model
    for (const model of this.#models) checkModel(model);
    this.#clock = options.clock ?? systemClock;
  }

  async ask(options: AskOptions): Promise<AskRun> {
    const { journals } = this.#options;
    const kind = await this.#findWorking(options.environment ?? 'quickjs');
    const settings = await this.#settingsFor(options, kind);
    const instructions = instructionsFor(settings, kind);
    // Blobs (texts stored by their hash) come before the header, so that no stored header names
    // a missing blob. The list of tools is empty: code mode offers none.
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
    return this.#start(opened, kind, instructions, options);
  }

  async resume(sessionId: string, options: ResumeOptions = {}): Promise<AskRun> {
    const { watcher, limits } = options;
    const opened = await this.#options.journals.open(sessionId, options);
    const { journal, state } = opened;
    const goesOn = state.name !== 'Ended' || (limits !== undefined && canGoOn(state));
    const started = await attempt(async () => {
      const { settings } = journal.header;
      const chosen = { limits: readRunLimits({ ...settings.limits, ...limits }) };
      if (goesOn) refuseUnpriced(this.#models, chosen);
      if (goesOn) this.#refuseOtherPolicy(settings);
      if (goesOn) await verifyInputs(settings, this.#options.journals.blobs);
      // a finished run needs no environment that works
      const kind = await (goesOn ? this.#findWorking : this.#find)(settings.environment);
      // As they were when the run began, whatever this version of the program would write.
      const instructions = (await journal.frozen()).instructions;
      return this.#start(opened, kind, instructions, {
        watcher,
        limits: goesOn ? limits : undefined,
      });
    });
    if (started.kind === 'done') return started.value;
    // Report the first failure; a second one, from closing the journal, is ignored.
    await attempt(() => journal.close());
    throw started.fault;
  }

  /** A run asks the policy before every call or never: it can't begin or end in the middle. */
  #refuseOtherPolicy({ userPolicy }: AskSettings): void {
    const isMissing = this.#options.policy === undefined;
    if (isMissing === (userPolicy === 'no')) return;
    throw new Error(
      isMissing
        ? 'the run began with a policy: resume it with an asker that has one'
        : 'the run began without a policy, so none is asked: resume it with an asker without one',
    );
  }

  readonly #find = async (written: WrittenEnvironment): Promise<EnvironmentKind> => {
    const kinds = this.#options.environments ?? (await loadEnvironments());
    return kinds[written === 'javascript' ? 'quickjs' : written];
  };

  /** Throws if the environment does not work here: no other one takes its place. */
  readonly #findWorking = async (written: WrittenEnvironment): Promise<EnvironmentKind> => {
    const kind = await this.#find(written);
    const why = await kind.probe();
    if (why === null) return kind;
    throw new EnvironmentUnavailable(
      `There is no environment for the model's programs. ${kind.name} can't be used here: ${why}`,
    );
  };

  async #settingsFor(options: AskOptions, kind: EnvironmentKind): Promise<AskSettings> {
    const { model, subModel = model, policy } = this.#options;
    const { workspace } = options;
    const inputs = await measureInputs(options.contexts, {
      workspace,
      blobs: this.#options.journals.blobs,
    });
    const chosen: AskSettings = {
      ...defaultCodeSettings,
      ...defaults,
      subcallInstructions,
      userPolicy: policy === undefined ? 'no' : 'yes',
      ...options.settings,
      reserve: options.settings?.reserve ?? estimateReserve(this.#models),
      limits: readRunLimits(options.settings?.limits ?? {}),
      childLimits: readRunLimits(options.settings?.childLimits ?? {}),
      model: model.id,
      subModel: subModel.id,
      models: (this.#options.models ?? []).map(({ id }) => id),
      question: options.question,
      inputs: inputs.map(({ facts }) => facts),
      files: inputs.map(({ file }) => file),
      environment: kind.name,
      language: kind.language,
    };
    const bounds = boundCalls(this.#models, {
      run: instructionsFor(chosen, kind),
      plain: chosen.subcallInstructions,
    });
    const settings = { ...chosen, reserve: { ...chosen.reserve, bounds } };
    refuseUnpriced(this.#models, settings);
    return settings;
  }

  async #start(
    { journal, state, tornTail, past }: OpenJournal<AskTypes>,
    kind: EnvironmentKind,
    instructions: string,
    {
      watcher,
      limits,
    }: {
      readonly watcher?: Watcher<AskTypes> | undefined;
      readonly limits?: ChangedLimits | undefined;
    },
  ): Promise<AskRun> {
    // an error inside the caller's function becomes a process warning
    const report = reportThrough(this.#options.report ?? ((fault) => process.emitWarning(fault)));
    const tree = new LiveTree(
      journal,
      state,
      this.#equip(kind, instructions),
      report,
      limits ?? null,
    );
    if (watcher !== undefined) tree.watch(watcher);
    await tree.start(past?.lastAt ?? null);
    const outcome = tree.outcome.then((ended) => ({
      ...ended,
      pieces: piecesOf(tree.current.pieces),
    }));
    // Avoids an unhandled rejection, which would end the process; awaiting `outcome` still rejects.
    outcome.catch(() => undefined);
    return {
      id: journal.header.sessionId,
      settings: journal.header.settings,
      tornTail,
      outcome,
      state: () => tree.current,
      watch: (later) => tree.watch(later),
      cancel: () => tree.cancel(),
      close: () => tree.close(),
    };
  }

  #equip(environment: EnvironmentKind, instructions: string): AskEquipment {
    const model = (modelId: string): Model => {
      const match = this.#models.find(({ id }) => id === modelId);
      if (match !== undefined) return match;
      throw new Error(
        `the model ${modelId} is not connected: this run was opened with ${this.#options.model.id}`,
      );
    };
    const { effort = 'auto', policy = null, journals, secrets = {} } = this.#options;
    return {
      model,
      environment,
      instructions,
      policy,
      blobs: journals.blobs,
      effort: effort === 'auto' ? {} : { effort },
      redactor: createRedactor(findSecrets(process.env, secrets)),
      clock: this.#clock,
      random: Math.random,
    };
  }
}

/** The built-in environments, imported when the first run begins. */
const loadEnvironments = async (): Promise<EnvironmentKinds> => {
  const [{ quickjs }, { python }] = await Promise.all([
    import('./environments/quickjs/quickjs.js'),
    import('./environments/python.js'),
  ]);
  return { quickjs, python };
};

/** Throws if a limit in dollars is set and the price of a model is unknown. */
const refuseUnpriced = (
  models: readonly Model[],
  { limits }: Pick<CodeSettings, 'limits'>,
): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || !isLimited(limits.usd)) return;
  throw new UnknownPrice(
    `a limit in dollars can't be kept: the price of ${unknown.id} is not known. Set a limit ` +
      'in tokens, iterations or minutes instead.',
  );
};

const defaults: Pick<AskSettings, 'memoryMax' | 'firstByteMs' | 'silenceMs'> = {
  memoryMax: 512 * 1024 * 1024,
  firstByteMs: 120_000,
  silenceMs: 90_000,
};

/** The system instructions of runs with an environment. */
const instructionsFor = (
  settings: CodeSettings,
  { language }: Pick<EnvironmentKind, 'language'>,
): string => {
  const { cellDeadlineMs, outputMax, depthMax } = settings;
  return codeModeInstructions({
    language,
    recursive: depthMax > 1 ? 'yes' : 'no',
    cellDeadlineMs,
    outputMax,
    finalForms: settings.parity.finalForms,
    models: allowedModels(settings),
  });
};

// ---- Costs of calls, estimated from prices and output limits of the models ----

const CHARACTERS_PER_TOKEN = 4;
/** Tokens of a typical reply. */
const REPLY_TOKENS = 500;
/** Upper bound for the tokens of the instructions. */
const INSTRUCTION_TOKENS = 4_000;
/** Bytes of a request beside its texts: names of fields, and the effort. */
const FRAME_BYTES = 200;
const MILLION = 1_000_000;

/** The largest value among the models; 0 if no model has one. */
const most = (models: readonly Model[], read: (model: Model) => number | undefined): number =>
  Math.max(0, ...models.map((model) => read(model) ?? 0));

/**
 * What calls cost at most under a limit in dollars, for the most expensive of the models. The same
 * counts as in the agent's machine (rules.md#reserve-before-request).
 */
const boundCalls = (
  models: readonly Model[],
  instructions: { readonly run: string; readonly plain: string },
): CallBounds => {
  // the most that a token of the input can cost; a byte is at most a token
  const byteUsd =
    most(models, ({ facts: { prices } }) => (prices === null ? 0 : highestInputPrice(prices))) /
    MILLION;
  const output = most(models, ({ facts }) => facts.prices?.output) / MILLION;
  const longest = most(models, ({ facts }) => facts.outputTokensMax);
  // HIDDEN_TOKENS_MAX: what a provider adds to a request by itself
  const fixedUsd = (text: string): number =>
    (Buffer.byteLength(JSON.stringify(text)) + FRAME_BYTES + HIDDEN_TOKENS_MAX) * byteUsd;
  return {
    byteUsd,
    runUsd: fixedUsd(instructions.run),
    plainUsd: fixedUsd(instructions.plain),
    shortestReplyUsd: Math.min(longest, OUTPUT_TOKENS_MIN) * output,
    longestReplyUsd: Math.min(longest, OUTPUT_TOKENS_MAX) * output,
  };
};

/**
 * The expected and the worst-case cost of a call to the most expensive of the models. Worst case:
 * each character is a token, and the reply has the maximum length. In dollars the bounds hold.
 */
const estimateReserve = (models: readonly Model[]): Reserve => {
  const outputUsd = most(models, ({ facts }) => facts.prices?.output) / MILLION;
  const inputUsd = most(models, ({ facts }) => facts.prices?.input) / MILLION;
  const tokensPerCharacter = 1 / CHARACTERS_PER_TOKEN;
  return {
    expected: {
      callUsd: REPLY_TOKENS * outputUsd,
      callTokens: REPLY_TOKENS,
      characterUsd: tokensPerCharacter * inputUsd,
      characterTokens: tokensPerCharacter,
    },
    worst: {
      callUsd: 0,
      callTokens: INSTRUCTION_TOKENS + most(models, ({ facts }) => facts.outputTokensMax),
      characterUsd: 0,
      characterTokens: 1,
    },
    basis: 'estimated',
  };
};
