/**
 * The configurations of a check: each explores the machine with other settings, bounds and kinds of
 * replies (the type is in configuration.ts).
 *
 * Their combined coverage is the result of the check. One configuration with everything in full
 * size would be far too large and show no more, since settings act independently. So one has all
 * kinds of events in small numbers, and each of the others explores one subject.
 *
 * In a reply each letter of `calls` is a tool call: R reads, T reads under the id of the first
 * call, E edits, P edits with a preview, S makes model calls itself, Q asks the user, A proposes a
 * plan, N names an unknown tool, I has invalid arguments. `spending`: `filling` and `overfull`
 * replies come near to the window of the model or exceed it, `dear` and `costly` ones a limit in
 * money or tokens.
 *
 * From top to bottom: the list; all kinds of events at once, money, misplaced events; building
 * blocks of configurations; model calls; tools, approvals and hooks.
 */

import { noLimits } from '@pawl/agent/machine/settings';
import { presetRules } from '@pawl/agent/policy/presets';
import { chargedLimit } from './charges.js';
import {
  type Bounds,
  type Configuration,
  type ExplorationSettings,
  type ReplyKind,
  tokensLimit,
  usdLimit,
  windowTokens,
} from './configuration.js';

/**
 * All configurations, the largest first: they run in parallel, and it must not run alone at the
 * end.
 */
export const createConfigurations = (bounds: Bounds): readonly Configuration[] => [
  everything(bounds),
  ...smallCallConfigurations(bounds),
  ...smallToolConfigurations(bounds),
  budget(bounds),
  rearming(bounds),
  reserves(bounds),
  reservesOfTools(bounds),
  misplaced(bounds),
];

/** All kinds of events at once, with default settings. */
const everything = (bounds: Bounds): Configuration =>
  withinBounds({
    name: 'everything',
    about:
      'all bounds at once: tools that ask, retries, queue, cancel, hooks, compaction, ' +
      'budget, crash, late answers',
    preset: 'careful',
    patch: explorationSettings({ limits: { usd: usdLimit } }),
    bounds,
    replies: [
      answer,
      fullAnswer,
      ...largestBatch(bounds),
      { text: 'yes', calls: 'E', spending: 'filling' },
      { calls: 'R', spending: 'costly' },
    ],
    failures: ['passing', 'final', 'tooLong'],
    outcomes: ['ok', 'failed'],
    hooks: ['clean', 'changed', 'veto', 'failed'],
    scopes: ['once'],
    streams: false,
    changes: [],
    clockJumps: false,
    charges: false,
    misplaced: false,
  });

const answer: ReplyKind = { text: 'yes' };

const spending: readonly ReplyKind[] = [
  answer,
  { calls: 'R', spending: 'dear' },
  { text: 'yes', spending: 'costly' },
  { calls: 'R', spending: 'costly' },
];

/** One costly reply more than usual: the first may lead only to the warning. */
const budget = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'budget', about: 'dollars, with a warning before the limit', replies: spending },
    { ...quietBounds, followUps: 0, late: bounds.late, budgetStops: bounds.budgetStops + 1 },
    { limits: { usd: usdLimit } },
  );

/** One costly reply more than usual: the limit that has raised itself can be reached again. */
const rearming = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'budget that raises itself',
      about: 'tokens, and a limit that grows by itself',
      replies: spending,
    },
    { ...quietBounds, budgetStops: bounds.budgetStops + 1 },
    { autoRearm: 'on', limits: { tokens: tokensLimit } },
  );

/** One retry shows as much as several: each asks for money of its own. */
const chargedBounds = (bounds: Bounds): Partial<Bounds> => ({
  ...quietBounds,
  retries: Math.min(bounds.retries, 1),
  steers: 0,
  followUps: 0,
  shutdowns: 0,
  crashes: bounds.crashes,
  late: bounds.late,
});

