/**
 * A session that is open for an editor: how it is opened, its turns and how they end, and the
 * settings that the editor can change.
 *
 * From top to bottom: the session; the settings that the editor can change; and how a turn ended,
 * in the words of the protocol (ACP). The session's helpers are in other files: its steps become
 * updates (session-updates.ts), which are sent in order (outbox.ts); its trust gate asks about
 * programs of the project (questions.ts), and it is closed and opened again with those
 * (reopenable-session.ts).
 */

import type {
  ContentBlock,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk';
import type { JournalStep } from '@pawl/agent/journal/steps';
import {
  efforts,
  type Settings,
  totalTokens,
  type UsageTotals,
} from '@pawl/agent/machine/settings';
import { isBusy, type State, type WaitReason } from '@pawl/agent/machine/state';
import { knownModels } from '@pawl/agent/models/catalogue';
import { keyIn, providerOfModel } from '@pawl/agent/models/provider-table';
import { attempt } from '@pawl/agent/platform/attempt';
import { codeFence } from '@pawl/agent/platform/text';
import type { Preset } from '@pawl/agent/policy/presets';
import type { Stepped, Watcher } from '@pawl/agent/ports/session';
import {
  type ApprovalQuestion,
  type ApprovalReply,
  createApprovals,
} from '@pawl/agent/session/approvals';
import type { Session } from '@pawl/agent/session/create-agent';
import {
  aboutPresets,
  liveRights,
  presetNames,
  presetSettings,
} from '@pawl/agent/session/session-settings';
import { usageBetween } from '@pawl/agent/session/turn';
import { storedBlobs, storedJournals } from '../sessions/stored-sessions.js';
import { effortNote } from '../settings/connect-model.js';
import type { RunFlags } from '../settings/flags.js';
import { Outbox } from './outbox.js';
import { keepPictures, readPrompt } from './prompt-blocks.js';
import {
  askInEditor,
  askWords,
  permissionRequest,
  readApproval,
  TrustGate,
  withdrawnBy,
} from './questions.js';
import {
  type OpenedSession,
  openForEditor,
  ReopenableSession,
  type ResumeRequest,
  type SessionRequest,
} from './reopenable-session.js';
import {
  type Client,
  noticeUpdate,
  SessionUpdates,
  textUpdate,
  usageUpdate,
} from './session-updates.js';
import {
  commandIn,
  commandsUpdate,
  expandTyped,
  isOffered,
  runEditorCommand,
  unknownCommandText,
} from './typed-commands.js';

type SessionOpening = Pick<SessionRequest, 'workspace' | 'servers'> & {
  /** Null for a new session. `shows`: whether the client wants the conversation so far. */
  readonly resume:
    | (Omit<ResumeRequest, 'visit'> & { readonly shows: 'conversation' | 'nothing' })
    | null;
};

type Parts = {
  readonly flags: RunFlags;
  readonly client: Client;
  readonly opened: OpenedSession;
  /** Opens the session again after it was closed. */
  readonly openAgain: () => Promise<OpenedSession>;
  readonly state: State;
  /** Steps since the session was opened. More are added until the session shows them. */
  readonly waitingSteps: Stepped[];
  readonly outbox: Outbox;
  readonly updates: SessionUpdates;
  /** The last entry of the journal whose step is in the outbox; 0 if none is. */
  readonly shownSeq: number;
};

/** The answer to a prompt. */
type PromptAnswer = { readonly stopReason: StopReason; readonly usage: PromptUsage };

/**
 * A session that is open for the client.
 *
 * 1. A new session, or one that goes on without its conversation (`session/resume`): `open`, then
 *    the answer to the client, then `announce`. Steps wait to be shown, and updates to be sent,
 *    until then: nothing of a session may be sent before the answer that names it.
 * 2. A session that is loaded: `open`, then `replay`, the answer and `announce`. The client knows
 *    its id, and has the conversation before the answer.
 * 3. One that is open already may be loaded or resumed again: the same without `open`.
 * 4. A prompt that is sent while a turn runs steers that turn. Both are answered when it ends.
 * 5. All updates of a turn are written before its prompt is answered.
 */
export class AcpSession {
  readonly #flags: RunFlags;
  readonly #client: Client;
  readonly #session: ReopenableSession;
  readonly #trustGate: TrustGate;
  readonly workspace: string;
  readonly #outbox: Outbox;
  /** Takes each step: asks the client what it asks, and sends the answer to the session. */
  readonly #approvals: Watcher;
  #updates: SessionUpdates;
  #state: State;
  /**
   * Usage in the answers so far, so that their sum is right when two prompts are answered at once.
   */
  #answeredUsage: UsageTotals;
  /** The last entry of the journal that was shown: a later replay ends there. */
  #shownSeq: number;
  /** Whether the outbox has the conversation so far: `open` put it there for the first replay. */
  #hasConversation: boolean;
  /** Steps that wait to be shown; null once they are shown as they come. */
  #waitingSteps: Stepped[] | null;
  /** A turn that finds another number at its end was cancelled. */
  #cancelCount = 0;
  /**
   * The end of the turn that was cancelled last. A prompt after it waits, so that it is not part of
   * that turn.
   */
  #cancelledTurn: Promise<unknown> = Promise.resolve();

  private constructor(parts: Parts) {
    const { flags, client, opened, openAgain, state, waitingSteps, outbox, updates } = parts;
    this.#flags = flags;
    this.#client = client;
    this.#session = new ReopenableSession(opened, askInEditor(client, opened.session.id, outbox));
    this.#state = state;
    this.#answeredUsage = state.session.usage;
    this.#waitingSteps = waitingSteps;
    this.workspace = state.session.settings.workspace;
    this.#outbox = outbox;
    this.#updates = updates;
    this.#trustGate = new TrustGate({
      client,
      openAgain,
      session: this.#session,
      outbox,
      workspace: this.workspace,
    });
    this.#shownSeq = parts.shownSeq;
    this.#hasConversation = parts.shownSeq > 0;
    this.#approvals = createApprovals({
      onApproval: (question, signal) => this.#ask(question, signal),
      send: async (input) => (await this.#session.current()).send(input),
      report: (fault) => this.tell(fault.message),
    });
  }

  /**
   * A conversation that the client wants is put into the outbox while the journal is read, so that
   * its entries are read and folded once.
   */
  static async open(flags: RunFlags, client: Client, request: SessionOpening): Promise<AcpSession> {
    const { resume, workspace } = request;
    const isWanted = resume?.shows === 'conversation';
    // Nothing is sent before `acpSession` is there.
    const outbox = new Outbox((update) => acpSession.#notify(update));
    // A client that wants no conversation has the title from its list.
    const title = resume === null || isWanted ? 'unknown' : 'known';
    const updates = createUpdates(client, outbox, { workspace, title });
    let shownSeq = 0;
    const visit = (step: JournalStep): void => {
      updates.replay(step);
      shownSeq = step.seq;
    };
    const waitingSteps: Stepped[] = [];
    const warnings: string[] = [];
    let watcher: Watcher = (stepped) => void waitingSteps.push(stepped);
    let warn = (text: string): void => void warnings.push(text);
    const open = (resumed: ResumeRequest | null): Promise<OpenedSession> =>
      openForEditor(flags, {
        ...request,
        resume: resumed,
        watcher: (stepped) => watcher(stepped),
        warn: (text) => warn(text),
      });
    const first = await open(resume && { ...resume, visit: isWanted ? visit : null });
    updates.endReplay(null);
    const state = await first.session.state();
    // Open a moment ago: it need not be accepted, and the client has seen it.
    const resumeRequest = { id: first.session.id, visit: null, accept: async () => undefined };
    const openAgain = (): Promise<OpenedSession> =>
      open({ ...resumeRequest, rights: liveRights(acpSession.#state) });
    const acpSession = new AcpSession({
      flags,
      client,
      opened: first,
      openAgain,
      state,
      waitingSteps,
      outbox,
      updates,
      shownSeq,
    });
    watcher = (stepped) => acpSession.#see(stepped);
    warn = (text) => acpSession.tell(text);
    for (const warning of warnings) acpSession.tell(warning);
    return acpSession;
  }

  get id(): string {
    return this.#session.id;
  }

  /** Resolves when the session has ended, also by a fault. */
  get ended(): Promise<void> {
    return this.#session.ended;
  }

  /** Modes and options for the answer that opens the session. */
  get settings(): { readonly modes: SessionModeState; configOptions: SessionConfigOption[] } {
    const { settings } = this.#state.session;
    return {
      modes: presetModes(settings),
      configOptions: listConfigOptions(settings, usableModels()),
    };
  }

  /** Shows a line that is no part of the conversation. */
  tell(text: string): void {
    this.#outbox.push(noticeUpdate(text, 'warning', this.#client.features));
  }

  /** Call after the answer that names the session: from now on updates are sent. */
  announce(): void {
    this.#showWaiting();
    this.#outbox.push(commandsUpdate(this.#session.prompts));
    this.#outbox.push(usageUpdate(this.#state));
    this.#outbox.open();
  }

  /** Sends the whole conversation so far. Steps that come meanwhile follow it. */
  async replay(): Promise<void> {
    this.#outbox.open();
    if (this.#hasConversation) {
      this.#hasConversation = false;
      this.#showWaiting();
      return this.#outbox.flushed();
    }
    // The replay ends before the first step that waits and is in the journal.
    const first = this.#waitingSteps?.find(({ seq }) => seq !== null)?.seq ?? null;
    /** The last state that an open session has shown: the end of its replay. */
    const shown = this.#waitingSteps === null ? this.#state : null;
    const at = first === null ? this.#shownSeq : first - 1;
    this.#waitingSteps ??= [];
    this.#updates.stop();
    const about = { workspace: this.workspace, title: 'unknown' } as const;
    this.#updates = createUpdates(this.#client, this.#outbox, about);
    try {
      if (at > 0)
        await storedJournals().replay(this.id, {
          at,
          visit: (step) => this.#updates.replay(step),
        });
      this.#updates.endReplay(shown);
    } finally {
      this.#showWaiting();
    }
    await this.#outbox.flushed();
  }

  /**
   * Runs a turn; resolves with the reason why it ended and its tokens. Throws a BadPrompt or a
   * TurnFailed.
   */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptAnswer> {
    const stopReason = await this.#stopReason(blocks, signal);
    const { usage } = this.#state.session;
    const answer = { stopReason, usage: promptUsage(this.#answeredUsage, usage) };
    this.#answeredUsage = usage;
    return answer;
  }

  async #stopReason(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<StopReason> {
    const cancelCount = this.#cancelCount;
    const cancel = (): void => this.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel(); // before it was listened to
    try {
      const state = await this.#runTurn(blocks, cancelCount);
      await this.#outbox.flushed();
      if (this.#cancelCount !== cancelCount) return 'cancelled';
      const answer = state === null ? stopped('end_turn') : turnAnswer(state);
      if (answer.kind === 'failed') throw new TurnFailed(answer.error, answer.message);
      return answer.stopReason;
    } catch (fault) {
      // A turn that was cancelled is answered so, whatever its end threw.
      if (this.#cancelCount !== cancelCount) return 'cancelled';
      throw fault;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  cancel(): void {
    this.#cancelCount += 1;
    this.#trustGate.withdraw();
    // It rejects if the session has ended: then there is nothing to cancel.
    this.#cancelledTurn = attempt(async () => {
      const session = await this.#session.current();
      await session.send({ type: 'CancelTurn' });
      await session.idle();
    });
  }

  async changePreset(preset: string): Promise<void> {
    await changePreset(await this.#session.current(), preset);
  }

  async changeOption(id: string, value: string): Promise<void> {
    const session = await this.#session.current();
    await changeOption(session, id, value);
    const { effort = 'auto' } = (await session.state()).session.settings;
    // A model may know no effort, or another range of it.
    const note = id === 'mode' ? null : effortNote(await session.model(), effort);
    if (note !== null) this.tell(note);
  }

  async close(): Promise<void> {
    this.#cancelCount += 1; // a running prompt is answered as cancelled
    this.#trustGate.withdraw();
    this.#updates.stop();
    await this.#session.close();
  }

  #notify(update: SessionUpdate): Promise<void> {
    return this.#client.context.notify('session/update', { sessionId: this.id, update });
  }

  #see(stepped: Stepped): void {
    if (this.#waitingSteps === null) this.#show(stepped);
    else this.#waitingSteps.push(stepped);
  }

  #showWaiting(): void {
    const waitingSteps = this.#waitingSteps ?? [];
    this.#waitingSteps = null;
    for (const stepped of waitingSteps) this.#show(stepped);
  }

  #show(stepped: Stepped): void {
    const before = this.#state.session.settings;
    const { settings } = stepped.state.session;
    this.#state = stepped.state;
    this.#shownSeq = stepped.seq ?? this.#shownSeq;
    this.#updates.see(stepped);
    this.#approvals(stepped);
    if (before !== settings && shownSettings(before) !== shownSettings(settings))
      this.#showSettings(before, settings);
  }

  #showSettings(before: Settings, settings: Settings): void {
    const { modes, configOptions } = this.settings;
    if (before.preset !== settings.preset)
      this.#outbox.push({
        sessionUpdate: 'current_mode_update',
        currentModeId: modes.currentModeId,
      });
    this.#outbox.push({ sessionUpdate: 'config_option_update', configOptions });
  }

  /** Null for a command that began no turn. */
  async #runTurn(blocks: readonly ContentBlock[], cancelCount: number): Promise<State | null> {
    // Commands of Pawl are run here. Skills and commands of the user become a prompt.
    const command = commandIn(blocks);
    const isPrompt = this.#session.prompts.choices.some((choice) => choice.text === command?.name);
    if (command !== null && !isPrompt) return this.#runCommand(command.name, command.words);
    const { text: whole, written, pictures } = readPrompt(blocks, this.workspace);
    if (this.#cancelCount !== cancelCount) return this.#state; // nobody is asked for it
    await this.#trustGate.pass(this.#state); // asks about programs of the project, once
    if (this.#cancelCount !== cancelCount) return this.#state;
    const expanded = await expandTyped(this.#session.prompts, written);
    if (expanded.fault !== null) this.tell(expanded.fault);
    // Attached texts follow what the user wrote.
    const text = `${expanded.text}${whole.slice(written.length)}`;
    const session = await this.#session.current();
    const images = await keepPictures(pictures, session.keepPicture);
    await this.#cancelledTurn;
    if (this.#cancelCount !== cancelCount) return this.#state;
    await session.send({
      type: 'UserInput',
      text,
      mode: 'steer',
      ...(images.length === 0 ? {} : { images }),
    });
    return session.idle();
  }

  async #runCommand(name: string, words: string): Promise<State | null> {
    const session = await this.#session.current();
    const before = await session.state();
    const printed = isOffered(name)
      ? await runEditorCommand(session, this.#flags, name, words)
      : unknownCommandText(name, this.#session.prompts);
    if (printed.trim() !== '')
      this.#outbox.push(textUpdate('agent_message_chunk', codeFence(printed)));
    const state = await session.idle();
    return isBusy(before) || countCalls(before) === countCalls(state) ? null : state;
  }

  async #ask(question: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalReply> {
    const request = await permissionRequest(this.id, question);
    await this.#outbox.flushed();
    signal.throwIfAborted();
    const { context, features } = this.#client;
    if (question.subject.kind === 'question' && features.forms)
      return askWords(this.#client, this.id, question, signal);
    const response = await context.request(
      'session/request_permission',
      request,
      withdrawnBy(signal),
    );
    const reply = readApproval(response, question);
    if (reply !== null) return reply;
    // The client cancelled the turn instead of an answer.
    this.cancel();
    await this.#cancelledTurn;
    return { deny: 'the turn was cancelled' };
  }
}

const createUpdates = (
  { features }: Client,
  outbox: Outbox,
  about: { readonly workspace: string; readonly title: 'known' | 'unknown' },
): SessionUpdates =>
  new SessionUpdates({
    ...about,
    features,
    blobs: storedBlobs(),
    push: (item) => outbox.push(item),
  });

// The settings that a client can change: preset, model and effort. ACP calls presets modes.

/** A session from before presets has none: its rules are its own. */
const presetId = ({ preset }: Settings): string => preset ?? 'unnamed';

const unnamedPreset = {
  id: 'unnamed',
  name: 'unnamed',
  description: 'the rules of an older session',
};

/** Presets that a client can choose. A session that was opened with `full` can only leave it. */
const modeNames = ({ preset }: Settings): readonly Preset[] =>
  preset === 'full' ? [...presetNames, preset] : presetNames;

/** The presets as modes, for clients that don't know config options. */
const presetModes = (settings: Settings): SessionModeState => ({
  currentModeId: presetId(settings),
  availableModes: [
    ...modeNames(settings).map((name) => ({ id: name, name, description: aboutPresets[name] })),
    ...(settings.preset === undefined ? [unnamedPreset] : []),
  ],
});

/** The known models of providers that there is a key for. */
const usableModels = (): readonly string[] =>
  knownModels().filter((id) => {
    const provider = providerOfModel(id);
    return provider !== undefined && keyIn(process.env, provider.keyVariables) !== null;
  });

const listConfigOptions = (
  settings: Settings,
  models: readonly string[],
): SessionConfigOption[] => [
  {
    id: 'mode',
    name: 'Preset',
    description: 'What the agent may do without asking',
    category: 'mode',
    type: 'select',
    currentValue: presetId(settings),
    options: presetModes(settings).availableModes.map(({ id, name, description }) => ({
      value: id,
      name,
      ...(description === undefined ? {} : { description }),
    })),
  },
  {
    id: 'model',
    name: 'Model',
    category: 'model',
    type: 'select',
    currentValue: settings.model,
    options: [...new Set([settings.model, ...models])].map((id) => ({ value: id, name: id })),
  },
  {
    id: 'effort',
    name: 'Effort',
    description: 'How much the model should think',
    category: 'thought_level',
    type: 'select',
    currentValue: settings.effort ?? 'auto',
    options: efforts.map((effort) => ({ value: effort, name: effort })),
  },
];

/** Why an option was not changed, for the user. */
export class BadOption extends Error {}

const changePreset = async (session: Session, value: string): Promise<void> => {
  const { settings } = (await session.state()).session;
  const names = modeNames(settings);
  const preset = names.find((name) => name === value);
  if (preset === undefined)
    throw new BadOption(`There is no preset '${value}'. There are ${names.join(', ')}.`);
  if (settings.preset === preset) return;
  await session.send({ type: 'SettingsChanged', patch: await presetSettings(settings, preset) });
};

/** Changes one option. Throws a BadOption for an unknown option or value. */
const changeOption = async (session: Session, id: string, value: string): Promise<void> => {
  if (id === 'mode') return changePreset(session, value);
  if (id === 'model') return void (await session.useModel(value));
  if (id !== 'effort')
    throw new BadOption(`There is no option '${id}'. There are mode, model, effort.`);
  const effort = efforts.find((one) => one === value);
  if (effort === undefined)
    throw new BadOption(`There is no effort '${value}'. There are ${efforts.join(', ')}.`);
  await session.send({ type: 'SettingsChanged', patch: { effort } });
};

/** The parts of the settings that a client shows. */
const shownSettings = ({ preset, model, effort }: Settings): string =>
  JSON.stringify([preset, model, effort]);

// How a turn ended, as the answer to its prompt.

type TurnAnswer =
  | { readonly kind: 'stopped'; readonly stopReason: StopReason }
  | { readonly kind: 'failed'; readonly error: string; readonly message: string };

/**
 * The draft field `usage` of the response to a prompt. How many of the tokens are thoughts is not
 * known.
 */
type PromptUsage = {
  readonly totalTokens: number;
  /** Without those of the cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedReadTokens: number;
  readonly cachedWriteTokens: number;
};

const promptUsage = (before: UsageTotals, after: UsageTotals): PromptUsage => {
  const used = usageBetween(before, after);
  return {
    totalTokens: totalTokens(used),
    inputTokens: used.inputTokens,
    outputTokens: used.outputTokens,
    cachedReadTokens: used.cacheReadTokens,
    cachedWriteTokens: used.cacheWriteTokens,
  };
};

/** The model calls of a session so far, those for summaries too. */
const countCalls = ({ session: { counters } }: State): number =>
  counters.request + counters.compaction;

const stopped = (stopReason: StopReason): TurnAnswer => ({ kind: 'stopped', stopReason });

const answerForReason = (reason: WaitReason): TurnAnswer => {
  switch (reason.kind) {
    case 'endOfTurn':
      // A model that refuses ends the turn like this, too: ACP's `refusal` makes the client drop
      // the prompt from its history, but the session keeps it.
      return stopped(reason.cause === 'truncated' ? 'max_tokens' : 'end_turn');
    case 'budget':
      return stopped(reason.dimension === 'rounds' ? 'max_turn_requests' : 'end_turn');
    case 'cancelled':
      return stopped('cancelled');
    case 'error':
      return { kind: 'failed', error: reason.error, message: reason.message };
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return stopped('end_turn');
    default:
      return reason satisfies never;
  }
};

/** The answer for a session that came to rest. One that shuts down was closed by the client. */
const turnAnswer = (state: State): TurnAnswer => {
  if (state.name === 'WaitingForUserInput') return answerForReason(state.reason);
  return stopped(state.name === 'Ready' ? 'end_turn' : 'cancelled');
};

/** A turn that ended with an error. `error` is its kind. */
export class TurnFailed extends Error {
  readonly error: string;

  constructor(error: string, message: string) {
    super(message);
    this.error = error;
  }
}
