import { initialState } from '../agent/machine.js';
import type { Settings } from '../agent/settings.js';
import type {
  Clock,
  Frozen,
  Header,
  Job,
  Journal,
  JournalStore,
  OpenJournal,
  Runtime,
  StoppingPolicy,
  Tool,
  ToolDeclaration,
  Watcher,
} from '../needs.js';
import type { Equipment, SessionNeeds } from './equipment.js';
import { LiveSession } from './session.js';
import { attempt } from './wall.js';

export type RuntimeNeeds = {
  readonly journals: JournalStore;
  readonly clock: Clock;
  /** Hash of the machine's edges, for the headers of new journals. */
  readonly machine: string;
  /** What a session of these settings works with; called once whenever a session is created or opened. */
  equip(settings: Settings): Promise<SessionNeeds>;
  newSessionId(): string;
  /** A number from 0 to 1. */
  random(): number;
  /** Told of faults that stop nothing: a watcher that threw, a background job that could not be killed. */
  report(fault: Error): void;
};

export type NewSession = {
  readonly settings: Settings;
  readonly instructions: string;
  readonly stoppingPolicy?: StoppingPolicy;
};
export type Opening = {
  readonly stoppingPolicy?: StoppingPolicy;
  readonly watcher?: Watcher;
  /** What is to be set differently from now on, given the settings from before. */
  readonly patch?: (settings: Settings) => Partial<Settings>;
};

/** The runtime inside one process, with the lives of its sessions. */
export type LocalRuntime = Runtime & {
  /** Makes a session and its journal; nothing is in it yet. */
  create(session: NewSession): Promise<string>;
  /** Opens a session again and goes on where it was (2.12); says so if the journal's last line was torn. */
  open(sessionId: string, opening?: Opening): Promise<Pick<OpenJournal, 'tornTail'>>;
  watch(sessionId: string, watcher: Watcher): () => void;
  /** The commands that the session has started in the background, the oldest first. */
  jobs(sessionId: string): readonly Job[];
  /** Shuts the session down; resolves when nothing of it runs any more and its lock is free. */
  close(sessionId: string): Promise<void>;
  /** Resolves when the session was shut down; rejects with what stopped it otherwise. */
  ended(sessionId: string): Promise<void>;
};

const declare = ({ name, description, inputSchema }: Tool): ToolDeclaration => ({
  name,
  description,
  inputSchema,
});

class Sessions implements LocalRuntime {
  readonly #needs: RuntimeNeeds;
  readonly #live = new Map<string, LiveSession>();

  constructor(needs: RuntimeNeeds) {
    this.#needs = needs;
  }

  async create({ settings, instructions, stoppingPolicy }: NewSession): Promise<string> {
    const { journals, clock, machine } = this.#needs;
    const needs = await this.#needs.equip(settings);
    const frozen = { instructions, tools: JSON.stringify(needs.tools.map(declare)) };
    // first, so that no header is ever durable without what it names
    const [instructionsHash, toolsHash] = await Promise.all([
      journals.blobs.put(frozen.instructions),
      journals.blobs.put(frozen.tools),
    ]);
    const sessionId = this.#needs.newSessionId();
    const header: Header = {
      version: 1,
      sessionId,
      createdAt: clock.now(),
      workspace: settings.workspace,
      parent: null,
      machine,
      settings,
      instructions: instructionsHash,
      tools: toolsHash,
      prices: needs.model(settings.model).facts.prices,
    };
    const journal = await journals.create(header);
    this.#start(
      journal,
      new LiveSession(
        journal,
        initialState(settings),
        this.#gather(needs, frozen, stoppingPolicy),
        this.#needs.report,
      ),
    );
    return sessionId;
  }

  async open(
    sessionId: string,
    { watcher, patch, stoppingPolicy }: Opening = {},
  ): Promise<Pick<OpenJournal, 'tornTail'>> {
    const { journal, state, tornTail } = await this.#needs.journals.open(sessionId);
    const prepared = await attempt(async () => {
      const changes = patch?.(state.session.settings) ?? {};
      const needs = await this.#needs.equip({ ...state.session.settings, ...changes });
      return { changes, equipment: this.#gather(needs, await journal.frozen(), stoppingPolicy) };
    });
    if (prepared.kind === 'fault') return this.#giveUp(journal, prepared.fault);
    const { changes, equipment } = prepared.value;
    const session = new LiveSession(journal, state, equipment, this.#needs.report);
    if (watcher !== undefined) session.watch(watcher);
    this.#start(journal, session);
    await session.resume(changes);
    return { tornTail };
  }

  async send(sessionId: string, input: Parameters<Runtime['send']>[1]): ReturnType<Runtime['send']> {
    return this.#find(sessionId).send(input);
  }

  read(sessionId: string, from = 1): ReturnType<Runtime['read']> {
    return this.#live.get(sessionId)?.read(from) ?? this.#needs.journals.read(sessionId, from);
  }

  async state(sessionId: string): ReturnType<Runtime['state']> {
    const live = this.#live.get(sessionId);
    if (live !== undefined) return { seq: live.seq, state: live.state };
    return this.#needs.journals.peek(sessionId);
  }

  async fork(sessionId: string, seq: number): Promise<string> {
    const newSessionId = this.#needs.newSessionId();
    await this.#needs.journals.fork(sessionId, seq, newSessionId, this.#needs.clock.now());
    return newSessionId;
  }

  list(): ReturnType<Runtime['list']> {
    return this.#needs.journals.list();
  }

  watch(sessionId: string, watcher: Watcher): () => void {
    return this.#find(sessionId).watch(watcher);
  }

  jobs(sessionId: string): readonly Job[] {
    return this.#find(sessionId).jobs;
  }

  async close(sessionId: string): Promise<void> {
    await this.#find(sessionId).close();
  }

  ended(sessionId: string): Promise<void> {
    return this.#find(sessionId).ended;
  }

  #start(journal: Journal, session: LiveSession): void {
    const { sessionId } = journal.header;
    this.#live.set(sessionId, session);
    const forget = (): void => void this.#live.delete(sessionId);
    session.ended.then(forget, forget);
  }

  #gather(needs: SessionNeeds, { instructions, tools }: Frozen, stoppingPolicy?: StoppingPolicy): Equipment {
    const { clock, random } = this.#needs;
    return {
      ...needs,
      tools: new Map(needs.tools.map((tool) => [tool.name, tool])),
      instructions,
      declarations: JSON.parse(tools) as readonly ToolDeclaration[], // found by its hash, so it is what `create` wrote
      clock,
      random,
      stoppingPolicy: stoppingPolicy ?? null,
    };
  }

  /** The first failure is the one to report; the journal is let go of as well as it can be. */
  async #giveUp(journal: Journal, fault: Error): Promise<never> {
    await attempt(() => journal.close());
    throw fault;
  }

  #find(sessionId: string): LiveSession {
    const live = this.#live.get(sessionId);
    if (live === undefined) throw new Error(`session ${sessionId} is not open here: open it first`);
    return live;
  }
}

/** A runtime that drives any number of sessions in this process. */
export const createRuntime = (needs: RuntimeNeeds): LocalRuntime => new Sessions(needs);