/** `chargedLimit` pays for one request with the longest reply: a second one must wait. */
const reserves = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'reserves',
      about:
        'money that is set aside for requests and summaries; usage that is late, missing, doubled, ' +
        'or a part',
      replies: [answer],
      failures: [],
      charges: true,
    },
    { ...chargedBounds(bounds), compactions: bounds.compactions, shutdowns: bounds.shutdowns },
    { limits: { usd: chargedLimit } },
  );

const reservesOfTools = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'reserves of tools',
      about: 'money that is set aside for calls that spend, and for hooks',
      replies: [answer, { calls: 'S' }, { calls: 'E' }],
      failures: [],
      charges: true,
    },
    { ...chargedBounds(bounds), retries: 0 },
    { limits: { usd: chargedLimit } },
  );

const misplaced = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'misplaced',
      about: 'every event in every state, whether it belongs there or not; text that streams',
      preset: 'careful',
      replies: [answer, fullAnswer, ...largestBatch(bounds)],
      failures: ['passing', 'final', 'tooLong'],
      streams: true,
      changes: [{ maxRetries: 0 }],
      misplaced: true,
    },
    { ...bounds, followUps: 0, budgetStops: 0 },
  );

// ---- Building blocks ----

/** Base settings of all configurations, chosen to keep the state small. */
const base: ExplorationSettings = {
  windowTokens,
  maxParallel: 2,
  formatter: 'onChanges',
  autoCommit: 'on',
  resultCutBytes: 200,
};

const explorationSettings = (patch: ExplorationSettings): ExplorationSettings => ({
  ...base,
  ...patch,
  limits: { ...noLimits, ...patch.limits },
});

const fullAnswer: ReplyKind = { text: 'yes', spending: 'filling' };
/** The largest batch that the bounds allow. */
const largestBatch = ({ reads, edits }: Bounds): readonly ReplyKind[] =>
  reads + edits > 0 ? [{ calls: 'R'.repeat(reads) + 'E'.repeat(edits) }] : [];

/** No events that would only enlarge an exploration of another subject. 0: none of the kind. */
const quietBounds = {
  budgetStops: 0,
  compactions: 0,
  rewinds: 0,
  crashes: 0,
  late: 0,
  duplicates: 0,
} satisfies Partial<Bounds>;

/**
 * Removes the preset, replies and failures that bounds of 0 rule out. Under the preset `auto` no
 * call asks the user; only full windows and requests that are too long lead to compactions.
 */
const withinBounds = (configuration: Configuration): Configuration => {
  const { bounds, preset, replies, failures } = configuration;
  const fills = ({ spending }: ReplyKind): boolean =>
    spending === 'filling' || spending === 'overfull';
  return {
    ...configuration,
    preset: bounds.approvals === 0 ? 'auto' : preset,
    replies: bounds.compactions > 0 ? replies : replies.filter((reply) => !fills(reply)),
    failures: bounds.compactions > 0 ? failures : failures.filter((word) => word !== 'tooLong'),
  };
};

type ConfigurationParts = Pick<Configuration, 'name' | 'about'> &
  Partial<Omit<Configuration, 'bounds' | 'patch'>>;

/** A configuration that explores one subject in depth. `changedBounds` replace bounds. */
const smallConfiguration = (
  bounds: Bounds,
  parts: ConfigurationParts,
  changedBounds: Partial<Bounds>,
  patch: ExplorationSettings = {},
): Configuration => {
  const smaller = { ...bounds, ...changedBounds };
  return withinBounds({
    preset: 'auto',
    replies: [answer, ...largestBatch(smaller)],
    failures: ['passing', 'final'],
    outcomes: ['ok'],
    hooks: ['clean'],
    scopes: ['once'],
    streams: false,
    changes: [],
    clockJumps: false,
    charges: false,
    misplaced: false,
    ...parts,
    patch: explorationSettings(patch),
    bounds: smaller,
  });
};

// ---- Model calls ----

const unreadable: ReplyKind = { message: null, stop: 'other' };

