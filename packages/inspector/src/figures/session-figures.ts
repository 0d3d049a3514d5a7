/**
 * Where the time and the money of a session went: the types, which collect-figures.ts fills. All
 * times are in milliseconds on the session's axis, which begins with its first event
 * (`SessionClock`).
 *
 * From top to bottom: `SessionFigures` and its parts; the figures of a later part of a session;
 * what goes on in a state; and `SessionClock`.
 */

import type { RequestPurpose } from '@pawl/agent/machine/action';
import { type Usage, type UsageTotals, usageSince } from '@pawl/agent/machine/settings';
import type { State, StateName } from '@pawl/agent/machine/state';
import { callTitle } from '@pawl/agent/policy/judged-call';

/**
 * What the time of a session goes to, with the words for it. `waiting`: for the first piece of a
 * reply; `streaming`: from there to its end; `request`: both, in journals that don't say when the
 * first piece came. `between`: no process had the session open. `other`: what no span explains.
 */
export const SPAN_WORDS = {
  waiting: 'waiting for the model',
  streaming: 'reply streaming',
  request: 'model',
  retry: 'wait before a retry',
  compaction: 'summary',
  approval: 'waiting for your approval',
  tool: 'tools',
  hook: 'hooks',
  idle: 'waiting for you',
  between: 'no process',
  other: 'other',
} as const;

export type TimeSpanKind = Exclude<keyof typeof SPAN_WORDS, 'other'>;

/**
 * One bar of the waterfall. Work that a crash interrupted has a span before it and one after it,
 * with the same id.
 */
export type TimeSpan = {
  readonly kind: TimeSpanKind;
  /** The id of the request, timer, compaction, call (`batch/call`) or hook; may be empty. */
  readonly id: string;
  /** The model, the kind of the error, the tool or the phase of the hook. */
  readonly name: string;
  /** One line for people; may be empty. */
  readonly about: string;
  readonly startMs: number;
  readonly endMs: number;
  /** The journal lines of the events that began and ended it. `endSeq` is null while it is open. */
  readonly startSeq: number;
  readonly endSeq: number | null;
  /** `interrupted`: the process ended first. `open`: it continues after the last event. */
  readonly ending: 'done' | 'interrupted' | 'open';
};

/** A span in a few words, without its kind. */
export const spanText = ({ name, about }: Pick<TimeSpan, 'name' | 'about'>): string =>
  about === '' ? name : `${name} ${about}`;

/** One call of the model. */
export type RequestFigures = {
  readonly id: string;
  readonly purpose: RequestPurpose | 'compaction';
  readonly model: string;
  /** From 1; a retry is a separate request. */
  readonly attempt: number;
  /** The journal line after which it was sent, and that of its end; null while it is open. */
  readonly seq: number;
  readonly endSeq: number | null;
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number;
  readonly startMs: number;
  /** null if it is not known when the first piece came, or none came. */
  readonly firstPieceMs: number | null;
  readonly endMs: number;
  /**
   * `stopped`: by the user, a limit or a policy. More than one `sent`: again after a crash, under
   * the same id.
   */
  readonly ending: 'completed' | 'failed' | 'stopped' | 'open';
  readonly sent: number;
  /** The reason for which the model stopped, or the failure; may be empty. */
  readonly why: string;
  /** null if nothing was counted. Its `costUsd` is null if the price is unknown. */
  readonly usage: Usage | null;
};

/** All calls of one tool. */
export type ToolFigures = {
  readonly tool: string;
  readonly calls: number;
  /** Number of calls by ending: `ok`, `failed`, `denied`, … */
  readonly endings: Readonly<Record<string, number>>;
  /** Sum and longest, without the time between processes. Calls that run side by side are added. */
  readonly totalMs: number;
  readonly longestMs: number;
  /** Waiting for the user's approval. */
  readonly approvalMs: number;
  /** The model usage of the calls. */
  readonly usage: UsageTotals;
};

