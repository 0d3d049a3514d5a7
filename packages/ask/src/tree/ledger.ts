/**
 * The ledger: spent, reserved and remaining amounts, in a tree of accounts, one for each unfinished
 * run.
 *
 * 1. The cost of a call is added once to the accounts of its run and all ancestors, when it becomes
 *    known: also if the call failed or was aborted, or its run has ended. Spent amounts never
 *    decrease.
 * 2. While a call is open, its worst-case cost is reserved in the same accounts. A call whose
 *    reserve does not fit waits until another one ends. A call may start alone even if its worst
 *    case does not fit: it then has what is left as its cap, and its reply may only be as long as
 *    the cap pays for. So a run never spends above its limit in dollars. Runs of older journals
 *    have no caps, and limits in tokens are not capped: the replies of open calls may cross them.
 * 3. If costs are estimates, actual costs of earlier calls of the same kind count, too: the mean
 *    for the usual cost, the maximum for the worst case. The first call of a kind then starts
 *    alone. Sub-calls leave each ancestor the usual cost of its next call, so that it can still
 *    answer.
 * 4. What nobody can account for of a call with a cap counts as spent. Without a cap, a call of
 *    unknown price counts as unpriced; a limit in dollars then refuses every further call.
 * 5. A call that was open when the process died has an unknown cost. It is counted, and its cap (or
 *    else its expected cost) is no longer available to later calls.
 *
 * From top to bottom: the types; remaining amounts (the purse of a run); accounts of runs; calls:
 * whether they may start, their start and their end; and ids of runs. The lineage of a run is
 * itself and its ancestors.
 */

import { addUsage } from '@pawl/agent/machine/moves/request';
import {
  nothingSpent,
  noUsage,
  totalTokens,
  type Usage,
  type UsageTotals,
} from '@pawl/agent/machine/settings';
import type { Reserve, RunLimits } from '../run/settings.js';
import type { Purse } from '../run/state.js';
import { type Amount, isShort, type Short } from '../run/stop-policies.js';

type Limits = Pick<RunLimits, 'usd' | 'tokens'>;

type Account = {
  readonly spent: UsageTotals;
  readonly calls: number;
  /** Calls that a crash interrupted, and their expected cost. */
  readonly unknown: Amount & { readonly calls: number };
  /** Amount reserved for the open calls of this run and its descendants. */
  readonly held: Amount;
  /** Number of these open calls. */
  readonly open: number;
  readonly limits: Limits;
};

type OpenCall = {
  readonly node: string;
  /** Calls of the same model for the same purpose. They cost about the same. */
  readonly kind: string;
  readonly held: Amount;
  readonly expected: Amount;
  /** The most that it may cost; absent without a limit in dollars, and in older journals. */
  readonly capUsd?: number;
};

export type Ledger = {
  readonly accounts: Readonly<Record<string, Account>>;
  /** Calls without their final event, by request id. */
  readonly open: Readonly<Record<string, OpenCall>>;
  /** Costs of finished calls, by kind. */
  readonly kinds: Readonly<Record<string, Costs>>;
};

type Costs = { readonly calls: number; readonly total: Amount; readonly dearest: Amount };

export const emptyLedger: Ledger = { accounts: {}, open: {}, kinds: {} };

const add = (one: Amount, other: Amount, sign: 1 | -1): Amount => ({
  usd: one.usd + sign * other.usd,
  tokens: one.tokens + sign * other.tokens,
});

const larger = (one: Amount, other: Amount): Amount => ({
  usd: Math.max(one.usd, other.usd),
  tokens: Math.max(one.tokens, other.tokens),
});

/** Changes the accounts of a run and its ancestors; closed accounts are skipped. */
const updateAccounts = (
  ledger: Ledger,
  node: string,
  change: (account: Account) => Account,
): Ledger => {
  const accounts = { ...ledger.accounts };
  for (const id of getLineage(node)) {
    const account = accounts[id];
    if (account !== undefined) accounts[id] = change(account);
  }
  return { ...ledger, accounts };
};

/** Sums of prices are not exact: this share of a limit stays free. */
const ROUNDING = 1e-9;

// ---- Remaining amounts ----

