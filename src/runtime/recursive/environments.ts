import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AskSettings, AskTypes, Environment, Subcall } from '../../needs-recursive.js';
import type { Material, TreeAction } from '../../recursive/action.js';
import type { PastCell } from '../../recursive/cell.js';
import type { Post } from '../posted.js';
import { attempt } from '../wall.js';
import type { AskEquipment } from './equipment.js';
import { runPast, type Variables } from './past.js';

/**
 * The environments of a tree, one a run: performs StartEnvironment, RunCell, AnswerSubcall, ReadVariable and
 * CloseEnvironment.
 *
 * 1. What is asked of one environment is done one after the other, after it has started.
 * 2. After CloseEnvironment nothing more is posted of it, and no process, thread or file of it is left.
 */

type Held = {
  readonly node: string;
  /** Aborted when it is to end. */
  readonly closing: AbortController;
  /** Takes the texts of a sub-call that a cell waits for, by cell and ordinal. */
  readonly waiting: Map<string, (texts: readonly string[]) => void>;
  environment: Environment | null;
  /** The folder of a context that is a text. */
  folder: string | null;
  /** Rule 1. Never rejects. */
  last: Promise<void>;
};

type ActionOf<T extends TreeAction['type']> = Extract<TreeAction, { readonly type: T }>;

const keyOf = (cellId: string, ordinal: number): string => `${cellId} ${ordinal}`;

export class Environments {
  readonly #equipment: AskEquipment;
  readonly #settings: AskSettings;
  readonly #post: Post<AskTypes>;
  readonly #held = new Map<string, Held>();
  readonly #ending = new Set<Promise<void>>();

  constructor(equipment: AskEquipment, settings: AskSettings, post: Post<AskTypes>) {
    this.#equipment = equipment;
    this.#settings = settings;
    this.#post = post;
  }

  start({ node, material, past }: ActionOf<'StartEnvironment'>): void {
    this.close(node);
    const held: Held = {
      node,
      closing: new AbortController(),
      waiting: new Map(),
      environment: null,
      folder: null,
      last: Promise.resolve(),
    };
    this.#held.set(node, held);
    this.#next(held, async () => {
      const variables = await this.#begin(held, material, past);
      this.#tell(held, { type: 'EnvironmentStarted', node, variables });
    });
  }

  run({ node, cellId, code, deadlineMs }: ActionOf<'RunCell'>): void {
    this.#with(node, async (held, environment) => {
      const { signal } = held.closing;
      const report = await environment.run({ cellId, code, deadlineMs, signal }, (subcall) =>
        this.#ask(held, cellId, subcall),
      );
      held.waiting.clear();
      this.#tell(held, { type: 'CellFinished', node, cellId, report });
    });
  }

  /** An answer that no cell waits for (it has ended, or was told already) is dropped. */
  answer({ node, cellId, ordinal, texts }: ActionOf<'AnswerSubcall'>): void {
    this.#held.get(node)?.waiting.get(keyOf(cellId, ordinal))?.(texts);
  }

  read({ node, readId, variable }: ActionOf<'ReadVariable'>): void {
    this.#with(node, async (held, environment) => {
      const value = await environment.read(variable);
      this.#tell(held, { type: 'VariableRead', node, readId, value });
    });
  }

  /** Rule 2. */
  close(node: string): void {
    const held = this.#held.get(node);
    if (held === undefined) return;
    this.#held.delete(node);
    held.closing.abort();
    const ended: Promise<void> = this.#end(held).then(() => void this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  /** Closes all; resolves when nothing of them is left. */
  async stopAll(): Promise<void> {
    for (const node of [...this.#held.keys()]) this.close(node);
    await Promise.all(this.#ending);
  }

  #tell(held: Held, event: Parameters<Post<AskTypes>>[0]): void {
    if (!held.closing.signal.aborted) this.#post(event);
  }

  /** Does work after what was asked for before; what fails, fails the environment. */
  #next(held: Held, work: () => Promise<void>): void {
    held.last = held.last.then(async () => {
      if (held.closing.signal.aborted) return;
      const worked = await attempt(work);
      if (worked.kind === 'done') return;
      const { message } = worked.fault;
      this.#tell(held, { type: 'EnvironmentFailed', node: held.node, message });
    });
  }

  #with(node: string, work: (held: Held, environment: Environment) => Promise<void>): void {
    const held = this.#held.get(node);
    if (held === undefined) return;
    this.#next(held, async () => {
      if (held.environment !== null) await work(held, held.environment);
    });
  }

  async #begin(held: Held, material: Material, past: readonly PastCell[]): Promise<Variables> {
    const contexts = await this.#contextsOf(held, material);
    const environment = await this.#open(held, contexts);
    const { signal } = held.closing;
    const variables = await runPast(environment, past, { deadlineMs: this.#settings.cellDeadlineMs, signal });
    if (variables !== 'lost' || signal.aborted) return variables;
    await environment.close();
    await this.#open(held, contexts);
    return variables;
  }

  async #open(held: Held, contexts: readonly string[]): Promise<Environment> {
    const { outputMax, memoryMax } = this.#settings;
    const environment = await this.#equipment.environment.start({ contexts, outputMax, memoryMax });
    held.environment = environment;
    return environment;
  }

  /** The inputs where they lie; a prompt as a file that lives as long as the environment. */
  async #contextsOf(held: Held, material: Material): Promise<readonly string[]> {
    if (material.kind === 'inputs') return this.#settings.files.map((file) => file.path);
    held.folder = await mkdtemp(path.join(tmpdir(), 'pawl-ask-'));
    const file = path.join(held.folder, 'context.txt');
    await writeFile(file, material.text, { mode: 0o600 });
    return [file];
  }

  async #ask(held: Held, cellId: string, { kind, ordinal, prompts }: Subcall): Promise<readonly string[]> {
    if (held.closing.signal.aborted) return [];
    return new Promise((resolve) => {
      held.waiting.set(keyOf(cellId, ordinal), resolve);
      this.#tell(held, { type: 'SubcallAsked', node: held.node, cellId, ordinal, kind, prompts });
    });
  }

  async #end(held: Held): Promise<void> {
    for (const take of held.waiting.values()) take([]);
    await held.last;
    await held.environment?.close();
    if (held.folder === null) return;
    const { folder } = held;
    // a folder of temporary files that stays is the system's to remove
    await attempt(() => rm(folder, { recursive: true, force: true }));
  }
}
