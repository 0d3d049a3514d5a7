/**
 * One session of the agent that is open in this process.
 *
 * How it ends: the last `close`, or `shutDown`, sends ShutdownRequested (`#submitShutdown` stops
 * the calls first); the machine goes to ShuttingDown, whose action calls `end`; the loop then calls
 * `stopAll`. On a full disk the loop begins with `shutdownEvent`.
 *
 * From top to bottom: `Session`, the face for users of the library; `agentAdapter`, which describes
 * the agent's events to the loop; and `AgentSession`. turn.ts has the result of a prompt.
 */

import type { Action } from '../machine/action.js';
import type { CallStatus } from '../machine/call.js';
import type { Event, InputMode, MachineUpgrade, On } from '../machine/event.js';
import { agent } from '../machine/machine.js';
import type { Image } from '../machine/message.js';
import { whyNotNow } from '../machine/moves/rewind.js';
import type { PastFiles } from '../machine/seen-files.js';
import type { Settings, UsageTotals } from '../machine/settings.js';
import type { State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import { waitAtMost } from '../platform/clock.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Grant } from '../policy/rules.js';
import type { FileVersion } from '../ports/checkpoints.js';
import type { AgentTypes, Entry, Journal, OpenJournal } from '../ports/journal.js';
import type { Model } from '../ports/model.js';
import type { Input, Stepped, StoppingPolicy, Watcher } from '../ports/session.js';
import type { Job } from '../ports/tool.js';
import type { UnapprovedCall } from './approvals.js';
import type { Equipment } from './equipment.js';
import { judgeCall } from './judge-call.js';
import { JournaledSession, type MachineAdapter, notOpen, type Posted, type Sent } from './loop.js';
import { checkInput } from './outside-values.js';
import {
  createPerformers,
  type Performers,
  perform as performAction,
  prepare as prepareAction,
} from './perform.js';
import { recoverCalls, runningCalls } from './recover-calls.js';
import type {
  PlannedRewind,
  ReadJournal,
  RewindPoint,
  RewindReport,
  RewindRequest,
} from './rewind.js';
import { modelSettings, refuseUnpriced, type Unpriced } from './session-settings.js';
import { callKey, isUnattended, type StoppedCalls } from './tool-run.js';
import { type Turn, toTurn } from './turn.js';
import type { SessionBegin } from './user-hooks.js';

export type PromptOptions = {
  /** Cancels the turn on abort; the turn's reason is then `cancelled`. */
  readonly signal?: AbortSignal;
  /**
   * If a turn is running: send the text with its next tool results (`steer`, the default), or after
   * the turn.
   */
  readonly mode?: InputMode;
  /**
   * The prompt runs once in the session, however often it is sent with this id, also after a crash
   * or in another process: later calls wait for the same turn, or read it from the journal. Rejects
   * with a TypeError if an earlier prompt with this id has another text.
   */
  readonly requestId?: string;
};

/** A session that is open in this process. */
export type Session = {
  readonly id: string;
  /**
   * The incomplete last line that was cut off the journal of a resumed session; null if there was
   * none.
   */
  readonly tornTail: OpenJournal['tornTail'];
  /**
   * Sends a user event. When it resolves, the event is durable and applied; `seq` is its number in
   * the journal.
   */
  send(input: Input): Promise<{ readonly seq: number }>;
  state(): Promise<State>;
  /**
   * Sends a prompt, waits until the session is idle and returns the turn. A failed model call is a
   * result, not an exception. Rejects with the error that stopped the session. If the signal is
   * already aborted, rejects with its reason and sends nothing.
   */
  prompt(text: string, options?: PromptOptions): Promise<Turn>;
  /**
   * The journal's entries from `from` on (default: the first), then new ones as they come; ends
   * with the session.
   */
  events(from?: number): AsyncIterable<Entry>;
  /** Calls `watcher` with every step from now on; the returned function removes it. */
  watch(watcher: Watcher): () => void;
  /** Cancels the running turn. */
  cancel(): Promise<void>;
  /**
   * Switches to another model from the next call on, with its window and prices; a reply that is
   * streaming comes from the old one. When it resolves, the change is durable. Rejects, and changes
   * nothing, if the model can't be connected, or if its price is unknown and there is a limit in
   * dollars.
   */
  useModel(modelOrId: string | Model): Promise<Model>;
  /** The model that answers the next call. */
  model(): Promise<Model>;
  /** Background commands of the session, oldest first: their output and status, and `kill`. */
  jobs(): readonly Job[];
  /**
   * Stores a picture so that an input can include it (`UserInput.images`). Rejects if the format is
   * not supported or the picture is too large.
   */
  keepPicture(bytes: Uint8Array): Promise<Image>;
  /** Replaces secrets in a text, as is done with tool output. */
  redact(text: string): string;
  /** Where the session can go back to, the oldest first: turns, and calls that changed files. */
  timeline(): Promise<readonly RewindPoint[]>;
  /** What `rewind` would do. Changes nothing. */
  planRewind(request: RewindRequest): Promise<RewindReport>;
  /**
   * Goes back to an entry of the journal: the conversation, and the files that the session's calls
   * have changed. A file with a later change of another program or user stays, and is listed.
   * Nothing is erased: `redo` goes forward again. Rejects while a turn runs, and if there is no
   * such entry.
   */
  rewind(request: RewindRequest): Promise<RewindReport>;
  /**
   * Brings back a version of a file that a checkpoint holds, at any later time. The present content
   * is stored first, and `redo` brings it back.
   */
  restoreFile(version: FileVersion): Promise<RewindReport>;
  /** Goes forward again from the last rewind, any number of times; rejects if there is none. */
  redo(): Promise<RewindReport>;
  /**
   * Takes back the last summary of the conversation, requested or automatic; `redo` restores it.
   * Rejects if there is none, or if the messages no longer fit the window of the model.
   */
  undoCompaction(): Promise<RewindReport>;
  /** Runs a command of the user in the workspace. Its changes count as the user's. */
  whileUserRuns<T>(command: () => Promise<T>): Promise<T>;
  /**
   * Resolves when the session waits for the user, or is shut down, and its last checkpoint is in
   * the journal. Rejects with the error that stopped it, for example a full disk.
   */
  idle(): Promise<State>;
  /** Resolves when the session is shut down; rejects if an error stopped it. */
  readonly ended: Promise<void>;
  /**
   * Stops all running work and shuts the session down. When it resolves, the journal's lock is
   * released. If it was opened more than once, the last `close` does so.
   */
  close(): Promise<void>;
};

/**
 * Whether it is a piece of a streamed reply or of a tool's output. Such pieces need not reach the
 * disk one by one, since the whole reply or result follows.
 */
const isVolatile = (event: Event): boolean =>
  event.type === 'TextDelta' ||
  event.type === 'ReasoningDelta' ||
  event.type === 'ToolCallDelta' ||
  event.type === 'ToolProgress';

/**
 * Merges the text of one reply at a time; other volatile events are not journaled. Between two
 * requests there is always another event (rules.md#merged-text).
 */
const mergeText = (pending: Event | null, event: Event): Event | null => {
  if (event.type !== 'TextDelta') return pending;
  return { ...event, text: (pending?.type === 'TextDelta' ? pending.text : '') + event.text };
};

/**
 * The agent's events, for the loop. The loop keeps a group (events that are journaled together,
 * see AgentSession) open until the ToolStarted events of the calls that it starts. Events are not
 * checked again: `send` checks those of a user, performers check values from models, tools and
 * hooks.
 */
export const agentAdapter: MachineAdapter<AgentTypes> = {
  step: agent.stepUnchecked,
  isVolatile,
  merge: mergeText,
  // a whole reply makes its streamed text superfluous
  contains: (next, pending) =>
    next.type === 'LlmCompleted' &&
    pending.type === 'TextDelta' &&
    next.requestId === pending.requestId,
  startedId: (event) => (event.type === 'ToolStarted' ? event.callId : null),
};

/** Facts about the end of the earlier process. */
type Interruption = {
  /** The files that calls have read and written; undefined: the journal is read for them later. */
  readonly past: PastFiles | undefined;
  /**
   * The time of the last event, if a turn was running; null if none was. The time since then does
   * not count for the turn.
   */
  readonly stoppedAt: number | null;
  /**
   * Set if an earlier version of the machine wrote the last entries: the conversation and work that
   * this version continues.
   */
  readonly upgrade: MachineUpgrade | undefined;
  /**
   * Whether the runtime has just ended the interrupted turn, instead of continuing it (`endsTurn`).
   * Commands of the turn may still run.
   */
  readonly hasEndedTurn: boolean;
};

/**
 * An input that came with an id. The same input has the same type and text; pictures and mode are
 * not compared.
 */
type ClientInput = {
  readonly type: Event['type'];
  /** Empty for events that have none. */
  readonly text: string;
  readonly sent: Promise<Sent>;
};

type SettingsChange = Extract<Input, { readonly type: 'SettingsChanged' }>;

/** Parts of a session that come from the process that opens it, and are not stored. */
export type LocalOptions = {
  /** Asked before every model call. */
  readonly stoppingPolicy?: StoppingPolicy;
  /** Whether `useModel` takes a model without a price where there is a limit in dollars. */
  readonly unpriced?: Unpriced;
  /**
   * The calls of the last turn that needed an approval, without a user to ask. The list is shared:
   * `endUnapproved` (approvals.ts) adds to it, `prompt` empties it.
   */
  readonly unapproved?: UnapprovedCall[];
};

/**
 * A session of the agent that is open in this process. It ends after the machine's Shutdown, or
 * with an error. Each member of `Session` is a field, and bound: users hand on
 * `session.close`, and copy a session with another `send`.
 *
 * `post` and `submit` queue an event for the loop (loop.ts); `submit` resolves when it is durable
 * and applied. The loop then works in three steps:
 *
 * 1. The machine steps the queued events: they form a group. `prepare` is called with each action,
 *    and may post ToolStarted events. It returns the ids of calls whose ToolStarted comes later.
 * 2. The group waits for those, until any other event comes. Then it is journaled.
 * 3. `perform` is called with each action.
 */
export class AgentSession extends JournaledSession<AgentTypes> implements Session {
  readonly #journal: Journal;
  /** The state with which the session was opened. */
  readonly #opened: State;
  readonly #equipment: Equipment;
  readonly #local: LocalOptions;
  readonly #report: (fault: Error) => void;
  readonly #performers: Performers;
  readonly id: string;
  readonly tornTail: Session['tornTail'];
  /**
   * The last foreign entry; 0: none. Foreign entries were written in another state folder, for
   * example before an import. Infinity: all are foreign. Then the runtime has ended pending work,
   * and the next prompt adopts the session: entries up to that prompt stay foreign.
   */
  #foreignUntil: number;
  /** The openings of this session that are not closed; the first is the session itself. */
  readonly #openings = new Set<Session>([this]);
  /** Inputs by the ids of their senders; null until the first that has one. */
  #clientInputs: Promise<Map<string, ClientInput>> | null = null;
  /** Rewinds so far, for their ids. */
  #rewinds = 0;

  constructor(
    { journal, state: opened, tornTail }: Pick<OpenJournal, 'journal' | 'state' | 'tornTail'>,
    equipment: Equipment,
    local: LocalOptions,
    report: (fault: Error) => void,
  ) {
    super({ adapter: agentAdapter, journal, state: opened, clock: equipment.clock, report });
    this.#journal = journal;
    this.#foreignUntil = journal.foreignUntil ?? 0;
    this.#opened = opened;
    this.#equipment = equipment;
    this.#local = local;
    this.id = journal.header.sessionId;
    this.tornTail = tornTail;
    this.#report = report;
    this.#performers = createPerformers(equipment, {
      journal,
      opened,
      state: () => this.current,
      post: (event, onApplied) => this.post(event, onApplied),
      shutDown: () => void this.end(null),
    });
  }

  /** Starts the hooks about the session's start. */
  begin(source: SessionBegin): void {
    void this.#performers.userHooks?.begin(source, this.current.session.settings.model);
  }

  /** Called before the event of the action is durable (step 1). */
  protected prepare(action: Action, state: State): readonly string[] {
    return prepareAction(action, state, this.#performers);
  }

  /** Called once the event of the action is durable (step 3). */
  protected perform(action: Action, state: State): void {
    performAction(action, state, this.#performers);
  }

  readonly state = async (): Promise<State> => {
    return this.current;
  };

  readonly prompt = async (
    text: string,
    { signal, mode = 'steer', requestId }: PromptOptions = {},
  ): Promise<Turn> => {
    signal?.throwIfAborted();
    const before = this.current.session.usage;
    const lastSeq = this.seq;
    const { unapproved = [] } = this.#local;
    // those of a running turn are still to be reported
    if (isIdle(this.current)) unapproved.length = 0;
    const client = requestId === undefined ? {} : { clientRequestId: requestId };
    const { seq } = await this.send({ type: 'UserInput', text, mode, ...client });
    // an earlier input had this id
    if (seq <= lastSeq) return this.#repeatedTurn(seq, signal);
    return toTurn(before, await this.#idleAfter(signal), unapproved);
  };

  /** The state after the turn that runs; an abort cancels the turn. */
  async #idleAfter(signal: AbortSignal | undefined): Promise<State> {
    // it rejects if the session has ended; then there is nothing to cancel
    const cancel = (): void => void attempt(() => this.cancel());
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      return await this.idle();
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** The turn of an input that was sent before. */
  async #repeatedTurn(seq: number, signal: AbortSignal | undefined): Promise<Turn> {
    const ended = await this.#endedTurn(seq);
    if (ended !== null) return ended;
    const state = await this.#idleAfter(signal);
    // read again, for its usage: an idle session has ended it
    return (await this.#endedTurn(seq)) ?? toTurn(state.session.usage, state, []);
  }

  /** The turn of an input, from the journal; null while it runs. */
  async #endedTurn(seq: number): Promise<Turn | null> {
    const { steps } = await import('../journal/steps.js');
    let before: UsageTotals | null = null;
    for await (const step of steps(this.header, this.#journal.read(1))) {
      if (step.seq === seq) before = step.before.session.usage;
      if (before !== null && isIdle(step.state)) return toTurn(before, step.state, []);
    }
    return null;
  }

  readonly cancel = async (): Promise<void> => {
    await this.send({ type: 'CancelTurn' });
  };

  readonly model = async (): Promise<Model> => {
    return this.#equipment.model(this.current.session.settings.model);
  };

  readonly useModel = async (modelOrId: string | Model): Promise<Model> => {
    const { connect } = this.#equipment;
    if (connect === undefined) throw new Error('this session was opened with one model alone');
    const model = await connect(modelOrId);
    refuseUnpriced(model, this.current.session.settings.limits, this.#local.unpriced);
    await this.send({ type: 'SettingsChanged', patch: modelSettings(model) });
    return model;
  };

  readonly jobs = (): readonly Job[] => {
    return this.isOver ? [] : this.#equipment.jobs.list();
  };

  readonly keepPicture = async (bytes: Uint8Array): Promise<Image> => {
    const { keepPicture } = await import('../tools/picture.js');
    const stored = await keepPicture(Buffer.from(bytes), this.#journal.blobs);
    if (stored.kind === 'stored') return stored.image;
    const why = stored.kind === 'none' ? 'it is no PNG, JPEG, GIF or WebP' : stored.why;
    throw new Error(`the picture can't be shown to a model: ${why}`);
  };

  readonly redact = (text: string): string => {
    return this.#equipment.redactor.clean(text);
  };

  readonly send = async (value: Input): Promise<{ readonly seq: number }> => {
    const input = checkInput(value);
    if (input.type === 'ShutdownRequested') return this.#submitShutdown();
    const event = input.type === 'SettingsChanged' ? this.#userChange(input) : input;
    const { clientRequestId: id } = input;
    const sent = await (id === undefined ? this.submit(event) : this.#sendOnce(id, event));
    if (!Number.isFinite(this.#foreignUntil) && input.type === 'UserInput') await this.#adopt();
    return sent;
  };

  /** Sends an input, unless it was sent with this id before. */
  async #sendOnce(id: string, input: Posted): Promise<Sent> {
    const { type } = input;
    const text = 'text' in input ? input.text : '';
    this.#clientInputs ??= this.#readClientInputs().catch((error: unknown) => {
      this.#clientInputs = null; // the next input reads the journal again
      throw error;
    });
    const inputs = await this.#clientInputs;
    const earlier = inputs.get(id);
    if (earlier === undefined) {
      const sent = this.submit(input);
      inputs.set(id, { type, text, sent });
      sent.catch(() => inputs.delete(id)); // it has not run, so it may come again
      return sent;
    }
    if (earlier.type !== type || earlier.text !== text)
      throw new TypeError(
        `the input is refused, and nothing has changed: request id ${id} came with another one before`,
      );
    return earlier.sent;
  }

  /** A user's change, with prices, and without the fields that only the runtime may set. */
  #userChange(input: SettingsChange): Posted {
    const { stoppedAt: _stoppedAt, prices: _prices, ...change } = input;
    const { tools: _tools, fallback: _fallback, primary: _primary, ...patch } = input.patch;
    return { ...change, ...this.#settingsChange(patch) };
  }

  /** Reads the inputs from the journal, without those of the session that it was forked from. */
  async #readClientInputs(): Promise<Map<string, ClientInput>> {
    const inputs = new Map<string, ClientInput>();
    for await (const { seq, event } of this.#journal.read((this.header.parent?.seq ?? 0) + 1))
      if ('clientRequestId' in event && event.clientRequestId !== undefined)
        inputs.set(event.clientRequestId, {
          type: event.type,
          text: 'text' in event ? event.text : '',
          sent: Promise.resolve({ seq }),
        });
    return inputs;
  }

  /** Makes a foreign session one of this state folder. */
  async #adopt(): Promise<void> {
    this.#foreignUntil = this.#journal.seq;
    const adopted = await attempt(() => this.#journal.adopt?.());
    // The next opening finds it foreign, and ends pending work instead of continuing it.
    if (adopted.kind === 'fault') this.#report(adopted.fault);
  }

  /** Submits ShutdownRequested, after the calls were stopped: the model learns their outcomes. */
  async #submitShutdown(): Promise<{ readonly seq: number }> {
    const { tools, checkpoints } = this.#performers;
    const stoppedCalls = tools.isIdle ? null : await tools.stopForEnd();
    // A session with nothing to wait for ends at once, so the event of the last checkpoint must
    // come before.
    if (!checkpoints.isSettled) await checkpoints.settle();
    // A rewind is changing files: it ends first.
    if (this.current.name === 'Rewinding') await this.idle();
    const submitted = this.submit({ type: 'ShutdownRequested', ...stoppedOutcomes(stoppedCalls) });
    stoppedCalls?.reportUsage();
    return submitted;
  }

  /** The event with which the loop ends a session that the disk has no room for. */
  protected override async shutdownEvent(): Promise<Posted> {
    return {
      type: 'ShutdownRequested',
      ...stoppedOutcomes(await this.#performers.tools.stopForEnd()),
    };
  }

  readonly idle = async (): Promise<State> => {
    if (this.fault !== null) await this.ended; // rejects with the fault
    const state = isIdle(this.current)
      ? this.current
      : await this.#awaitStep((stepped) => (isIdle(stepped.state) ? stepped.state : null));
    // Changes of files after the last checkpoint are not the session's.
    const { checkpoints } = this.#performers;
    // an ended session takes no event of a checkpoint
    if (!checkpoints.isSettled) await Promise.race([checkpoints.settle(), this.ended]);
    return state;
  };

  /**
   * Waits for the first step for which `find` returns something. Rejects if the session ends
   * before, or with the error of `sent`.
   */
  async #awaitStep<T>(find: (step: Stepped) => T | null, sent?: Promise<Sent>): Promise<T> {
    let unwatch = (): void => undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        unwatch = this.watch((step) => {
          const result = find(step);
          if (result !== null) resolve(result);
        });
        sent?.catch(reject);
        this.ended.then(() => reject(notOpen(this.id)), reject);
      });
    } finally {
      unwatch();
    }
  }

  readonly timeline = async (): Promise<readonly RewindPoint[]> => {
    const { readTimeline } = await import('./rewind.js');
    const { journal, checkpoints } = await this.#rewindSources();
    return (await readTimeline(journal, checkpoints)).points;
  };

  readonly planRewind = async (request: RewindRequest): Promise<RewindReport> => {
    const { planRewind } = await import('./rewind.js');
    const { journal, checkpoints } = await this.#rewindSources();
    return (await planRewind(journal, this.current, checkpoints, request)).report;
  };

  readonly rewind = async (request: RewindRequest): Promise<RewindReport> => {
    const { planRewind } = await import('./rewind.js');
    const { journal, checkpoints } = await this.#rewindSources();
    return this.#carryOut(await planRewind(journal, this.current, checkpoints, request));
  };

  readonly restoreFile = async (version: FileVersion): Promise<RewindReport> => {
    const { planFile } = await import('./rewind.js');
    const { journal, checkpoints } = await this.#rewindSources();
    return this.#carryOut(await planFile(journal, checkpoints, version));
  };

  readonly redo = async (): Promise<RewindReport> => {
    const { planRedo } = await import('./rewind.js');
    const { journal, checkpoints } = await this.#rewindSources();
    return this.#carryOut(await planRedo(journal, this.current, checkpoints));
  };

  readonly undoCompaction = async (): Promise<RewindReport> => {
    const { planUndoCompaction } = await import('./rewind.js');
    const { journal } = await this.#rewindSources();
    return this.#carryOut(await planUndoCompaction(journal, this.current));
  };

  readonly whileUserRuns = async <T>(command: () => Promise<T>): Promise<T> => {
    const { checkpoints } = this.#performers;
    await checkpoints.before(null, null); // no batch and no call: a command of the user
    try {
      return await command();
    } finally {
      await checkpoints.settle();
    }
  };

  /**
   * The journal and checkpoints for planning a rewind, once the last checkpoint is in the journal.
   * Rejects unless the session rests.
   */
  async #rewindSources() {
    if (this.current.name !== 'WaitingForUserInput' && this.current.name !== 'Ready') {
      const { CannotRewind } = await import('./rewind.js');
      throw new CannotRewind(`Nothing was taken back: ${whyNotNow(this.current)}.`);
    }
    const { checkpoints } = this.#performers;
    await checkpoints.settle();
    const { header, seq } = this;
    const entries = () => this.#journal.read(1);
    const journal: ReadJournal = { header, seq, foreignUntil: this.#foreignUntil, entries };
    return { journal, checkpoints: checkpoints.checkpoints };
  }

  /** Carries out a planned rewind. Rejects if it is refused, or if the session ends meanwhile. */
  async #carryOut(planned: PlannedRewind): Promise<RewindReport> {
    const { to, direction, conversation, plan, refusal, note = null, report } = planned;
    const { CannotRewind, reportRewound } = await import('./rewind.js');
    if (refusal !== null) throw new CannotRewind(refusal);
    if (plan === null && conversation === null) return report;
    this.#rewinds += 1; // two rewinds may follow the same entry
    const rewindId = `rewind-${this.seq + 1}-${this.#rewinds}`;
    const sent = this.submit({
      type: 'RewindRequested',
      rewindId,
      to,
      direction,
      ...(conversation === null ? {} : { conversation }),
      ...(plan === null ? {} : { files: { plan } }),
      ...(note === null ? {} : { note }),
    });
    const { event, refused } = await this.#awaitStep(({ event, diagnostics: [refused] }) => {
      if (!('rewindId' in event) || event.rewindId !== rewindId) return null;
      const isRestoring = event.type === 'RewindRequested' && plan !== null;
      // If files are being restored, Rewound follows.
      return isRestoring && refused === undefined ? null : { event, refused };
    }, sent);
    if (refused !== undefined) throw new CannotRewind(`Nothing was taken back: ${refused.why}.`);
    return event.type === 'Rewound' ? reportRewound(planned, event) : report;
  }

  readonly close = async (): Promise<void> => {
    this.#openings.delete(this);
    if (this.#openings.size === 0) await this.shutDown();
  };

  /** A further opening of the session. The last `close` ends the session. */
  join(watcher: Watcher | undefined): Session {
    const unwatch = watcher === undefined ? null : this.watch(watcher);
    const opening: Session = {
      ...this,
      close: async () => {
        unwatch?.();
        this.#openings.delete(opening);
        if (this.#openings.size === 0) await this.shutDown();
      },
    };
    this.#openings.add(opening);
    return opening;
  }

  /** Whether the session can't be joined any more: all its openings are closed, or it is over. */
  get isClosing(): boolean {
    return this.isOver || this.#openings.size === 0;
  }

  /** Ends the session for all its openings. */
  async shutDown(): Promise<void> {
    this.#openings.clear();
    if (!this.isOver) await this.send({ type: 'ShutdownRequested' });
    await this.ended;
  }

  /**
   * Continues a session that was opened again:
   *
   * 1. The tools judge anew the calls that have not run.
   * 2. New settings are applied, so that nothing starts under the old ones. In ShuttingDown, the
   *    state after a clean end, they are refused until step 3, which then starts nothing.
   * 3. Resumed is sent: the machine continues its work, and what the earlier process has left is
   *    settled (`#recover`).
   * 4. If the interrupted turn was ended, no call waits for its commands, so this waits for their
   *    end.
   */
  async resume(
    { changes, grants }: { readonly changes: Partial<Settings>; readonly grants: readonly Grant[] },
    { past, stoppedAt, upgrade, hasEndedTurn }: Interruption,
  ): Promise<void> {
    const { epoch: before, grants: recorded, settings, counters } = this.#opened.session;
    const wasClosed = this.#opened.name === 'ShuttingDown';
    const ranUntil = stoppedAt === null ? {} : { stoppedAt };
    const hasSameGrants = JSON.stringify(recorded) === JSON.stringify(grants);
    const change = (): void => {
      if (Object.keys(changes).length === 0 && hasSameGrants) return;
      this.post({
        ...this.#settingsChange(changes),
        ...(hasSameGrants ? {} : { grants }),
        ...ranUntil,
      });
    };
    const judged = await this.#judgePending({ ...settings, ...changes });
    if (!wasClosed) change();
    const event: Posted = {
      type: 'Resumed',
      epoch: before + 1,
      ...ranUntil,
      ...(upgrade === undefined ? {} : { upgrade }),
      ...judged,
    };
    // The process may have been killed before the checkpoint of its last batch.
    if ((!wasClosed || hasEndedTurn) && counters.batch > 0)
      this.#performers.checkpoints.noteKilled(`batch-${counters.batch}`);
    let takingOver: Promise<void> | null = null; // set when `resumed` resolves
    const resumed = this.submit(event, (accepted, state) => {
      if (accepted) takingOver = this.#recover(state, past);
    });
    if (wasClosed) change();
    await resumed;
    if (hasEndedTurn) await takingOver;
  }

  /**
   * Lets the tools judge the calls that have not run again, from their inputs. The judgements in
   * the journal are not trusted.
   */
  async #judgePending({ workspace, sandbox }: Settings): Promise<Pick<On<'Resumed'>, 'judged'>> {
    if (this.#opened.name !== 'ExecutingTools') return {};
    const { calls } = this.#opened;
    const { tools, redactor, userPlaces } = this.#equipment;
    const rejudged: JudgedCall[] = [];
    for (const { judged: call, status } of calls) {
      if (!isPending(status)) continue;
      const { callId, tool, rawInput = JSON.stringify(call.input) } = call;
      const again = await judgeCall(
        { type: 'call', callId, tool, rawInput },
        tools,
        workspace,
        redactor,
        userPlaces,
        sandbox,
      );
      // Hooks only tighten, and do not run twice for a call.
      rejudged.push(call.hooks === undefined ? again : { ...again, hooks: call.hooks });
    }
    return rejudged.length === 0 ? {} : { judged: rejudged };
  }

  /** The event of a change, with the prices of a new model. Throws if that is not connected. */
  #settingsChange(patch: Partial<Settings>): SettingsChange {
    if (patch.model === undefined) return { type: 'SettingsChanged', patch };
    return {
      type: 'SettingsChanged',
      patch,
      prices: this.#equipment.model(patch.model).facts.prices,
    };
  }

  /**
   * Settles what an earlier process of the session has left. Its calls without an outcome are
   * recovered: such a call is waited for if it still runs, and its outcome is posted later. Its
   * other commands are taken over: jobs go on, the rest is ended, and then this resolves.
   */
  #recover(resumed: State, past: PastFiles | undefined): Promise<void> {
    const running = runningCalls(this.#opened, resumed);
    const waited = running.map(({ batchId, call }) => callKey(batchId, call.callId));
    const unattended = isUnattended(resumed.session.settings);
    const takeOver = () => this.#equipment.takeOver?.(waited, unattended);
    const takingOver = attempt(takeOver).then((taken) => {
      if (taken.kind === 'fault') this.#report(taken.fault);
    });
    recoverCalls(running, this.#journal, this.#performers.tools, { past, takingOver });
    return takingOver;
  }

  /**
   * Waits at most a grace period: for tools that were ended by force, and for aborted replies,
   * whose usage must still be journaled.
   */
  protected async stopAll(): Promise<void> {
    const { models, compactions, timers, tools, previews, hooks, userHooks } = this.#performers;
    timers.cancelAll();
    const { clock, jobs } = this.#equipment;
    const stopping = Promise.all([
      models.stopAll(),
      compactions?.stopAll(),
      tools.stopAll(),
      previews.stopAll(),
      hooks.stopAll(),
      userHooks?.stopAll(),
    ]);
    await waitAtMost(clock, this.current.session.settings.graceMs, stopping);
    for (const job of jobs.list()) {
      const killed = await attempt(() => job.kill());
      if (killed.kind === 'fault') this.#report(killed.fault);
    }
    await userHooks?.end();
    await this.#performers.checkpoints.close();
    const closed = await attempt(() => this.#equipment.close?.(this.fault !== null));
    if (closed.kind === 'fault') this.#report(closed.fault);
  }
}

const stoppedOutcomes = (
  stoppedCalls: StoppedCalls | null,
): Pick<On<'ShutdownRequested'>, 'outcomes'> => {
  const outcomes = stoppedCalls?.outcomes() ?? [];
  return outcomes.length === 0 ? {} : { outcomes };
};

/** Whether a call has not run and is to be decided again when the session is resumed. */
const isPending = (status: CallStatus): boolean =>
  status === 'queued' ||
  status === 'previewing' ||
  status === 'awaitingApproval' ||
  status === 'starting';

/** Whether the session does nothing until the user acts. */
export const isIdle = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';
