import { addUsage } from '../agent/moves/account.js';
import type { UsageTotals } from '../agent/state.js';
import type { Usage } from '../agent/usage.js';
import { lineageOf } from './ids.js';
import { type Amount, shortOf } from './policies.js';
import type { Reserve } from './settings.js';
import type { Purse } from './state.js';

/**
 * What is spent, what is set aside, and what is left: a tree of accounts, one for each living run.
 *
 * 1. What a call costs is added to the account of its run and of all ancestors, once, whenever it becomes known: also
 *    if the call failed or was aborted, and if its run is gone. Nothing is ever taken back or overwritten.
 * 2. Before a call starts, what it is expected to cost is set aside in the same accounts, until it has had its last word;
 *    before a batch starts, for each of its prompts. What does not fit into every one of them is refused: calls at the
 *    same time can not overspend together.
 * 3. A call of unknown price counts as unpriced; a limit in dollars then refuses every further call.
 */

type Limits = { readonly usd: number; readonly tokens: number };

export type Account = {
  readonly spent: UsageTotals;
  readonly calls: number;
  /** Set aside by this run and those below it. */
  readonly held: Amount;
  /** The part that is this run's own, for its first call; null once it was made. */
  readonly advance: Amount | null;
  /** 0 is none. */
  readonly limits: Limits;
};

export type Ledger = {
  readonly accounts: Readonly<Record<string, Account>>;
  /** Calls that have not had their last word, by request id. */
  readonly open: Readonly<Record<string, { readonly node: string; readonly held: Amount }>>;
};

const NOTHING: Amount = { usd: 0, tokens: 0 };
export const nothingSpent: UsageTotals = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0,
  unpriced: 0,
};

export const emptyLedger: Ledger = { accounts: {}, open: {} };

const tokensOf = (usage: UsageTotals): number =>
  usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** What a call that sends so many characters is expected to cost. */
export const expectedCost = (reserve: Reserve, characters: number): Amount => ({
  usd: reserve.callUsd + characters * reserve.characterUsd,
  tokens: reserve.callTokens + Math.ceil(characters * reserve.characterTokens),
});

/** Changes the accounts of a run and of its ancestors; those that are gone are passed over. */
const along = (ledger: Ledger, node: string, change: (account: Account) => Account): Ledger => {
  const accounts = { ...ledger.accounts };
  for (const id of lineageOf(node)) {
    const account = accounts[id];
    if (account !== undefined) accounts[id] = change(account);
  }
  return { ...ledger, accounts };
};

/** Sets aside, or gives back with `sign` -1. */
const hold = (ledger: Ledger, node: string, amount: Amount, sign: 1 | -1): Ledger =>
  along(ledger, node, (account) => ({
    ...account,
    held: {
      usd: account.held.usd + sign * amount.usd,
      tokens: account.held.tokens + sign * amount.tokens,
    },
  }));

const leftOf = (limit: number, used: number): number | null => (limit === 0 ? null : limit - used);
const least = (one: number | null, other: number | null): number | null => {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
};

/** What a run may still spend: the least that it and its ancestors have left. Its own advance is its own. */
export const purseOf = (ledger: Ledger, node: string): Purse => {
  const own = ledger.accounts[node]?.advance ?? NOTHING;
  let left: Purse['left'] = { usd: null, tokens: null };
  let unpriced = 0;
  for (const id of lineageOf(node)) {
    const account = ledger.accounts[id];
    if (account === undefined) continue;
    const { limits, spent, held } = account;
    // A limit in dollars is of no use where the dollars are unknown; where there is none, nobody asks.
    if (limits.usd > 0) unpriced = Math.max(unpriced, spent.unpriced);
    left = {
      usd: least(left.usd, leftOf(limits.usd, spent.costUsd + held.usd - own.usd)),
      tokens: least(left.tokens, leftOf(limits.tokens, tokensOf(spent) + held.tokens - own.tokens)),
    };
  }
  return { left, unpriced };
};

// ---- Runs ----

/** The account of a run that begins. What was set aside for its first call is its advance. */
export const openAccount = (ledger: Ledger, node: string, limits: Limits, advance: Amount | null): Ledger => {
  const account: Account = {
    spent: nothingSpent,
    calls: 0,
    held: advance ?? NOTHING,
    advance,
    limits: { usd: limits.usd, tokens: limits.tokens },
  };
  return { ...ledger, accounts: { ...ledger.accounts, [node]: account } };
};

const giveBackAdvance = (ledger: Ledger, node: string): Ledger => {
  const account = ledger.accounts[node];
  if (account === undefined || account.advance === null) return ledger;
  const spent: Ledger = {
    ...ledger,
    accounts: { ...ledger.accounts, [node]: { ...account, advance: null } },
  };
  return hold(spent, node, account.advance, -1);
};

/** A run is gone; what it has spent stays with its ancestors, and so does what its open calls have set aside. */
export const closeAccount = (ledger: Ledger, node: string): Ledger => {
  const given = giveBackAdvance(ledger, node);
  const { [node]: gone, ...accounts } = given.accounts;
  return { ...given, accounts };
};

// ---- Batches ----

/** Sets aside for one more prompt of a run; or what there is too little of. */
export const reserveFor = (
  ledger: Ledger,
  node: string,
  amount: Amount,
):
  | { readonly kind: 'held'; readonly ledger: Ledger }
  | { readonly kind: 'short'; readonly of: 'usd' | 'tokens' | 'unpriced' } => {
  const short = shortOf(amount, purseOf(ledger, node));
  return short === null
    ? { kind: 'held', ledger: hold(ledger, node, amount, 1) }
    : { kind: 'short', of: short };
};

/** Gives back what was set aside for a prompt that no child will be asked. */
export const giveBack = (ledger: Ledger, node: string, amount: Amount): Ledger =>
  hold(ledger, node, amount, -1);

// ---- Calls ----

/** A call starts: its advance, if it is the run's first, makes room for what it is expected to cost. */
export const openCall = (ledger: Ledger, node: string, requestId: string, held: Amount): Ledger => {
  const holding = hold(giveBackAdvance(ledger, node), node, held, 1);
  return { ...holding, open: { ...holding.open, [requestId]: { node, held } } };
};

/** The last word of a call: what it cost is spent. A call that had its last word is not counted again. */
export const closeCall = (ledger: Ledger, requestId: string, usage: Usage | null): Ledger => {
  const { [requestId]: call, ...open } = ledger.open;
  if (call === undefined) return ledger;
  const given = { ...hold(ledger, call.node, call.held, -1), open };
  return along(given, call.node, (account) => ({
    ...account,
    calls: account.calls + 1,
    spent: usage === null ? account.spent : addUsage(account.spent, usage),
  }));
};

/** A call that was never sent: what was set aside for it is free again. */
export const dropCall = (ledger: Ledger, requestId: string): Ledger => {
  const { [requestId]: call, ...open } = ledger.open;
  return call === undefined ? ledger : { ...hold(ledger, call.node, call.held, -1), open };
};

/** After a crash nothing is open: the last words of the calls that were are lost. */
export const forgetCalls = (ledger: Ledger): Ledger => {
  let forgotten: Ledger = ledger;
  for (const { node, held } of Object.values(ledger.open)) forgotten = hold(forgotten, node, held, -1);
  return { ...forgotten, open: {} };
};
