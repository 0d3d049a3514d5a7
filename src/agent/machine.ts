import { emptyConversation } from './conversation.js';
import { noStreaks } from './moves/streaks.js';
import type { Settings } from './settings.js';
import { agentMachine } from './spec.js';
import type { In } from './state.js';
import { table } from './table.js';

/** The machine: pure, total, never throws. */
export const agent = agentMachine(table);

/** One application: same state and event, same answer. */
export const step = agent.step;

/** A session that has not been opened. */
export const initialState = (settings: Settings): In<'Ready'> => ({
  name: 'Ready',
  session: {
    conversation: emptyConversation,
    queue: [],
    settings,
    grants: [],
    usage: {
      inputTokens: 0,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: 0,
      unpriced: 0,
    },
    unaccounted: [],
    contextTokens: 0,
    slices: { usd: settings.limits.usd, tokens: settings.limits.tokens },
    emptyReplies: 0,
    mayCompact: 'yes',
    notes: [],
    turn: {
      turnId: '',
      rounds: 0,
      truncations: 0,
      streaks: noStreaks,
      finishing: 'no',
      startedAt: 0,
      timeLimit: null,
      warned: [],
    },
    counters: { request: 0, batch: 0, timer: 0, hook: 0, compaction: 0, input: 0, turn: 0 },
    epoch: 0,
  },
});