/**
 * `entered` counts arrows into the state. Transient states, which are left at once, take no time.
 */
export type StateFigures = {
  readonly state: string;
  readonly entered: number;
  readonly totalMs: number;
};

/**
 * A time in which no process had the session open. `crashed`: the process before it did not close
 * the session. `forked`: it ends the part that was copied from the parent.
 */
export type ProcessGap = {
  readonly cause: 'closed' | 'crashed' | 'forked';
  /** The line of the first event after it. */
  readonly seq: number;
  readonly startMs: number;
  readonly endMs: number;
  /** The state of the machine, and its work in progress. */
  readonly state: StateName;
  readonly doing: readonly string[];
};

/** Usage that a call of a tool has reported: that of its model calls. */
export type CallSpending = {
  readonly batchId: string;
  readonly callId: string;
  readonly tool: string;
  /** When it was reported, in milliseconds since 1970. */
  readonly at: number;
  readonly usage: Usage;
};

export type SessionFigures = {
  /** The time of the first event, in milliseconds since 1970, and the length of the axis. */
  readonly startedAt: number;
  readonly elapsedMs: number;
  /** How often the clock was set back between two events. */
  readonly clockSetBack: number;
  /** The line of the last event, and the state after it. */
  readonly seq: number;
  readonly state: StateName;
  readonly turns: number;
  /** By start. */
  readonly spans: readonly TimeSpan[];
  /**
   * The whole axis divided, each moment counted once: a running tool before a question to the user.
   * `other`: moments between the works of a batch, and the time of rewinds.
   */
  readonly time: Readonly<Record<TimeSpanKind | 'other', number>>;
  readonly requests: readonly RequestFigures[];
  /** By time, the longest first. */
  readonly tools: readonly ToolFigures[];
  readonly states: readonly StateFigures[];
  readonly gaps: readonly ProcessGap[];
  /** The sums that the session itself keeps, and limits are compared with. */
  readonly usage: UsageTotals;
  /** The part of them that calls of tools have spent, and that hooks have. */
  readonly spending: readonly CallSpending[];
  readonly hookUsage: UsageTotals;
};

/** The time of turns and rewinds: neither waiting for a prompt nor without a process. */
export const getTurnMs = ({ elapsedMs, time }: SessionFigures): number =>
  elapsedMs - time.idle - time.between;

/** The part of it in which the session did not wait for the user's approval alone. */
export const getWorkMs = (figures: SessionFigures): number =>
  getTurnMs(figures) - figures.time.approval;

type PromptUsage = Pick<Usage, 'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens'>;

/** All tokens of a prompt, from the cache or not. */
export const promptTokens = (usage: PromptUsage): number =>
  usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** Share of a prompt's tokens that came from the provider's cache, 0 to 1; null for no tokens. */
export const getCacheShare = (usage: PromptUsage): number | null => {
  const all = promptTokens(usage);
  return all === 0 ? null : usage.cacheReadTokens / all;
};

// ---- The figures of a later part ----

/** The figures of a session after a part of it: of a fork only its work, without copied entries. */
export type LaterFigures = Pick<
  SessionFigures,
  'usage' | 'hookUsage' | 'requests' | 'spending' | 'turns' | 'state' | 'seq'
> & {
  /** Time in which it worked, see `getWorkMs`. */
  readonly activeMs: number;
  readonly events: number;
  readonly tools: readonly Pick<ToolFigures, 'tool' | 'calls' | 'totalMs' | 'endings'>[];
};

const toolsSince = (before: SessionFigures, after: SessionFigures): LaterFigures['tools'] => {
  const known = new Map(before.tools.map((one) => [one.tool, one]));
  return after.tools.flatMap(({ tool, calls, totalMs, endings }) => {
    const earlier = known.get(tool);
    if (earlier === undefined) return [{ tool, calls, totalMs, endings }];
    if (calls === earlier.calls && totalMs === earlier.totalMs) return [];
    const remaining = Object.entries(endings).map(([status, count]) => [
      status,
      count - (earlier.endings[status] ?? 0),
    ]);
    return [
      {
        tool,
        calls: calls - earlier.calls,
        totalMs: totalMs - earlier.totalMs,
        endings: Object.fromEntries(remaining),
      },
    ];
  });
};

