/**
 * What the provider truly charges in an exploration, and what the runtime says of it: the truth, a
 * part of it, nothing that can be counted, or nothing at all; late, and twice.
 *
 * All amounts are whole dollars, so that there are few of them: 1 for the input of a request, 1 for
 * its reply. A request is charged when it leaves, whatever becomes of its reply. At every moment
 * what was charged has to be spent or set aside (reserved). Both together stay below the limit
 * (rules.md#reserve-before-request), so no session is charged more than its limit.
 *
 * From top to bottom: amounts; responses to work in flight, and late reports; the charges after a
 * step, and the rules that it breaks; and their part of the key of a node (state-key.ts).
 */

import type { Action } from '@pawl/agent/machine/action';
import type { Event, ModelError } from '@pawl/agent/machine/event';
import { isRunning } from '@pawl/agent/machine/moves/batch-calls';
import { getAllowance, isSpendingId, spendingId } from '@pawl/agent/machine/moves/request';
import { isSpending, spendingIds } from '@pawl/agent/machine/moves/tool-batch';
import type { Limits, Usage } from '@pawl/agent/machine/settings';
import {
  findReservation,
  type In,
  measuredId,
  type SessionData,
  type State,
} from '@pawl/agent/machine/state';
import type { Step } from '@pawl/machine/kernel/table';
import { brokenRule, usageIn } from '../invariants.js';
import {
  type Charge,
  type ChargeShare,
  type Charges,
  type ExplorationContext,
  type ExplorationEvent,
  type ExplorationNode,
  fate,
  world,
} from './exploration-node.js';

/** `open`: charged, and not reported so far. */
export const noCharges: Charges = { open: [], reported: null };

/** What the provider may charge: nothing, or all of the worst case. */
const chargeShares: readonly ChargeShare[] = ['nothing', 'all'];

/** Tokens that a provider adds by itself to a request. */
const HIDDEN_TOKENS = 1_000;
/** The size of each request. A byte is at most a token: with the hidden ones it costs a dollar. */
const BYTES = 24;
/** As many tokens as a dollar buys. */
const DOLLAR_TOKENS = 1_024;
/** Dollars for a million tokens. */
const PRICE = 1e6 / DOLLAR_TOKENS;
const INPUT_USD = ((HIDDEN_TOKENS + BYTES) * PRICE) / 1e6;

/**
 * Pays for one request with the longest reply; a little more, so that rounding cuts no reply. The
 * user may raise it, so that a second one leaves beside it, and take that back.
 */
export const chargedLimit = 2.0005;
const raisedLimit = 4.0005;

export const otherLimit = ({ usd }: Limits): number =>
  usd === chargedLimit ? raisedLimit : chargedLimit;

const createUsage = (costUsd: number | null): Usage => ({
  inputTokens: HIDDEN_TOKENS + BYTES,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd,
});

const findOpen = ({ charges }: ExplorationNode, id: string): Charge | undefined =>
  charges.open.find((one) => one.id === id);

/**
 * The runtime measures the request that the state wants to send. With this event the machine lets
 * it go, if the limit allows it; then nothing or all of its worst case is charged.
 */
const measure = ({ state, now: at }: ExplorationNode): readonly ExplorationEvent[] => {
  // The id of the request, summary or hook that the state waits for; null: for none.
  const usageId = measuredId(state);
  if (usageId === null) return [];
  const event: Event = {
    type: 'RequestMeasured',
    at,
    usageId,
    model: 'scripted/model',
    bytes: BYTES,
    images: 0,
    outputTokensMax: DOLLAR_TOKENS,
    prices: { input: PRICE, output: PRICE, cacheRead: 0, cacheWrite: 0 },
  };
  return chargeShares.map((charge) => ({ ...world(event), charge }));
};

/** The connection broke: nobody knows what was charged. */
const broken: ModelError = {
  kind: 'unreachable',
  message: 'broken',
  retryable: true,
  retryAfterMs: null,
};
/** The provider refused the request: nothing was charged. */
const refused: ModelError = { ...broken, kind: 'overloaded', message: 'busy' };

