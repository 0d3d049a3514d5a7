/**
 * The environments of a tree, one per run. Performs StartEnvironment, RunCell, AnswerSubcall,
 * ReadVariable and CloseEnvironment.
 *
 * 1. The actions of one environment run one after the other, after its start.
 * 2. After CloseEnvironment it posts no more events, and its process, thread and files are removed.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Post } from '@pawl/agent/session/loop';
import type {
  AskSettings,
  AskTypes,
  Environment,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../ports.js';
import type { Material, TreeAction } from '../run/action.js';
import type { PastCell } from '../run/cell-types.js';
import { digestCall, digestTexts } from '../run/text-hash.js';
import type { AskEquipment } from './model-calls.js';

/** The environment of one run, from its start until it has ended. */
type RunEnvironment = {
  readonly node: string;
  /** Aborted when the environment must end. */
  readonly closing: AbortController;
  /** Resolvers of open sub-calls, by cell and ordinal. */
  readonly waiting: Map<string, (texts: readonly string[]) => void>;
  environment: Environment | null;
  /** Temporary folder for texts without a file. */
  folder: string | null;
  /** The last queued action: the next one of this environment waits for it. Never rejects. */
  last: Promise<void>;
};

type Inputs = Pick<EnvironmentOptions, 'contexts' | 'names'>;

type ActionOf<T extends TreeAction['type']> = Extract<TreeAction, { readonly type: T }>;

const subcallKey = (cellId: string, ordinal: number): string => `${cellId} ${ordinal}`;

export class Environments {
  readonly #equipment: AskEquipment;
  readonly #settings: AskSettings;
  readonly #post: Post<AskTypes>;
  readonly #entries = new Map<string, RunEnvironment>();
  readonly #ending = new Set<Promise<void>>();

  constructor(equipment: AskEquipment, settings: AskSettings, post: Post<AskTypes>) {
    this.#equipment = equipment;
    this.#settings = settings;
    this.#post = post;
  }