const DIMENSIONS = ['usd', 'tokens'] as const;

/** The remaining amount of an account, without subtracting reserves; null without a limit. */
const getRemaining = (
  { limits, spent, unknown }: Account,
  dimension: 'usd' | 'tokens',
): number | null => {
  const limit = limits[dimension];
  if (limit === 'unlimited') return null;
  const used = dimension === 'usd' ? spent.costUsd : totalTokens(spent);
  return limit - used - unknown[dimension];
};

const least = (one: number | null, other: number | null): number | null => {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
};

/**
 * The remaining budget of a run, without subtracting reserves: the minimum over the run and its
 * ancestors.
 */
export const getPurse = (ledger: Ledger, node: string): Purse => {
  let remaining: Purse['left'] = { usd: null, tokens: null };
  let unpriced = 0;
  for (const id of getLineage(node)) {
    const account = ledger.accounts[id];
    if (account === undefined) continue;
    // A limit in dollars can't be checked once a price is unknown. Without such a limit, unknown
    // prices don't matter.
    if (account.limits.usd !== 'unlimited') unpriced = Math.max(unpriced, account.spent.unpriced);
    remaining = {
      usd: least(remaining.usd, getRemaining(account, 'usd')),
      tokens: least(remaining.tokens, getRemaining(account, 'tokens')),
    };
  }
  return { left: remaining, unpriced };
};

// ---- Runs ----

export const openAccount = (ledger: Ledger, node: string, limits: Limits): Ledger => {
  const account: Account = {
    spent: nothingSpent,
    calls: 0,
    unknown: { usd: 0, tokens: 0, calls: 0 },
    held: { usd: 0, tokens: 0 },
    open: 0,
    limits: { usd: limits.usd, tokens: limits.tokens },
  };
  return { ...ledger, accounts: { ...ledger.accounts, [node]: account } };
};

/** Changes the limits of a run. */
export const limitAccount = (ledger: Ledger, node: string, { usd, tokens }: Limits): Ledger => {
  const account = ledger.accounts[node];
  return account === undefined
    ? ledger
    : {
        ...ledger,
        accounts: { ...ledger.accounts, [node]: { ...account, limits: { usd, tokens } } },
      };
};

/**
 * Removes the account of an ended run. Its spent and reserved amounts stay in the accounts of its
 * ancestors.
 */
export const closeAccount = (ledger: Ledger, node: string): Ledger => {
  const { [node]: gone, ...accounts } = ledger.accounts;
  return { ...ledger, accounts };
};

// ---- Calls ----

/** A call that wants to start: its run, its kind, its usual and its worst-case cost. */
export type PlannedCall = {
  readonly node: string;
  readonly kind: string;
  readonly expected: Amount;
  readonly worst: Amount;
  readonly basis: Reserve['basis'];
  /**
   * What its input costs at most, with the shortest reply: below that it is not sent. null: the
   * call has no cap.
   */
  readonly leastUsd: number | null;
  /**
   * Usual cost of the next call of each ancestor, from the parent up: what the call must leave
   * them.
   */
  readonly ancestors: readonly Amount[];
};

/**
 * Whether a call may start now, must wait until an account has fewer open calls, or can never be
 * paid.
 */
type Permission =
  | { readonly kind: 'start' }
  | { readonly kind: 'wait'; readonly accounts: readonly string[] }
  | { readonly kind: 'refuse'; readonly short: Short };

export const hasMoneyLimit = (ledger: Ledger, node: string): boolean =>
  getLineage(node).some((id) => {
    const account = ledger.accounts[id];
    return account !== undefined && account.limits.usd !== 'unlimited';
  });

/** The usual cost of a call of this kind. */
export const usualCost = (
  ledger: Ledger,
  { kind, expected, basis }: Pick<PlannedCall, 'kind' | 'expected' | 'basis'>,
): Amount => {
  const costs = ledger.kinds[kind];
  if (costs === undefined || basis === 'stated') return expected;
  const mean = { usd: costs.total.usd / costs.calls, tokens: costs.total.tokens / costs.calls };
  return larger(expected, mean);
};

/**
 * The worst-case cost as far as it is known; null if only a finished call of this kind can show it.
 */