/** A request is measured, then answered by a reply, or by a failure that fits its cost. */
const requestResponses = (
  { requestId }: In<'CallingLlm'>,
  node: ExplorationNode,
  { replies }: ExplorationContext,
): readonly ExplorationEvent[] => {
  const charge = findOpen(node, requestId);
  if (charge === undefined) return measure(node);
  const at = node.now;
  const fails = (error: ModelError, usage: Usage | null): ExplorationEvent =>
    world({ type: 'LlmFailed', at, requestId, error, usage, jitter: 0 });
  // `costly` bounds the replies of explorations without charges: here the limit does.
  const answers = replies.flatMap(({ costly: _, ...reply }) =>
    // What the reply asks for does not depend on what is known of its cost.
    (reply.calls.length > 0 ? [charge.usd] : [charge.usd, null]).map((costUsd) =>
      world({ type: 'LlmCompleted', at, requestId, ...reply, usage: createUsage(costUsd) }),
    ),
  );
  return [
    ...answers,
    ...(charge.usd === 0 ? [fails(refused, null)] : []),
    fails(broken, null),
    // The reply had begun, so the cost of the input is known.
    ...(charge.usd === 0 ? [] : [fails(broken, createUsage(charge.inputUsd))]),
  ];
};

const compactionResponses = (
  { compactionId }: In<'Compacting'>,
  node: ExplorationNode,
): readonly ExplorationEvent[] => {
  const charge = findOpen(node, compactionId);
  const at = node.now;
  const fails = (usage: Usage | null): ExplorationEvent =>
    world({ type: 'CompactionFailed', at, compactionId, message: 'no summary', usage });
  if (charge === undefined) return [...measure(node), fails(null)];
  const answers = [charge.usd, null].map((costUsd) =>
    world({
      type: 'CompactionCompleted',
      at,
      compactionId,
      summary: 'so far',
      usage: createUsage(costUsd),
    }),
  );
  const part = charge.usd === 0 ? [] : [fails(createUsage(charge.inputUsd))];
  return [...answers, fails(null), ...part];
};

/** A hook may ask the model for texts, or do without. */
const hookResponses = (
  { hookId }: In<'PostToolsHook'>,
  node: ExplorationNode,
): readonly ExplorationEvent[] => {
  const charge = findOpen(node, hookId);
  const at = node.now;
  const reports = charge === undefined ? [null] : [createUsage(charge.usd), createUsage(null)];
  const completed = reports.map((usage) =>
    world({
      type: 'HookCompleted',
      at,
      hookId,
      commits: [],
      changedFiles: [],
      dirty: false,
      note: '',
      warning: '',
      proceed: true,
      usage,
    }),
  );
  const failed = world({ type: 'HookFailed', at, hookId, message: 'broken' });
  return [...measure(node), ...completed, failed];
};

/** A call that spends is charged when it starts, and says what it cost when it ends. */
const callResponses = (
  state: In<'ExecutingTools'>,
  node: ExplorationNode,
): readonly ExplorationEvent[] => {
  const { batchId } = state;
  const at = node.now;
  return state.calls.filter(isRunning).flatMap((call): readonly ExplorationEvent[] => {
    const { callId } = call.judged;
    const about = { at, batchId, callId };
    const spends = isSpending(call.judged);
    if (call.status === 'starting') {
      const starts = world({ type: 'ToolStarted', ...about });
      return spends ? chargeShares.map((charge) => ({ ...starts, charge })) : [starts];
    }
    const charge = findOpen(node, spendingId(batchId, callId));
    const usage = charge === undefined ? {} : { usage: createUsage(charge.usd) };
    const ends = { type: 'ToolCompleted', ...about } as const;
    return [
      world({ ...ends, outcome: { status: 'ok', text: 'done', ...usage } }),
      // Given up without a word about its cost, which may come late.
      ...(spends ? [world({ ...ends, outcome: { status: 'timedOut', text: '' } })] : []),
      ...(call.graceTimerId === null
        ? []
        : [world({ type: 'TimerFired', at, timerId: call.graceTimerId })]),
    ];
  });
};

/** Responses to all work in flight; null for states whose work costs nothing. */
export const chargedResponses = (
  node: ExplorationNode,
  context: ExplorationContext,
): readonly ExplorationEvent[] | null => {
  const { state } = node;
  switch (state.name) {
    case 'CallingLlm':
      return requestResponses(state, node, context);
    case 'Compacting':
      return compactionResponses(state, node);
    case 'PostToolsHook':
      return hookResponses(state, node);
    case 'ExecutingTools':
      return [...callResponses(state, node), ...graceTimer(state, node.now)];
    default:
      return null;
  }
};

