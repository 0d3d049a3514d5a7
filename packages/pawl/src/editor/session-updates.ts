/**
 * The steps of a session as updates for an editor: live steps (`SessionUpdates.see`), or those of
 * its journal (`replay`). Before them: single updates that come from no step.
 */

import type { AgentContext, ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk';
import { titleFrom } from '@pawl/agent/journal/list';
import type { Action } from '@pawl/agent/machine/action';
import type { On } from '@pawl/agent/machine/event';
import type { Image } from '@pawl/agent/machine/message';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { isIgnored, knownCostUsd, type State } from '@pawl/agent/machine/state';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import { clientCallId, findReplyBatch } from '@pawl/agent/session/client-call-ids';
import { createRewoundNotes } from '@pawl/terminal/rewind-words';
import {
  createJudgedCalls,
  heldNote,
  type JudgedCalls,
  resumedNote,
  type ToolResult,
} from '@pawl/terminal/step-lines';
import type { OutboxItem } from './outbox.js';
import { RunningOutputs } from './running-outputs.js';
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

/** One client: how to reach it, and what it can show. */
export type Client = { readonly context: AgentContext; readonly features: ClientFeatures };

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
  const usage = toldUsage(state);
  const cost = knownCostUsd(usage);
  // the protocol has no word for a lower bound
  const bound = usage.atLeast ? { _meta: { atLeast: true } } : {};
  return {
    sessionUpdate: 'usage_update',
    used: Math.max(0, Math.round(contextTokens)),
    size: settings.windowTokens,
    ...(cost === null ? {} : { cost: { amount: cost, currency: 'USD', ...bound } }),
  };
};