const everyReply: readonly ReplyKind[] = [
  answer,
  { text: 'yes', stop: 'maxTokens' },
  { text: 'yes', stop: 'refusal' },
  { text: 'yes', calls: 'E', stop: 'refusal' },
  { text: 'yes', stop: 'toolUse' },
  { stop: 'contentFilter' },
  { stop: 'maxTokens' },
  {},
  unreadable,
  { calls: 'RT' },
  { calls: 'NIR' },
  { calls: 'NI' },
  { text: 'yes', calls: 'IE', stop: 'maxTokens' },
];

const replies = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'replies',
      about: 'every kind of reply, empty ones asked for again, limits of rounds and of cut replies',
      replies: everyReply,
      streams: true,
    },
    { ...quietBounds, followUps: 0 },
    { emptyRetries: 1, limits: { rounds: 2, truncation: 2 } },
  );

const drain = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'drain',
      about: 'a provider that cannot abort',
      // Answers, whole and cut; refusals; replies without anything.
      replies: [...everyReply.slice(0, 4), {}, unreadable],
      streams: true,
    },
    { ...quietBounds, crashes: bounds.crashes, late: bounds.late },
    { cancelMode: 'drain', emptyRetries: 0 },
  );

const time = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'time',
      about: 'a turn that takes too long',
      replies: [
        ...largestBatch({ ...bounds, reads: Math.min(bounds.reads, 1) }),
        answer,
        { text: 'yes', calls: 'R', spending: 'filling' },
      ],
      hooks: ['changed', 'veto'],
      streams: true,
      clockJumps: true,
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes, compactions: bounds.compactions },
    { limits: { timeMs: 60_000 } },
  );

const drainOutOfTime = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'drain out of time',
      about: 'the time limit meets a provider that cannot abort',
      replies: [answer, { text: 'yes', calls: 'R' }, {}],
      streams: true,
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { cancelMode: 'drain', emptyRetries: 0, limits: { timeMs: 60_000 } },
  );

const compaction = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'compaction',
      about:
        'windows that fill up, before a turn, in the middle, beyond; results that are too long',
      replies: [
        answer,
        fullAnswer,
        { calls: 'R' },
        { calls: 'R', spending: 'filling' },
        { calls: 'R', spending: 'overfull' },
      ],
      failures: ['passing', 'tooLong', 'waitTooLong'],
      outcomes: ['ok', 'long'],
    },
    {
      ...quietBounds,
      followUps: 0,
      crashes: bounds.crashes,
      late: bounds.late,
      compactions: bounds.compactions,
    },
  );

const policies = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'policies',
      about: 'a turn that goes in circles, and the call that asks for its answer',
      replies: [answer, { calls: 'R' }, { calls: 'E' }],
      failures: ['passing', 'heldBack'],
      outcomes: ['ok', 'failed'],
    },
    { ...quietBounds, followUps: 0 },
    {
      atLimit: 'finish',
      userPolicy: 'ask',
      hooks: 'never',
      limits: { rounds: 3, repeats: 2, errors: 2, sameResults: 2 },
    },
  );

const anotherModel = { windowTokens, prices: null };

/** A conversation that fills the window of the others is too long for the smaller one. */
const fallback = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'fallback',
      about: 'other models take over after the last retry, and the next turn asks the first again',
      replies: [answer, fullAnswer, { calls: 'R' }, { calls: 'R', spending: 'filling' }],
      failures: ['passing', 'final', 'waitTooLong'],
      changes: [{ model: 'test/chosen' }],
    },
    {
      ...quietBounds,
      retries: Math.min(bounds.retries, 1),
      steers: 0,
      compactions: bounds.compactions,
      crashes: bounds.crashes,
    },
    {
      hooks: 'never',
      fallback: [
        { ...anotherModel, model: 'test/small', windowTokens: windowTokens / 2 },
        { ...anotherModel, model: 'test/second' },
      ],
    },
  );

const smallCallConfigurations = (bounds: Bounds): readonly Configuration[] =>
  [replies, drain, time, drainOutOfTime, compaction, policies, fallback].map((one) => one(bounds));

// ---- Tools, their approvals and the hooks after them ----

const queueGoesOn = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'queue goes on', about: 'after a cancel the queue is sent', hooks: ['clean', 'veto'] },
    quietBounds,
    { queueOnCancel: 'send' },
  );