/**
 * The figures of a session without those of its first part. A request that ended later belongs to
 * the later part.
 */
export const figuresSince = (before: SessionFigures, after: SessionFigures): LaterFigures => ({
  usage: usageSince(before.usage, after.usage),
  hookUsage: usageSince(before.hookUsage, after.hookUsage),
  seq: after.seq,
  requests: after.requests.filter(({ endSeq }) => endSeq === null || endSeq > before.seq),
  spending: after.spending.slice(before.spending.length),
  turns: after.turns - before.turns,
  state: after.state,
  activeMs: getWorkMs(after) - getWorkMs(before),
  events: after.seq - before.seq,
  tools: toolsSince(before, after),
});

// ---- What goes on in a state ----

/** Activities in a state. Several of `tool` and `approval` can run at a time, others run alone. */
export type ActivityKind =
  | 'request'
  | 'retry'
  | 'compaction'
  | 'approval'
  | 'tool'
  | 'hook'
  | 'idle';

/**
 * `id` is that of the request, timer, compaction, call (`batch/call`) or hook; empty for `idle`.
 */
export type Activity = {
  readonly kind: ActivityKind;
  readonly id: string;
  /** The model, the kind of the error, the tool or the phase of the hook. */
  readonly name: string;
  /** One line for people; may be empty. */
  readonly about: string;
};

const IDLE: Activity = { kind: 'idle', id: '', name: 'user', about: '' };

const activityOfStatus = (status: string): 'approval' | 'tool' | null => {
  if (status === 'previewing' || status === 'awaitingApproval') return 'approval';
  return status === 'starting' || status === 'running' ? 'tool' : null;
};

/**
 * The activities of a state; none in a closed session, in a rewind, and in states that are left at
 * once.
 */
export const findActivities = (state: State): readonly Activity[] => {
  const { settings } = state.session;
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return [IDLE];
    case 'CallingLlm':
      return [{ kind: 'request', id: state.requestId, name: settings.model, about: '' }];
    case 'Error':
      return [
        { kind: 'retry', id: state.timerId, name: state.error.kind, about: state.error.message },
      ];
    case 'Compacting':
      return [{ kind: 'compaction', id: state.compactionId, name: settings.model, about: '' }];
    case 'ExecutingTools':
      return state.calls.flatMap(({ judged, status }) => {
        const kind = activityOfStatus(status);
        if (kind === null) return [];
        const about = callTitle(judged, settings.workspace);
        return [{ kind, id: `${state.batchId}/${judged.callId}`, name: judged.tool, about }];
      });
    case 'PostToolsHook':
      return [{ kind: 'hook', id: state.hookId, name: state.phase, about: '' }];
    default:
      return [];
  }
};

/**
 * Time on a session's axis: milliseconds since its first event. A clock that was set back takes
 * nothing away: the time until the next event then counts as none.
 */
export class SessionClock {
  #last: number | null = null;
  #elapsed = 0;
  #setBack = 0;

  /** Advances to the time of an event. Returns the milliseconds since the previous event. */
  advance(at: number): number {
    const since = at - (this.#last ?? at);
    if (since < 0) this.#setBack += 1;
    const passed = Math.max(0, since);
    this.#last = at;
    this.#elapsed += passed;
    return passed;
  }

  /** The milliseconds from the last event to `at`, at least 0. */
  since(at: number): number {
    return Math.max(0, at - (this.#last ?? at));
  }

  get elapsed(): number {
    return this.#elapsed;
  }

  /** How often the clock was set back. */
  get setBack(): number {
    return this.#setBack;
  }
}