const graceTimer = ({ phase }: In<'ExecutingTools'>, at: number): readonly ExplorationEvent[] =>
  phase.mode === 'cancelling' && phase.graceTimerId !== null
    ? [world({ type: 'TimerFired', at, timerId: phase.graceTimerId })]
    : [];

/** The ids of the work that is going on. */
const currentIds = (state: State): readonly string[] => {
  const id = measuredId(state);
  return id === null ? spendingIds(state) : [id];
};

/** A call that was given up says late what it cost. */
const createLateEnd = ({ id, usd }: Charge, at: number): ExplorationEvent => {
  const [batchId = '', callId = ''] = id.split('/');
  const outcome = { status: 'ok', text: 'late', usage: createUsage(usd) } as const;
  return fate({ type: 'ToolCompleted', at, batchId, callId, outcome });
};

/** Usage of work that is over: all of it, a part, one that can't be counted; and once more. */
export const chargeReports = (node: ExplorationNode): readonly ExplorationEvent[] => {
  const { state, charges, now: at } = node;
  const current = currentIds(state);
  const report = (usageId: string, usd: number | null): ExplorationEvent =>
    fate({ type: 'UsageReported', at, usageId, usage: createUsage(usd) });
  const { reported } = charges;
  const ended = charges.open.filter(({ id }) => !current.includes(id));
  const isOver =
    reported !== null && ![...current, ...charges.open.map(({ id }) => id)].includes(reported.id);
  return [
    ...ended.flatMap(({ id, usd, inputUsd }) => [
      report(id, usd),
      ...(usd === 0 ? [] : [report(id, inputUsd)]),
      report(id, null),
    ]),
    ...ended.filter(({ id }) => isSpendingId(id)).map((charge) => createLateEnd(charge, at)),
    ...(isOver ? [report(reported.id, reported.usd)] : []),
  ];
};

// ---- The charges after a step ----

type TakenStep = Step<State, Action>;

/** The worst case of what leaves in a step: the request, or all that a call may spend. */
const worstCase = (
  before: State,
  { event }: ExplorationEvent,
  { state, diagnostics }: TakenStep,
): { readonly id: string; readonly usd: number; readonly inputUsd: number } | null => {
  if (diagnostics.length > 0) return null;
  if (event.type === 'ToolStarted') {
    const id = spendingId(event.batchId, event.callId);
    // All that the call may spend: what is set aside for it, else what the limit leaves.
    const { usd } = getAllowance(before.session, id);
    return usd.type === 'left' ? { id, usd: usd.amount, inputUsd: 0 } : null;
  }
  if (event.type !== 'RequestMeasured' || measuredId(state) !== event.usageId) return null;
  // What the machine has set aside. A request that the limit refuses has no reservation, and is
  // not sent, so it costs nothing.
  const held = findReservation(state.session, event.usageId);
  if (held === undefined) return null;
  const outputUsd = (held.outputTokens * PRICE) / 1e6;
  return { id: event.usageId, usd: INPUT_USD + outputUsd, inputUsd: INPUT_USD };
};

/** The charges with the one of a request or call that leaves now. A hook may ask more than once. */
const addCharge = (
  charges: Charges,
  label: ExplorationEvent,
  worst: NonNullable<ReturnType<typeof worstCase>>,
): Charges => {
  const { id, inputUsd } = worst;
  const isFree = label.charge === 'nothing';
  const usd = isFree ? 0 : worst.usd;
  const known = isFree ? 0 : inputUsd;
  const before = charges.open.find((one) => one.id === id) ?? { id, usd: 0, inputUsd: 0 };
  const charge = { id, usd: before.usd + usd, inputUsd: before.inputUsd + known };
  const open = [...charges.open.filter((one) => one.id !== id), charge];
  return { ...charges, open };
};

/** Whether a request or call that cost nothing has ended without a report, and needs none. */
const isFreeEnd = (event: Event, { usd }: Charge): boolean =>
  usd === 0 &&
  ((event.type === 'LlmFailed' && event.error.kind === 'overloaded') ||
    (event.type === 'ToolCompleted' && event.outcome.status === 'ok'));