  start({ node, material, past }: ActionOf<'StartEnvironment'>): void {
    this.close(node); // an environment of an earlier start, if there is one
    const entry: RunEnvironment = {
      node,
      closing: new AbortController(),
      waiting: new Map(),
      environment: null,
      folder: null,
      last: Promise.resolve(),
    };
    this.#entries.set(node, entry);
    this.#enqueue(entry, async () => {
      const variables = await this.#begin(entry, material, past);
      this.#postEvent(entry, { type: 'EnvironmentStarted', node, variables });
    });
  }

  run({ node, cellId, code, deadlineMs }: ActionOf<'RunCell'>): void {
    this.#enqueueIn(node, async (entry, environment) => {
      const { signal } = entry.closing;
      const report = await environment.run({ cellId, code, deadlineMs, signal }, (subcall) =>
        this.#ask(entry, cellId, subcall),
      );
      entry.waiting.clear();
      this.#postEvent(entry, { type: 'CellFinished', node, cellId, report });
    });
  }

  /** Answers a sub-call. The answer is dropped if the cell has ended or was answered already. */
  answer({ node, cellId, ordinal, texts }: ActionOf<'AnswerSubcall'>): void {
    this.#entries.get(node)?.waiting.get(subcallKey(cellId, ordinal))?.(texts);
  }

  read({ node, readId, variable }: ActionOf<'ReadVariable'>): void {
    this.#enqueueIn(node, async (entry, environment) => {
      const value = await environment.read(variable);
      this.#postEvent(entry, { type: 'VariableRead', node, readId, value });
    });
  }

  /** Closes the environment of a run. */
  close(node: string): void {
    const entry = this.#entries.get(node);
    if (entry === undefined) return;
    this.#entries.delete(node);
    entry.closing.abort();
    const ended: Promise<void> = this.#end(entry).then(() => void this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  /** Closes all environments; resolves when they have ended. */
  async stopAll(): Promise<void> {
    for (const node of [...this.#entries.keys()]) this.close(node);
    await Promise.all(this.#ending);
  }

  #postEvent(entry: RunEnvironment, event: Parameters<Post<AskTypes>>[0]): void {
    if (!entry.closing.signal.aborted) this.#post(event);
  }

  /** Queues work after earlier actions. A failure of the work fails the environment. */
  #enqueue(entry: RunEnvironment, work: () => Promise<void>): void {
    entry.last = entry.last.then(async () => {
      if (entry.closing.signal.aborted) return;
      const worked = await attempt(work);
      if (worked.kind === 'done') return;
      const { message } = worked.fault;
      this.#postEvent(entry, { type: 'EnvironmentFailed', node: entry.node, message });
    });
  }

  #enqueueIn(
    node: string,
    work: (entry: RunEnvironment, environment: Environment) => Promise<void>,
  ): void {
    const entry = this.#entries.get(node);
    if (entry === undefined) return;
    this.#enqueue(entry, async () => {
      if (entry.environment !== null) await work(entry, entry.environment);
    });
  }

  async #begin(
    entry: RunEnvironment,
    material: Material,
    past: readonly PastCell[],
  ): Promise<Variables> {
    const inputs = await this.#prepareInputs(entry, material);
    const environment = await this.#open(entry, inputs);
    const { signal } = entry.closing;
    const variables = await restoreVariables(environment, past, {
      deadlineMs: this.#settings.cellDeadlineMs,
      signal,
    });
    if (variables !== 'lost' || signal.aborted) return variables;
    await environment.close();
    await this.#open(entry, inputs);
    return variables;
  }

  async #open(entry: RunEnvironment, inputs: Inputs): Promise<Environment> {
    const { outputMax, memoryMax } = this.#settings;
    const environment = await this.#equipment.environment.start({
      ...inputs,
      outputMax,
      memoryMax,
    });
    entry.environment = environment;
    return environment;
  }

  /**
   * Paths of the inputs. A text without a file is written to a temporary one, removed with the
   * environment.
   */
  async #prepareInputs(entry: RunEnvironment, material: Material): Promise<Inputs> {
    if (material.kind === 'text') {
      return { contexts: [await this.#write(entry, 0, material.text)], names: ['prompt'] };
    }
    const { files, inputs } = this.#settings;
    const contexts: string[] = [];
    for (const [index, { path: file, sha256 }] of files.entries()) {
      const text = file === null ? await this.#equipment.blobs.get(sha256) : '';
      if (text === undefined)
        throw new Error(`the text ${sha256} of an input is missing from the journal`);
      contexts.push(file ?? (await this.#write(entry, index, text)));
    }
    return { contexts, names: inputs.map(({ name }) => name) };
  }

  async #write(entry: RunEnvironment, index: number, text: string): Promise<string> {
    entry.folder ??= await mkdtemp(path.join(tmpdir(), 'pawl-ask-'));
    const file = path.join(entry.folder, `${index}.txt`);
    await writeFile(file, text, { mode: 0o600 });
    return file;
  }

  async #ask(entry: RunEnvironment, cellId: string, subcall: Subcall): Promise<readonly string[]> {
    if (entry.closing.signal.aborted) return [];
    const { ordinal } = subcall;
    return new Promise((resolve) => {
      entry.waiting.set(subcallKey(cellId, ordinal), resolve);
      this.#postEvent(entry, { type: 'SubcallAsked', node: entry.node, cellId, ...subcall });
    });
  }

  async #end(entry: RunEnvironment): Promise<void> {
    // a cell that waits for an answer must not hold the end
    for (const take of entry.waiting.values()) take([]);
    await entry.last;
    await entry.environment?.close();
    if (entry.folder === null) return;
    const { folder } = entry;
    // If the removal fails, the system cleans its temporary files up.
    await attempt(() => rm(folder, { recursive: true, force: true }));
  }
}

/** How far a rerun restored the variables of an environment. */
type Variables = 'kept' | 'changed' | 'lost';

type PastLimits = { readonly deadlineMs: number; readonly signal: AbortSignal };

/** Runs a cell again; its sub-calls are answered from the record, without new model calls. */
const runAgain = async (
  environment: Environment,
  { cellId, code, status, printed, subcalls }: PastCell,
  { deadlineMs, signal }: PastLimits,
): Promise<Variables> => {
  const differing = new AbortController();
  const answer: SubcallAnswerer = async (subcall) => {
    const { ordinal, kind, prompts } = subcall;
    const known = subcalls.find((past) => past.ordinal === ordinal);
    if (known?.kind === kind && known.prompts === digestCall(subcall)) return known.texts;
    differing.abort();
    return prompts.map(() => 'Error: this was not asked before');
  };
  const either = AbortSignal.any([signal, differing.signal]);
  const report = await environment.run({ cellId, code, deadlineMs, signal: either }, answer);
  if (differing.signal.aborted || report.status !== status || report.variablesLost === 'yes')
    return 'lost';
  return digestTexts([report.stdout, report.stderr]) === printed ? 'kept' : 'changed';
};

/**
 * Restores a new environment: runs the recorded cells again in order, until one differs from its
 * record.
 *
 * After `lost` the environment is in an undefined state and must be replaced.
 */
export const restoreVariables = async (
  environment: Environment,
  past: readonly PastCell[],
  limits: PastLimits,
): Promise<Variables> => {
  let variables: Variables = 'kept';
  for (const cell of past) {
    const result = await runAgain(environment, cell, limits);
    if (result === 'lost') return 'lost';
    if (result === 'changed') variables = 'changed';
  }
  return variables;
};
