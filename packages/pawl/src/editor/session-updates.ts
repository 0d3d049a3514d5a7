/**
 * The steps of a session as updates for an editor, sent in order, live or while its journal is
 * read.
 *
 * From top to bottom: single updates; `SessionUpdates`, which makes them from steps; the output of
 * running calls; `Outbox`, which sends them in order; a session that is being opened; and the
 * commands that the editor offers.
 */

import type {
  AgentContext,
  AvailableCommand,
  ContentBlock,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import { titleFrom } from '@pawl/agent/journal/list';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Action } from '@pawl/agent/machine/action';
import type { On } from '@pawl/agent/machine/event';
import type { Image } from '@pawl/agent/machine/message';
import { isIgnored, knownCostUsd, type State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import { createRewoundNotes } from '@pawl/terminal/rewind-words';
import {
  createJudgedCalls,
  type JudgedCalls,
  resumedNote,
  type ToolResult,
} from '@pawl/terminal/step-lines';
import type {
  AcpHost,
  EditorCommand,
  EditorPrompts,
  ResumeRequest,
  SessionRequest,
} from './acp-host.js';
import {
  callLocations,
  findFirstLine,
  isPlan,
  madeChange,
  newToolCall,
  outputContent,
  planEntries,
  showsPlan,
} from './tool-calls.js';

/** Optional features of the client. */
export type ClientFeatures = {
  readonly notices: boolean;
  readonly compaction: boolean;
  /** Forms that ask the user something. */
  readonly forms: boolean;
};

type Severity = 'info' | 'warning' | 'error';

export const noticeUpdate = (
  text: string,
  severity: Severity,
  { notices }: ClientFeatures,
): SessionUpdate =>
  notices
    ? { sessionUpdate: 'notice', severity, title: text }
    : textUpdate('agent_message_chunk', `\n\n${text.replace(/^/gm, '> ')}\n\n`);

export const textUpdate = (
  kind: 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk',
  text: string,
  messageId?: string,
): SessionUpdate => ({
  sessionUpdate: kind,
  content: { type: 'text', text },
  ...(messageId === undefined ? {} : { messageId }),
});

export const usageUpdate = (state: State): SessionUpdate => {
  const { contextTokens, settings } = state.session;
  const cost = knownCostUsd(state);
  return {
    sessionUpdate: 'usage_update',
    used: Math.max(0, Math.round(contextTokens)),
    size: settings.windowTokens,
    ...(cost === null ? {} : { cost: { amount: cost, currency: 'USD' } }),
  };
};

/** Notices of what the client has just done itself, or of what other updates tell it. */
const KNOWN_TO_CLIENT: ReadonlySet<string> = new Set(['queued', 'cancelled', 'rewound']);

type UpdateParts = {
  readonly workspace: string;
  readonly features: ClientFeatures;
  readonly blobs: Blobs;
  /** `known`: the client has the title of the session. */
  readonly title: 'known' | 'unknown';
  push(item: OutboxItem): void;
};

/** Turns the steps of one session, live or from its journal, into updates for the client. */
export class SessionUpdates {
  readonly #parts: UpdateParts;
  readonly #calls: JudgedCalls;
  readonly #outputs: RunningOutputs;
  readonly #rewinds = createRewoundNotes();
  #title: UpdateParts['title'];
  /**
   * The step with the text of a replayed reply, which waits for the next step: that step's
   * reasoning is shown first, then this text, then the rest of that step.
   */
  #delayedText: Stepped | null = null;

  constructor(parts: UpdateParts) {
    this.#parts = parts;
    this.#calls = createJudgedCalls(parts.workspace);
    this.#outputs = new RunningOutputs(parts.push);
    this.#title = parts.title;
  }

  /** A step of the running session. An input is not shown: the client sent it. */
  see(stepped: Stepped): void {
    if (isIgnored(stepped)) return;
    const { event } = stepped;
    if (event.type === 'ReasoningDelta')
      this.#push(textUpdate('agent_thought_chunk', event.text, event.requestId));
    if (event.type === 'ToolProgress') this.#outputs.add(event.callId, event.text);
    const note = resumedNote(stepped); // which work a resumed session repeats
    if (note !== '') this.#tell(note, 'info');
    this.#showStep(stepped);
  }

  /** A step from the journal, for a client that loads the session. */
  replay(stepped: Stepped): void {
    if (isIgnored(stepped)) return;
    const { event } = stepped;
    if (event.type === 'LlmCompleted') this.#showReasoning(event);
    this.#showDelayedText();
    if (event.type === 'UserInput') this.#showInput(event);
    if (event.type === 'TextDelta') this.#delayedText = stepped;
    else this.#showStep(stepped);
  }

  /**
   * Ends the replay. `state`: the state after it, which may have a part of a reply that is not in
   * the journal yet; null if no reply runs.
   */
  endReplay(state: State | null): void {
    this.#showDelayedText();
    if (state?.name === 'CallingLlm' && state.partial !== '')
      this.#push(textUpdate('agent_message_chunk', state.partial, state.requestId));
  }

  /** Drops output that waits to be shown. */
  stop(): void {
    this.#outputs.endAll();
  }

  #push(item: OutboxItem): void {
    this.#parts.push(item);
  }

  #tell(text: string, severity: Severity): void {
    this.#push(noticeUpdate(text, severity, this.#parts.features));
  }

  #showDelayedText(): void {
    const delayed = this.#delayedText;
    this.#delayedText = null;
    if (delayed !== null) this.#showStep(delayed);
  }

  #showReasoning({ message, requestId }: On<'LlmCompleted'>): void {
    for (const part of message?.parts ?? [])
      if (part.type === 'reasoning' && part.text !== '')
        this.#push(textUpdate('agent_thought_chunk', part.text, requestId));
  }

  #showInput({ text, images = [] }: On<'UserInput'>): void {
    this.#push(textUpdate('user_message_chunk', text));
    for (const image of images)
      this.#push({
        make: () => this.#pictureUpdate(image),
        otherwise: textUpdate(
          'user_message_chunk',
          `[${image.mediaType}: its bytes can't be read]`,
        ),
      });
  }

  async #pictureUpdate({ mediaType, sha256 }: Image): Promise<SessionUpdate | null> {
    const base64 = await this.#parts.blobs.get(sha256);
    if (base64 === undefined) return null;
    const content: ContentBlock = { type: 'image', data: base64, mimeType: mediaType };
    return { sessionUpdate: 'user_message_chunk', content };
  }

  #showStep(stepped: Stepped): void {
    const { event, state, actions } = stepped;
    this.#calls.see(stepped); // remembers the calls of a reply by their ids
    if (event.type === 'UserInput') this.#showTitle(event);
    // The text of a reply comes before its calls, and their results after them.
    for (const action of actions) {
      if (action.type === 'RetractPartial')
        this.#tell('The text of the reply above does not count.', 'warning');
      if (action.type === 'DisplayText') this.#showText(action.text, event);
    }
    if (event.type === 'LlmCompleted') this.#showCalls(event);
    if (event.type === 'ToolStarted' && !isPlan(this.#calls.get(event.callId)))
      this.#push({
        sessionUpdate: 'tool_call_update',
        toolCallId: event.callId,
        status: 'in_progress',
      });
    for (const action of actions) this.#showAction(action, stepped);
    const rewound = this.#rewinds.see(stepped); // what a rewind has done; empty for other steps
    if (rewound !== '') {
      this.#tell(rewound, 'info');
      this.#push(usageUpdate(state));
    }
    if (event.type === 'CompactionCompleted')
      this.#showCompaction(event.compactionId, 'completed', {
        summary: [{ type: 'text', text: event.summary }],
      });
    if (event.type === 'CompactionFailed')
      this.#showCompaction(event.compactionId, 'failed', { error: event.message });
    if (event.type === 'LlmCompleted' || event.type === 'CompactionCompleted')
      this.#push(usageUpdate(state));
  }

  #showTitle({ text, at }: On<'UserInput'>): void {
    const title = titleFrom(text);
    if (this.#title === 'known' || title === '') return;
    this.#title = 'known';
    this.#push({
      sessionUpdate: 'session_info_update',
      title,
      updatedAt: new Date(at).toISOString(),
    });
  }

  #showCalls({ calls }: On<'LlmCompleted'>): void {
    for (const call of calls)
      if (!isPlan(call))
        this.#push({ sessionUpdate: 'tool_call', ...newToolCall(call, this.#parts.workspace) });
  }

  #showAction(action: Action, stepped: Stepped): void {
    if (action.type === 'DisplayToolResult') this.#showResult(action, stepped);
    if (action.type === 'DisplayWarning') this.#tell(action.text, 'warning');
    if (action.type === 'DisplayNotice') this.#showNotice(action);
    if (action.type === 'StartCompaction') this.#showCompaction(action.compactionId, 'in_progress');
    if (action.type === 'AbortCompaction') this.#showCompaction(action.compactionId, 'cancelled');
    // A DisplayError ends the turn: the answer to the prompt has its words.
  }

  #showText(text: string, event: Stepped['event']): void {
    const id = 'requestId' in event ? (event.requestId ?? undefined) : undefined;
    this.#push(textUpdate('agent_message_chunk', text, id));
  }

  #showNotice({ kind, text }: Extract<Action, { readonly type: 'DisplayNotice' }>): void {
    if (KNOWN_TO_CLIENT.has(kind) || (kind === 'compacted' && this.#parts.features.compaction))
      return;
    this.#tell(text, 'info');
  }

  #showCompaction(
    compactionId: string,
    status: 'in_progress' | 'completed' | 'failed' | 'cancelled',
    more: { readonly summary?: ContentBlock[]; readonly error?: string } = {},
  ): void {
    if (this.#parts.features.compaction)
      this.#push({ sessionUpdate: 'compaction_update', compactionId, status, ...more });
  }

  #showResult(result: ToolResult, { event }: Stepped): void {
    const { callId, status, text, diff } = result;
    this.#outputs.end(callId);
    const call = this.#calls.get(callId);
    if (showsPlan(call) && status === 'ok')
      this.#push({ sessionUpdate: 'plan', entries: planEntries(text) });
    if (isPlan(call)) return;
    const update = {
      sessionUpdate: 'tool_call_update',
      toolCallId: callId,
      status: status === 'ok' ? 'completed' : 'failed',
    } as const;
    const path = call?.facts.paths[0];
    if (diff === null || path === undefined || call === undefined) {
      this.#push({ ...update, content: outputContent(text) });
      return;
    }
    // The files right after the call, with their hashes: the diff fits a file that is still so.
    const seen = event.type === 'ToolCompleted' ? (event.outcome.seen ?? []) : [];
    const sha256 = seen.find((file) => file.path === path)?.sha256 ?? null;
    const located = { ...update, locations: callLocations(call, findFirstLine(diff)) };
    this.#push({
      make: async () => {
        const change = await madeChange(path, diff, sha256);
        return change === null ? null : { ...located, content: [...change] };
      },
      otherwise: { ...located, content: outputContent(diff) },
    });
  }
}