/** The charges without the one that the event reports, or that nobody can report any more. */
const removeReported = (
  charges: Charges,
  event: Event,
  { state, diagnostics }: TakenStep,
): Charges => {
  if (event.type === 'Resumed' && diagnostics.length === 0) {
    // What was in flight is never reported; a call that goes on is found again.
    const current = spendingIds(state);
    const open = charges.open.filter(({ id }) => isSpendingId(id) && current.includes(id));
    return { ...charges, open, reported: null };
  }
  const report = usageIn(event);
  const charge = charges.open.find(({ id }) => id === report?.id);
  if (charge === undefined || (report?.usage === null && !isFreeEnd(event, charge))) return charges;
  const open = charges.open.filter((one) => one !== charge);
  return { ...charges, open, reported: report?.usage === null ? charges.reported : charge };
};

/** The charges after a step, and the rules that it breaks. `label`: the event of the step. */
export const chargeFor = (
  { state: before, charges }: ExplorationNode,
  label: ExplorationEvent,
  taken: TakenStep,
): { readonly charges: Charges; readonly faults: readonly string[] } => {
  const { event } = label;
  const worst = label.charge === undefined ? null : worstCase(before, label, taken);
  const after =
    worst === null ? removeReported(charges, event, taken) : addCharge(charges, label, worst);
  const faults = [
    ...uncovered(after, taken.state.session),
    ...uncounted(charges, after, before.session, taken.state.session),
    ...countedTwice(charges, event, before.session, taken.state.session),
  ];
  return { charges: after, faults };
};

/** Sums of prices are not exact. */
const isMore = (one: number, other: number): boolean => one > other + 1e-6;

/** What is charged and not reported is set aside, id by id. */
const uncovered = ({ open }: Charges, session: SessionData): readonly string[] =>
  open.flatMap(({ id, usd }) => {
    const held = findReservation(session, id)?.usd ?? 0;
    return isMore(usd, held)
      ? [
          brokenRule(
            'reserve-before-request',
            `${id} was charged $${usd}, and $${held} are set aside`,
          ),
        ]
      : [];
  });

/** What is reported, or can't be reported any more, counts as spent: no less than was charged. */
const uncounted = (
  { open }: Charges,
  { open: remaining }: Charges,
  before: SessionData,
  after: SessionData,
): readonly string[] => {
  const over = open.filter(({ id }) => !remaining.some((one) => one.id === id));
  const usd = over.reduce((sum, one) => sum + one.usd, 0);
  const counted = after.usage.costUsd - before.usage.costUsd;
  return isMore(usd, counted)
    ? [
        brokenRule(
          'reserve-before-request',
          `$${usd} was charged, and $${counted} counted as spent`,
        ),
      ]
    : [];
};

/** A report that was counted already counts no second time. */
const countedTwice = (
  { open }: Charges,
  event: Event,
  before: SessionData,
  after: SessionData,
): readonly string[] => {
  const report = usageIn(event);
  if (report === null || open.some(({ id }) => id === report.id)) return [];
  return after.usage.costUsd === before.usage.costUsd
    ? []
    : [brokenRule('usage-counts-once', `the usage of ${report.id} counted again`)];
};

// ---- The key ----

/**
 * What is set aside and charged, by the work that it is for: it decides what may still leave. The
 * last report is not part of it: whether it counts twice is looked for behind the first way to a
 * node.
 */
export const chargesKey = ({ state, charges }: ExplorationNode): string => {
  const { session } = state;
  const { reserved, unaccounted } = session;
  const current = currentIds(state);
  const ids = new Set([...reserved, ...charges.open].map(({ id }) => id));
  const rows = [...ids].map((id) => {
    const held = findReservation(session, id);
    const charge = charges.open.find((one) => one.id === id);
    // Current, of a call that spends, or of other work that is over.
    const kind = current.includes(id) ? 'c' : isSpendingId(id) ? 's' : 'o';
    // The machine still waits for its usage.
    const due = unaccounted.includes(id) ? '?' : '';
    return `${kind}${due}${held?.usd}/${held?.outputUsd}=${charge?.usd}/${charge?.inputUsd}`;
  });
  return `|${rows.sort().join()}`;
};