/** Notices of what the client has just done itself, or of what is told in another way. */
const TOLD_OTHERWISE: ReadonlySet<string> = new Set(['queued', 'cancelled', 'rewound']);

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
  /** What was spent when the client was told last; null before the first step. */
  #spent: State['session']['usage'] | null = null;
  /** After the last step that was replayed; null before the first. */
  #replayed: State | null = null;

  constructor(parts: UpdateParts) {
    this.#parts = parts;
    this.#calls = createJudgedCalls(parts.workspace);
    this.#outputs = new RunningOutputs(parts.push);
    this.#title = parts.title;
  }

  /** A step of the running session. An input is not shown: the client sent it. */
  see(stepped: Stepped): void {
    if (isIgnored(stepped)) {
      this.#showUsage(stepped); // late usage counts
      return;
    }
    const { event } = stepped;
    if (event.type === 'ReasoningDelta')
      this.#push(textUpdate('agent_thought_chunk', event.text, event.requestId));
    if (event.type === 'ToolProgress')
      this.#outputs.add(clientCallId(event.batchId, event.callId), event.text);
    if (event.type === 'UserInput')
      this.#showTitle(event.text, { updatedAt: new Date(event.at).toISOString() });
    const note = resumedNote(stepped); // which work a resumed session repeats; no replay says it
    if (note !== '') this.#tell(note, 'info');
    this.#showStep(stepped);
    const held = heldNote(stepped);
    if (held !== '') this.#tell(held, 'warning');
  }

  /** A step from the journal, for a client that loads the session. */
  replay(stepped: Stepped): void {
    if (isIgnored(stepped)) return;
    const { event, state } = stepped;
    this.#replayed = state;
    // the journal has the reasoning of a reply at its end, after a part that an input has cut off
    if (event.type === 'LlmCompleted') this.#showReasoning(event);
    if (event.type === 'UserInput') {
      this.#showInput(event);
      this.#showTitle(event.text); // without a time: `updatedAt` is the last activity
    }
    this.#showStep(stepped);
  }

  /**
   * Ends the replay. `state`: the last state that an open session has shown, maybe with a part of a
   * reply that is not in the journal yet. Null: the session is being opened, and what follows comes
   * through `see`.
   */
  endReplay(state: State | null): void {
    if (state?.name !== 'CallingLlm') return;
    const { partial, requestId } = state;
    const last = this.#replayed;
    const isSameReply = last?.name === 'CallingLlm' && last.requestId === requestId;
    const rest = isSameReply ? partial.slice(last.partial.length) : partial;
    if (rest !== '') this.#push(textUpdate('agent_message_chunk', rest, requestId));
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
    const { event, actions } = stepped;
    this.#calls.see(stepped); // remembers the calls of a reply by their ids
    // The text of a reply comes before its calls, and their results after them.
    for (const action of actions) {
      if (action.type === 'RetractPartial')
        this.#tell('The text of the reply above does not count.', 'warning');
      if (action.type === 'DisplayText') this.#showText(action.text, event);
    }
    if (event.type === 'LlmCompleted') this.#showCalls(event, findReplyBatch(stepped));
    if (event.type === 'ToolStarted' && !isPlan(this.#calls.get(event.callId)))
      this.#push({
        sessionUpdate: 'tool_call_update',
        toolCallId: clientCallId(event.batchId, event.callId),
        status: 'in_progress',
      });
    for (const action of actions) this.#showAction(action, stepped);
    const rewound = this.#rewinds.see(stepped); // what a rewind has done; empty for other steps
    if (rewound !== '') this.#tell(rewound, 'info');
    if (event.type === 'CompactionCompleted')
      this.#showCompaction(event.compactionId, 'completed', {
        summary: [{ type: 'text', text: event.summary }],
      });
    if (event.type === 'CompactionFailed')
      this.#showCompaction(event.compactionId, 'failed', { error: event.message });
    this.#showUsage(stepped, rewound !== '');
  }

  /** Tells of what was spent, and of a context or a window that has changed much. */
  #showUsage(stepped: Stepped, isRewound = false): void {
    const { event, state } = stepped;
    const { usage } = state.session;
    const isSpent = this.#spent !== null && this.#spent !== usage;
    this.#spent = usage;
    const changes = ['LlmCompleted', 'CompactionCompleted', 'SettingsChanged'];
    const isTold = changes.includes(event.type) && !isIgnored(stepped);
    if (isSpent || isTold || isRewound) this.#push(usageUpdate(state));
  }

  #showTitle(text: string, when: { readonly updatedAt?: string } = {}): void {
    const title = titleFrom(text);
    if (this.#title === 'known' || title === '') return;
    this.#title = 'known';
    this.#push({ sessionUpdate: 'session_info_update', title, ...when });
  }

  #showCalls({ calls }: On<'LlmCompleted'>, batchId: string | null): void {
    if (batchId === null) return; // none of them runs
    for (const call of calls) {
      const id = clientCallId(batchId, call.callId);
      if (!isPlan(call))
        this.#push({ sessionUpdate: 'tool_call', ...newToolCall(id, call, this.#parts.workspace) });
    }
  }

  #showAction(action: Action, stepped: Stepped): void {
    if (action.type === 'DisplayToolResult') this.#showResult(action, stepped);
    if (action.type === 'DisplayWarning') this.#tell(action.text, 'warning');
    if (action.type === 'RestoreQueue')
      for (const text of action.texts) this.#tell(`Not sent: ${text}`, 'warning');
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
    if (TOLD_OTHERWISE.has(kind) || (kind === 'compacted' && this.#parts.features.compaction))
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
    const { batchId, callId, status, text, diff } = result;
    const toolCallId = clientCallId(batchId, callId);
    this.#outputs.end(toolCallId);
    const call = this.#calls.get(callId);
    // A plan that also asks the user is shown as a call, too.
    if (showsPlan(call) && status === 'ok')
      this.#push({ sessionUpdate: 'plan', entries: planEntries(text) });
    if (isPlan(call)) return;
    const update = {
      sessionUpdate: 'tool_call_update',
      toolCallId,
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