/**
 * Characters of a running call's output that are shown: the last ones. The result has all that the
 * model gets.
 */
const SHOWN_CHARACTERS_MAX = 8_000;
/** Least time between two updates of a call. */
const UPDATE_INTERVAL_MS = 250;

type RunningOutput = { text: string; cut: boolean; timer: NodeJS.Timeout | null };

/**
 * The output of running calls. An update replaces all content of a call, so each carries the output
 * so far, cut to its end; at most four a second.
 */
class RunningOutputs {
  readonly #push: (update: SessionUpdate) => void;
  readonly #running = new Map<string, RunningOutput>();

  constructor(push: (update: SessionUpdate) => void) {
    this.#push = push;
  }

  add(callId: string, text: string): void {
    const output = this.#running.get(callId) ?? { text: '', cut: false, timer: null };
    this.#running.set(callId, output);
    const whole = output.text + text;
    output.cut ||= whole.length > SHOWN_CHARACTERS_MAX;
    output.text = whole.slice(-SHOWN_CHARACTERS_MAX);
    output.timer ??= setTimeout(() => this.#show(callId, output), UPDATE_INTERVAL_MS).unref();
  }

  /** The call has ended: its result follows. */
  end(callId: string): void {
    const timer = this.#running.get(callId)?.timer ?? null;
    if (timer !== null) clearTimeout(timer);
    this.#running.delete(callId);
  }

  endAll(): void {
    for (const callId of [...this.#running.keys()]) this.end(callId);
  }

  #show(callId: string, output: RunningOutput): void {
    output.timer = null;
    const content = outputContent(output.cut ? `…${output.text}` : output.text);
    this.#push({
      sessionUpdate: 'tool_call_update',
      toolCallId: callId,
      status: 'in_progress',
      content,
    });
  }
}

