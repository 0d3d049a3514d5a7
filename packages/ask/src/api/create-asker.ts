import { realpath } from 'node:fs/promises';
import { reportThrough } from '@pawl/agent/api/guarded-report';
import { isLimited } from '@pawl/agent/machine/values/limit-value';
import { createRedactor } from '@pawl/agent/platform/secrets/redactor';
import { secretsOf } from '@pawl/agent/platform/secrets/secret-variables';
import type { Clock } from '@pawl/agent/ports/clock';
import type { OpenJournal } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session-input-output';
import { attempt } from '@pawl/agent/session/attempt';
import { checkModel } from '@pawl/agent/session/check-outside-values';
import { systemClock } from '@pawl/agent/session/clock';
import { newSessionId } from '@pawl/agent/session/new-session-id';
import { EnvironmentUnavailable } from '../eager-ask-values.js';
import type {
  AskSettings,
  AskTypes,
  EnvironmentKind,
  EnvironmentName,
} from '../environment-and-journal-types.js';
import { chooseEnvironment } from '../environments/choose-environment.js';
import { askMachine } from '../journal/journaled-ask-machine.js';
import { codeModeInstructions, subcallInstructions } from '../prompt/code-mode-instructions.js';
import type { ChangedLimits } from '../run/event.js';
import { allowedModels, type CodeSettings, defaultCodeSettings, readRunLimits } from '../run/settings.js';
import type { AskEquipment } from '../runtime/ask-equipment.js';
import { LiveTree } from '../runtime/live-tree.js';
import { measureInputs, verifyInputs } from '../runtime/measure-inputs.js';
import { piecesOf } from '../tree/count-answered-pieces.js';
import { canGoOn } from '../tree/raise-limits.js';
import { initialTree } from '../tree/tree-state.js';
import type {
  Asker,
  AskerOptions,
  AskOptions,
  AskRun,
  EnvironmentKinds,
  ResumeOptions,
} from './asker-types.js';
import { reserveOf } from './estimate-cost.js';

/** Code mode as a library: questions about inputs that are too large for a model's window. */

/** The built-in environments, imported when the first run begins. */
const loadEnvironments = async (): Promise<EnvironmentKinds> => {
  const [{ javascript }, { quickjs }, { python }] = await Promise.all([
    import('../environments/sandboxed-node.js'),
    import('../environments/quickjs/quickjs.js'),
    import('../environments/python.js'),
  ]);
  return { javascript, quickjs, python };
};

type Chosen = { readonly kind: EnvironmentKind; readonly note: string | null };

const refuseUnpriced = (models: readonly Model[], { limits }: Pick<CodeSettings, 'limits'>): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || !isLimited(limits.usd)) return;
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
    this.#models = [options.model, options.subModel ?? options.model, ...(options.models ?? [])];
    for (const model of this.#models) checkModel(model);
    this.#clock = options.clock ?? systemClock;
  }

  async ask(options: AskOptions): Promise<AskRun> {
    const { journals } = this.#options;
    const chosen = await this.#choose(options.environment ?? null);
    const settings = await this.#settingsFor(options, chosen.kind);
    const { language } = chosen.kind;
    const { cellDeadlineMs, outputMax, depthMax } = settings;
    const recursive = depthMax > 1 ? 'yes' : 'no';
    const instructions = codeModeInstructions({
      language,
      recursive,
      cellDeadlineMs,
      outputMax,
      finalForms: settings.parity.finalForms,
      models: allowedModels(settings),
    });
    // Blobs come before the header, so that a stored header never names a missing blob.
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
    return this.#start(opened, chosen, instructions, options);
  }

  async resume(sessionId: string, given: Watcher<AskTypes> | ResumeOptions = {}): Promise<AskRun> {
    const options: ResumeOptions = typeof given === 'function' ? { watcher: given } : given;
    const { watcher, limits } = options;
    const opened = await this.#options.journals.open(sessionId, options);
    const { journal, state } = opened;
    const goesOn = state.name !== 'Ended' || (limits !== undefined && canGoOn(state));
    const started = await attempt(async () => {
      const { settings } = journal.header;
      refuseUnpriced(this.#models, { limits: readRunLimits({ ...settings.limits, ...limits }) });
      if (goesOn) await verifyInputs(settings.files, this.#options.journals.blobs);
      const chosen = await this.#chooseAgain(settings, goesOn);
      const instructions = (await journal.frozen()).instructions;
      return this.#start(opened, chosen, instructions, { watcher, limits: goesOn ? limits : undefined });
    });
    if (started.kind === 'done') return started.value;
    // Report the first failure; a second one, from closing the journal, is ignored.
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

  /** A resumed run keeps its environment: another one can't rebuild its variables. A finished run needs no probe. */
  async #chooseAgain({ environment }: AskSettings, goesOn: boolean): Promise<Chosen> {
    if (goesOn) return this.#choose(environment);
    return { kind: (await this.#environments())[environment], note: null };
  }

  async #settingsFor(options: AskOptions, kind: EnvironmentKind): Promise<AskSettings> {
    const { model, subModel = model, policy } = this.#options;
    const { workspace } = options;
    const inputs = await measureInputs(options.contexts, { workspace, blobs: this.#options.journals.blobs });
    const settings: AskSettings = {
      ...defaultCodeSettings,
      ...defaults,
      reserve: reserveOf(this.#models),
      subcallInstructions,
      userPolicy: policy === undefined ? 'no' : 'yes',
      ...options.settings,
      limits: readRunLimits(options.settings?.limits ?? {}),
      childLimits: readRunLimits(options.settings?.childLimits ?? {}),
      model: model.id,
      subModel: subModel.id,
      models: (this.#options.models ?? []).map(({ id }) => id),
      question: options.question,
      inputs: inputs.map(({ facts }) => facts),
      files: inputs.map(({ file }) => file),
      environment: kind.name,
    };
    refuseUnpriced(this.#models, settings);
    return settings;
  }

  async #start(
    { journal, state, tornTail, past }: OpenJournal<AskTypes>,
    { kind, note }: Chosen,
    instructions: string,
    {
      watcher,
      limits,
    }: { readonly watcher?: Watcher<AskTypes> | undefined; readonly limits?: ChangedLimits | undefined },
  ): Promise<AskRun> {
    const report = reportThrough(this.#options.report ?? ((fault) => process.emitWarning(fault)));
    const tree = new LiveTree(journal, state, this.#equip(kind, instructions), report, limits ?? null);
    if (watcher !== undefined) tree.watch(watcher);
    await tree.start(past?.lastAt ?? null);
    const outcome = tree.outcome.then((ended) => ({ ...ended, pieces: piecesOf(tree.state.pieces) }));
    // Avoids an unhandled rejection, which would end the process; awaiting `outcome` still rejects.
    outcome.catch(() => undefined);
    return {
      id: journal.header.sessionId,
      settings: journal.header.settings,
      note,
      tornTail,
      outcome,
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
    const { effort = 'auto', policy = null, journals, secrets = {} } = this.#options;
    return {
      model,
      environment,
      instructions,
      policy,
      blobs: journals.blobs,
      effort: effort === 'auto' ? {} : { effort },
      redactor: createRedactor(secretsOf(process.env, secrets)),
      clock: this.#clock,
      random: Math.random,
    };
  }
}

/** Creates an asker, which answers questions about large inputs: one model, one journal store, any number of runs. */
export const createAsker = (options: AskerOptions): Asker => new Askers(options);
