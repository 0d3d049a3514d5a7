import type { ContentBlock, SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk';
import { titleFrom } from '@pawl/agent/journal/read/list-sessions';
import type { Action } from '@pawl/agent/machine/action';
import type { On } from '@pawl/agent/machine/event';
import { costOf } from '@pawl/agent/machine/known-cost';
import type { Image } from '@pawl/agent/machine/message';
import type { State } from '@pawl/agent/machine/state';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { createJudgedCalls, type JudgedCalls, type ToolResult } from '@pawl/terminal/transcript/known-calls';
import { resumedNote } from '@pawl/terminal/transcript/resumed-note';
import { firstLineOf, madeChange } from './calls/file-diff.js';
import { isPlan, locationsOf, newToolCall, outputContent, planEntries } from './calls/tool-calls.js';
import { ToolProgress } from './calls/tool-progress.js';
import type { OutboxItem } from './outbox.js';

/** What the client shows beyond the basics. */
export type ClientFeatures = {
  readonly notices: boolean;
  readonly compaction: boolean;
  /** Forms that ask the user something. */
  readonly forms: boolean;
};

type Severity = 'info' | 'warning' | 'error';

export const noticeUpdate = (text: string, severity: Severity, { notices }: ClientFeatures): SessionUpdate =>
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
  const cost = costOf(state);
  return {
    sessionUpdate: 'usage_update',
    used: Math.max(0, Math.round(contextTokens)),
    size: settings.windowTokens,
    ...(cost === null ? {} : { cost: { amount: cost, currency: 'USD' } }),
  };
};

/** Notices that tell the client what it has just done itself. */
const KNOWN_TO_CLIENT: ReadonlySet<string> = new Set(['queued', 'cancelled']);

type Parts = {
  readonly workspace: string;
  readonly features: ClientFeatures;
  readonly blobs: Blobs;
  /** `known`: the client has the title of the session. */
  readonly title: 'known' | 'unknown';
  push(item: OutboxItem): void;
};

/** Turns the steps of one session, live or from its journal, into updates for the client. */
export class SessionUpdates {
  readonly #parts: Parts;
  readonly #calls: JudgedCalls;
  readonly #progress: ToolProgress;
  #title: Parts['title'];
  /** The text of a replayed reply. The reasoning before it comes with the next entry. */
  #heldText: Stepped | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#calls = createJudgedCalls(parts.workspace);
    this.#progress = new ToolProgress(parts.push);
    this.#title = parts.title;
  }

  /** A step of the running session. */
  see(stepped: Stepped): void {
    const { event } = stepped;
    if (event.type === 'ReasoningDelta' && stepped.path.length > 0)
      this.#push(textUpdate('agent_thought_chunk', event.text, event.requestId));
    if (event.type === 'ToolProgress' && stepped.path.length > 0)
      this.#progress.add(event.callId, event.text);
    const note = resumedNote(stepped);
    if (note !== '') this.#tell(note, 'info');
    this.#seeAny(stepped);
  }

  /** A step from the journal, for a client that loads the session. */
  replay(stepped: Stepped): void {
    const { event } = stepped;
    if (event.type === 'LlmCompleted') this.#showReasoning(event);
    this.#showHeldText();
    if (event.type === 'UserInput') this.#showInput(event);
    if (event.type === 'TextDelta') this.#heldText = stepped;
    else this.#seeAny(stepped);
  }

  /** Ends the replay. `state`: the state after it, if its reply may be half received. */
  endReplay(state: State | null): void {
    this.#showHeldText();
    if (state?.name === 'CallingLlm' && state.partial !== '')
      this.#push(textUpdate('agent_message_chunk', state.partial, state.requestId));
  }

  /** Drops output that waits to be shown. */
  stop(): void {
    this.#progress.endAll();
  }

  #push(item: OutboxItem): void {
    this.#parts.push(item);
  }

  #tell(text: string, severity: Severity): void {
    this.#push(noticeUpdate(text, severity, this.#parts.features));
  }

  #showHeldText(): void {
    const held = this.#heldText;
    this.#heldText = null;
    if (held !== null) this.#seeAny(held);
  }

  #showReasoning({ message, requestId }: On<'LlmCompleted'>): void {
    for (const part of message?.parts ?? [])
      if (part.type === 'reasoning' && part.text !== '')
        this.#push(textUpdate('agent_thought_chunk', part.text, requestId));
  }

  #showInput({ text, images = [] }: On<'UserInput'>): void {
    this.#push(textUpdate('user_message_chunk', text));
    for (const image of images) this.#push(() => this.#pictureUpdate(image));
  }

  async #pictureUpdate({ mediaType, sha256 }: Image): Promise<SessionUpdate | null> {
    const base64 = await this.#parts.blobs.get(sha256);
    if (base64 === undefined) return null;
    const content: ContentBlock = { type: 'image', data: base64, mimeType: mediaType };
    return { sessionUpdate: 'user_message_chunk', content };
  }

  #seeAny(stepped: Stepped): void {
    const { event, state, actions, path } = stepped;
    this.#calls.see(stepped);
    if (event.type === 'UserInput') this.#showTitle(event);
    for (const action of actions) if (action.type === 'DisplayText') this.#showText(action.text, event);
    if (event.type === 'LlmCompleted' && path.length > 0) this.#showCalls(event);
    if (event.type === 'ToolStarted' && !isPlan(this.#calls.get(event.callId)))
      this.#push({ sessionUpdate: 'tool_call_update', toolCallId: event.callId, status: 'in_progress' });
    for (const action of actions) this.#showAction(action, stepped);
    if (event.type === 'CompactionCompleted' && path.length > 0)
      this.#showCompaction(event.compactionId, 'completed', {
        summary: [{ type: 'text', text: event.summary }],
      });
    if (event.type === 'CompactionFailed' && path.length > 0)
      this.#showCompaction(event.compactionId, 'failed', { error: event.message });
    if ((event.type === 'LlmCompleted' || event.type === 'CompactionCompleted') && path.length > 0)
      this.#push(usageUpdate(state));
  }

  #showTitle({ text, at }: On<'UserInput'>): void {
    const title = titleFrom(text);
    if (this.#title === 'known' || title === '') return;
    this.#title = 'known';
    this.#push({ sessionUpdate: 'session_info_update', title, updatedAt: new Date(at).toISOString() });
  }

  #showCalls({ calls }: On<'LlmCompleted'>): void {
    for (const call of calls)
      if (!isPlan(call))
        this.#push({ sessionUpdate: 'tool_call', ...newToolCall(call, this.#parts.workspace) });
  }

  #showAction(action: Action, stepped: Stepped): void {
    if (action.type === 'RetractPartial')
      this.#tell('The text above was cut off and does not count.', 'warning');
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
    if (KNOWN_TO_CLIENT.has(kind) || (kind === 'compacted' && this.#parts.features.compaction)) return;
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
    this.#progress.end(callId);
    const call = this.#calls.get(callId);
    if (isPlan(call)) {
      if (status === 'ok') this.#push({ sessionUpdate: 'plan', entries: planEntries(text) });
      return;
    }
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
    const seen = event.type === 'ToolCompleted' ? (event.outcome.seen ?? []) : [];
    const sha256 = seen.find((file) => file.path === path)?.sha256 ?? null;
    const contentOf = async (): Promise<ToolCallContent[]> => [
      ...((await madeChange(path, diff, sha256)) ?? outputContent(diff)),
    ];
    const locations = locationsOf(call, firstLineOf(diff));
    this.#push(async () => ({ ...update, locations, content: await contentOf() }));
  }
}