/** An update that is made when its turn comes; `otherwise` is sent if it fails, or gives null. */
type LaterUpdate = {
  make(): Promise<SessionUpdate | null>;
  readonly otherwise: SessionUpdate;
};
type OutboxItem = SessionUpdate | LaterUpdate;

type Chunk = Extract<
  SessionUpdate,
  { readonly sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }
>;

const isChunk = (item: OutboxItem | undefined): item is Chunk =>
  item !== undefined &&
  'sessionUpdate' in item &&
  (item.sessionUpdate === 'agent_message_chunk' || item.sessionUpdate === 'agent_thought_chunk');

/** Both chunks as one; null if they belong to different messages. */
const joinChunks = (before: OutboxItem | undefined, after: OutboxItem): Chunk | null => {
  if (!isChunk(before) || !isChunk(after) || before.sessionUpdate !== after.sessionUpdate)
    return null;
  if (before.messageId !== after.messageId) return null;
  if (before.content.type !== 'text' || after.content.type !== 'text') return null;
  return {
    ...before,
    content: { ...before.content, text: before.content.text + after.content.text },
  };
};

const makeLater = async ({ make, otherwise }: LaterUpdate): Promise<SessionUpdate> => {
  const made = await attempt(make);
  return made.kind === 'done' && made.value !== null ? made.value : otherwise;
};