const queueGoesBack = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'queue goes back', about: 'after a cancel the queue goes back into the editor' },
    quietBounds,
    { queueOnCancel: 'restore' },
  );

const deny = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'nobody to ask: deny',
      about: 'calls that need approval are denied',
      preset: 'careful',
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'deny' },
  );

const stop = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'nobody to ask: stop',
      about: 'a call that needs approval ends the turn',
      preset: 'careful',
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { onAsk: 'stop' },
  );

const rulesChange = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'rules change',
      about: 'grants that reach further than one call, and settings that change under way',
      preset: 'careful',
      replies: [answer, { calls: 'EER' }],
      scopes: ['once', 'shape', 'session'],
      changes: [{ rules: presetRules.auto }, { rules: presetRules.plan }, { onAsk: 'stop' }],
    },
    { ...quietBounds, steers: 0, followUps: 0, cancels: 0, crashes: bounds.crashes },
  );

const asksUser = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'questions and plans',
      about: 'the model asks the user, and proposes a plan that the user accepts or sends back',
      preset: 'plan',
      replies: [answer, { calls: 'QAR' }, { calls: 'E' }],
      changes: [{ onAsk: 'stop' }, { preset: 'plan', rules: presetRules.plan }],
    },
    {
      ...quietBounds,
      steers: 0,
      followUps: 0,
      crashes: bounds.crashes,
      duplicates: bounds.duplicates,
    },
    { preset: 'plan' },
  );

const hooks = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'hooks',
      about: 'every outcome of every phase, after any batch',
      replies: [answer, { calls: 'E' }, { calls: 'R' }],
      hooks: ['clean', 'dirty', 'changed', 'committed', 'veto', 'failed'],
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes, late: bounds.late },
    { hooks: 'always', formatter: 'onOneCommit' },
  );

const noHooks = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    { name: 'no hooks', about: 'nothing runs after the tools', replies: [answer, { calls: 'E' }] },
    quietBounds,
    { hooks: 'never' },
  );

const previews = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'previews',
      about: 'calls that are previewed before they are asked for, one behind the other',
      preset: 'careful',
      replies: [answer, { calls: 'PPR' }, { calls: 'EP' }],
      scopes: ['once', 'session'],
      changes: [{ rules: presetRules.auto }, { onAsk: 'stop' }],
    },
    {
      ...quietBounds,
      steers: 0,
      followUps: 0,
      crashes: bounds.crashes,
      duplicates: bounds.duplicates,
    },
  );

const outcomes = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'outcomes',
      about: 'every way in which a call can end, and what comes after it',
      replies: [answer, { calls: 'RE' }],
      outcomes: ['ok', 'failed', 'timedOut', 'cancelled', 'lost'],
    },
    { ...quietBounds, steers: 0, followUps: 0, crashes: bounds.crashes },
  );

const pictures = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'pictures',
      about: 'pictures in results, which the provider may refuse',
      replies: [answer, { calls: 'R' }],
      outcomes: ['ok', 'picture'],
      failures: ['passing', 'picture'],
    },
    { ...quietBounds, steers: 0, followUps: 0, crashes: bounds.crashes },
  );

const spendingTools = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'tools that spend',
      about: 'calls that make model calls of their own, under a limit, some of them given up',
      replies: [answer, { calls: 'SSR' }, { calls: 'S' }],
      outcomes: ['ok', 'spent'],
    },
    {
      ...quietBounds,
      steers: 0,
      followUps: 0,
      budgetStops: bounds.budgetStops,
      crashes: bounds.crashes,
    },
    { limits: { usd: usdLimit }, hooks: 'never' },
  );

const smallToolConfigurations = (bounds: Bounds): readonly Configuration[] =>
  [
    queueGoesOn,
    queueGoesBack,
    deny,
    stop,
    rulesChange,
    previews,
    asksUser,
    hooks,
    noHooks,
    outcomes,
    pictures,
    spendingTools,
  ].map((one) => one(bounds));