const estimateWorst = (ledger: Ledger, { kind, worst, basis }: PlannedCall): Amount | null => {
  const costs = ledger.kinds[kind];
  if (costs === undefined) return basis === 'estimated' ? null : worst;
  return larger(worst, costs.dearest);
};

/** The amount that sub-calls must leave to the runs at or below each account of the lineage. */
const reserveForAncestors = ({ ancestors }: PlannedCall, index: number): Amount =>
  ancestors.slice(0, index).reduce((sum, one) => add(sum, one, 1), { usd: 0, tokens: 0 });

/**
 * The dimension in which an account can't pay an amount after all open calls have ended; null if it
 * can pay.
 */
const shortageIn = (account: Account, needed: Amount): Short | null => {
  const [usd, tokens] = [getRemaining(account, 'usd'), getRemaining(account, 'tokens')];
  if (usd !== null && account.spent.unpriced > 0) return 'unpriced';
  if (isShort(usd, needed.usd)) return 'usd';
  return isShort(tokens, needed.tokens) ? 'tokens' : null;
};

/**
 * Whether the worst case fits beside what open calls and ancestors need. An unknown one (null)
 * fits only where there is no limit.
 */
const fitsBeside = (account: Account, worst: Amount | null, reserved: Amount): boolean =>
  DIMENSIONS.every((dimension) => {
    const remaining = getRemaining(account, dimension);
    if (remaining === null) return true;
    const free = remaining - account.held[dimension] - reserved[dimension];
    return worst !== null && !isShort(free, worst[dimension]);
  });

export const atLeast = (amount: Amount, leastUsd: number | null): Amount =>
  leastUsd === null ? amount : { ...amount, usd: Math.max(amount.usd, leastUsd) };

/** Whether all accounts of the lineage can pay for the call now, later, or never. */
export const permissionFor = (ledger: Ledger, call: PlannedCall): Permission => {
  const needed = atLeast(usualCost(ledger, call), call.leastUsd);
  const worst = estimateWorst(ledger, call);
  const full: string[] = [];
  for (const [index, id] of getLineage(call.node).entries()) {
    const account = ledger.accounts[id];
    if (account === undefined) continue;
    const reserved = reserveForAncestors(call, index);
    const short = shortageIn(account, add(needed, reserved, 1));
    if (short !== null) return { kind: 'refuse', short };
    if (account.open > 0 && !fitsBeside(account, worst, reserved)) full.push(id);
  }
  return full.length === 0 ? { kind: 'start' } : { kind: 'wait', accounts: full };
};

/** The dollars that all accounts of the lineage have free for the call. */
const freeUsd = (ledger: Ledger, call: PlannedCall): number => {
  let free = Number.POSITIVE_INFINITY;
  for (const [index, id] of getLineage(call.node).entries()) {
    const account = ledger.accounts[id];
    if (account === undefined || account.limits.usd === 'unlimited') continue;
    const { spent, unknown, held } = account;
    const taken = spent.costUsd + unknown.usd + held.usd + reserveForAncestors(call, index).usd;
    free = Math.min(free, account.limits.usd * (1 - ROUNDING) - taken);
  }
  return Math.max(0, free);
};

/** Opens a call and reserves its worst-case cost, or its cap. */
export const openCall = (ledger: Ledger, requestId: string, call: PlannedCall): Ledger => {
  const { node, kind } = call;
  const expected = usualCost(ledger, call);
  const worst = estimateWorst(ledger, call) ?? call.worst;
  const capUsd = call.leastUsd === null ? null : Math.min(worst.usd, freeUsd(ledger, call));
  const held = capUsd === null ? worst : { ...worst, usd: capUsd };
  const cap = capUsd === null ? {} : { capUsd };
  const holding = updateAccounts(ledger, node, (account) => ({
    ...account,
    held: add(account.held, held, 1),
    open: account.open + 1,
  }));
  return {
    ...holding,
    open: { ...holding.open, [requestId]: { node, kind, held, expected, ...cap } },
  };
};