/**
 * Sends the updates of one session in order, one at a time.
 *
 * 1. While it is closed, updates wait: nothing of a session may be sent before the answer that
 *    creates it.
 * 2. While a slow client reads, streamed text that waits becomes one chunk.
 */
export class Outbox {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  #waiting: OutboxItem[] = [];
  #isOpen = false;
  #sending: Promise<void> | null = null;
  #open: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.#send = send;
  }

  push(item: OutboxItem): void {
    const both = joinChunks(this.#waiting.at(-1), item);
    if (both === null) this.#waiting.push(item);
    else this.#waiting[this.#waiting.length - 1] = both;
    this.#start();
  }

  open(): void {
    this.#isOpen = true;
    this.#open();
    this.#start();
  }

  /** Resolves when it is open and everything that was pushed is written. */
  async flushed(): Promise<void> {
    await this.#opened;
    while (this.#sending !== null) await this.#sending;
  }

  #start(): void {
    if (!this.#isOpen || this.#sending !== null || this.#waiting.length === 0) return;
    this.#sending = this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      const update = 'make' in item ? await makeLater(item) : item;
      // Sending fails only if the client is gone: then the connection ends, and the journal has
      // everything.
      await attempt(() => this.#send(update));
    }
    this.#sending = null; // in the moment in which nothing waits: a later item begins again
  }
}

/** One client: how to reach it, and what it can show. */
export type Client = { readonly context: AgentContext; readonly features: ClientFeatures };

export type SessionOpening = Pick<SessionRequest, 'workspace' | 'servers'> & {
  /** Null for a new session. `shows`: whether the client wants the conversation so far. */
  readonly resume:
    | (Omit<ResumeRequest, 'visit'> & { readonly shows: 'conversation' | 'nothing' })
    | null;
};

export const createUpdates = (
  { journals: { blobs } }: AcpHost,
  { features }: Client,
  outbox: Outbox,
  about: { readonly workspace: string; readonly title: 'known' | 'unknown' },
): SessionUpdates =>
  new SessionUpdates({ ...about, features, blobs, push: (item) => outbox.push(item) });

export type Collected = {
  readonly outbox: Outbox;
  readonly updates: SessionUpdates;
  /** The last entry of the journal whose step is in the outbox; null if none is. */
  readonly seq: number | null;
};

/**
 * Prepares the outbox of a session that is being opened. Its conversation so far is put there while
 * its journal is read, so that the entries are read and folded once.
 */
export const collectWhileOpening = (
  host: AcpHost,
  client: Client,
  { resume, workspace }: SessionOpening,
  send: (update: SessionUpdate) => Promise<void>,
): { readonly resume: ResumeRequest | null; end(): Collected } => {
  const outbox = new Outbox(send);
  const isWanted = resume?.shows === 'conversation';
  const title = resume === null || isWanted ? 'unknown' : 'known';
  const updates = createUpdates(host, client, outbox, { workspace, title });
  let last: number | null = null;
  const visit = (step: JournalStep): void => {
    updates.replay(step);
    last = step.seq;
  };
  return {
    resume: resume === null ? null : { ...resume, visit: isWanted ? visit : null },
    end: () => {
      updates.endReplay(null);
      return { outbox, updates, seq: last };
    },
  };
};

// The commands, skills and prompts that can be typed in a session.

const availableCommands = (
  commands: readonly EditorCommand[],
  { choices }: EditorPrompts,
): AvailableCommand[] => [
  ...commands.map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint === null ? {} : { input: { hint } }),
  })),
  ...choices.map(({ text, about }) => ({
    name: text,
    description: about,
    input: { hint: 'words' },
  })),
];

export const commandsUpdate = (
  commands: readonly EditorCommand[],
  prompts: EditorPrompts,
): SessionUpdate => ({
  sessionUpdate: 'available_commands_update',
  availableCommands: availableCommands(commands, prompts),
});

export const unknownCommandText = (
  name: string,
  commands: readonly EditorCommand[],
  { choices }: EditorPrompts,
): string => {
  const names = [...commands.map((command) => command.name), ...choices.map(({ text }) => text)];
  return `There is no /${name} here. There are ${names.map((one) => `/${one}`).join(', ')}.`;
};