/** Removes an open call and its reserve. */
const release = (ledger: Ledger, requestId: string, { node, held }: OpenCall): Ledger => {
  const { [requestId]: gone, ...open } = ledger.open;
  const freed = updateAccounts(ledger, node, (account) => ({
    ...account,
    open: account.open - 1,
    // Adding and subtracting cents leaves rounding errors, so the reserve is 0 once no call is
    // open.
    held: account.open === 1 ? { usd: 0, tokens: 0 } : add(account.held, held, -1),
  }));
  return { ...freed, open };
};

const countCost = (before: Costs | undefined, cost: Amount): Costs =>
  before === undefined
    ? { calls: 1, total: cost, dearest: cost }
    : {
        calls: before.calls + 1,
        total: add(before.total, cost, 1),
        dearest: larger(before.dearest, cost),
      };

/** What is known of the cost of a call at its end. */
export type KnownCost = {
  readonly usage: Usage | null;
  /** The most that it cost beyond `usage`, in dollars; infinite if nobody knows. */
  readonly unseenUsd: number;
};

/**
 * The usage as it counts: under a cap, what nobody knows of it counts at its worst case. Without a
 * cap the sum is a lower bound then.
 */
export const settledUsage = (
  { capUsd }: Pick<OpenCall, 'capUsd'>,
  { usage, unseenUsd }: KnownCost,
): Usage | null => {
  if (unseenUsd === 0 && (usage === null || capUsd === undefined)) return usage;
  if (capUsd === undefined) return { ...(usage ?? noUsage), atLeast: true };
  const known = usage ?? noUsage;
  const worstUsd = known.costUsd === null ? capUsd : Math.min(capUsd, known.costUsd + unseenUsd);
  return { ...known, costUsd: Math.max(known.costUsd ?? 0, worstUsd) };
};

/** Ends a call and adds its cost. A second end of the same call is not counted. */
export const closeCall = (ledger: Ledger, requestId: string, end: KnownCost): Ledger => {
  const call = ledger.open[requestId];
  if (call === undefined) return ledger;
  const { usage } = end;
  const settled = settledUsage(call, end);
  const freed = release(ledger, requestId, call);
  const booked = updateAccounts(freed, call.node, (account) => ({
    ...account,
    calls: account.calls + 1,
    spent: settled === null ? account.spent : addUsage(account.spent, settled),
  }));
  if (usage === null) return booked;
  const cost = { usd: usage.costUsd ?? 0, tokens: totalTokens(usage) };
  return {
    ...booked,
    kinds: { ...booked.kinds, [call.kind]: countCost(ledger.kinds[call.kind], cost) },
  };
};

/** What a call of unknown cost takes from later ones: its cap, or else its expected cost. */
const lostCost = ({ expected, capUsd = expected.usd }: OpenCall): Amount => ({
  ...expected,
  usd: capUsd,
});

/** Closes all open calls after a crash. Their usage is lost, so they count as unknown. */
export const forgetCalls = (ledger: Ledger): Ledger => {
  let forgotten: Ledger = ledger;
  for (const [requestId, call] of Object.entries(ledger.open)) {
    forgotten = updateAccounts(release(forgotten, requestId, call), call.node, (account) => ({
      ...account,
      ...(call.capUsd === undefined ? { spent: { ...account.spent, atLeast: true } } : {}),
      unknown: { ...add(account.unknown, lostCost(call), 1), calls: account.unknown.calls + 1 },
    }));
  }
  return forgotten;
};

// ---- Ids of runs ----
//
// The root is `n0`. A child is named by its parent, the cell, the sub-call and the slot, counted
// from 1: `n0.c2.1.3`. An id therefore contains the ids of all ancestors, even of ended runs.

export const ROOT = 'n0';

/** Parts that a child adds to the id of its parent. */
const wordsPerDepth = 3;

/** The parent of a run; null for the root. */
export const getParent = (node: string): string | null => {
  const words = node.split('.');
  return words.length <= wordsPerDepth ? null : words.slice(0, -wordsPerDepth).join('.');
};

/** The run itself, then its ancestors up to the root. */
export const getLineage = (node: string): readonly string[] => {
  const parent = getParent(node);
  return parent === null ? [node] : [node, ...getLineage(parent)];
};
