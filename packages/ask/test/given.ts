import assert from 'node:assert/strict';
import type { ModelError, StopReason } from '@pawl/agent/machine/event';
import type { Usage } from '@pawl/agent/machine/settings';
import type { CellReport, SubcallKind } from '../src/run/cell-types.js';
import { seedParity } from '../src/run/eager-values.js';
import type { RunEventOf, TreeEvent } from '../src/run/event.js';
import {
  type CodeSettings,
  defaultCodeSettings,
  type Parity,
  type Rate,
  type Reserve,
  type RunLimits,
  readRunLimits,
} from '../src/run/settings.js';
import type { CodeState } from '../src/run/state.js';
import type { StopVerdict } from '../src/run/stop-policies.js';
import type { Tree } from '../src/tree/tree-state.js';

/** The clock of all tests stands still here. */
export const NOW = 1_700_000_000_000;

export type SettingsPatch = Partial<
  Omit<CodeSettings, 'parity' | 'limits' | 'childLimits' | 'reserve'>
> & {
  readonly parity?: Partial<Parity>;
  readonly limits?: Partial<RunLimits>;
  readonly childLimits?: Partial<RunLimits>;
  /** Alone: what every call costs, and costs at most. */
  readonly reserve?: Rate | Reserve;
};

const reserveOf = (reserve: Rate | Reserve): Reserve =>
  'expected' in reserve ? reserve : { expected: reserve, worst: reserve, basis: 'stated' };

export const settingsOf = (patch: SettingsPatch = {}): CodeSettings => ({
  ...defaultCodeSettings,
  model: 'test/root',
  subModel: 'test/sub',
  question: 'How many?',
  inputs: [{ name: 'big.txt', type: 'text', characters: 52_428_800 }],
  ...patch,
  limits: readRunLimits(patch.limits ?? {}),
  childLimits: readRunLimits(patch.childLimits ?? {}),
  reserve: reserveOf(patch.reserve ?? defaultCodeSettings.reserve),
  parity: { ...defaultCodeSettings.parity, ...patch.parity },
});

/** As seed 004 is set: its rules, and none of our policies. */
export const asSeed: SettingsPatch = {
  parity: seedParity,
  errorsMax: 0,
  repeatedMax: 0,
  sameOutputMax: 0,
};
/** Our rules, with the seed's forms of an answer allowed. */
export const withForms: SettingsPatch = { parity: { finalForms: 'on' } };

/** An event, or one that names what is under way in the tree it meets. */
export type Given = TreeEvent | ((tree: Tree) => TreeEvent);

export const eventOf = (given: Given, tree: Tree): TreeEvent =>
  typeof given === 'function' ? given(tree) : given;

/** The same at another moment: `after` milliseconds after NOW. */
export const later =
  (after: number, given: Given): Given =>
  (tree) => ({ ...eventOf(given, tree), at: NOW + after });

// ---- What is under way ----

const stateOf = (tree: Tree, node: string): CodeState | undefined => tree.nodes[node];

const workOf = (tree: Tree, node: string): Exclude<CodeState, { name: 'DONE' }>['work'] | null => {
  const state = stateOf(tree, node);
  return state === undefined || state.name === 'DONE' ? null : state.work;
};

/** The id of the open call of a run, or one that nobody knows. */
export const requestOf = (tree: Tree, node: string): string => {
  const work = workOf(tree, node);
  return work?.kind === 'calling' ? work.requestId : `${node}.r0`;
};
const cellOf = (tree: Tree, node: string): string => {
  const work = workOf(tree, node);
  return work?.kind === 'running' ? work.cellId : `${node}.c0`;
};
const readOf = (tree: Tree, node: string): string => {
  const work = workOf(tree, node);
  return work?.kind === 'reading' ? work.readId : `${node}.v0`;
};
const policyOf = (tree: Tree, node: string): string => {
  const work = workOf(tree, node);
  return work?.kind === 'asking' ? work.policyId : `${node}.p0`;
};
const timerOf = (tree: Tree, node: string): string => {
  const work = workOf(tree, node);
  return work?.kind === 'retrying' ? work.timerId : `${node}.t0`;
};

/** The child of the root's running cell, by ordinal and slot. */
const childOf = (tree: Tree, ordinal: number, slot: number): string =>
  `${cellOf(tree, 'n0')}.${ordinal}.${slot}`;

type Who = string | ((tree: Tree) => string);
const nameOf = (who: Who, tree: Tree): string => (typeof who === 'function' ? who(tree) : who);
export const child =
  (slot: number, ordinal = 1): Who =>
  (tree) =>
    childOf(tree, ordinal, slot);

// ---- Events ----

const usage = (costUsd: number | null = 0, inputTokens = 10): Usage => ({
  inputTokens,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd,
});

export const started: TreeEvent = { type: 'Started', at: NOW, node: 'n0' };

export const environmentIs =
  (variables: RunEventOf<'EnvironmentStarted'>['variables'] = 'kept', who: Who = 'n0'): Given =>
  (tree) => ({ type: 'EnvironmentStarted', at: NOW, node: nameOf(who, tree), variables });
export const ready: Given = environmentIs();
export const environmentFails =
  (who: Who = 'n0'): Given =>
  (tree) => ({
    type: 'EnvironmentFailed',
    at: NOW,
    node: nameOf(who, tree),
    message: 'bwrap is missing',
  });

type Said = {
  readonly who?: Who;
  readonly costUsd?: number | null;
  readonly tokens?: number;
  readonly requestId?: string;
  readonly stopReason?: StopReason;
};

/** A reply of text; an empty one has no message at all. */
export const says =
  (text: string, said: Said = {}): Given =>
  (tree) => {
    const node = nameOf(said.who ?? 'n0', tree);
    return {
      type: 'ModelReplied',
      at: NOW,
      node,
      requestId: said.requestId ?? requestOf(tree, node),
      message:
        text === ''
          ? null
          : { role: 'assistant', model: 'test/root', cut: false, parts: [{ type: 'text', text }] },
      stopReason: said.stopReason ?? 'end',
      usage: usage(said.costUsd === undefined ? 0 : said.costUsd, said.tokens ?? 10),
    };
  };

/** A fenced program. */
export const program = (...blocks: readonly string[]): string =>
  blocks.map((code) => `Let me see.\n\n\`\`\`repl\n${code}\n\`\`\``).join('\n');
export const writes = (...blocks: readonly string[]): Given => says(program(...blocks));

type Failure = Partial<ModelError> & {
  readonly who?: Who;
  readonly costUsd?: number;
  readonly requestId?: string;
};
export const fails =
  (failure: Failure = {}): Given =>
  (tree) => {
    const node = nameOf(failure.who ?? 'n0', tree);
    return {
      type: 'ModelFailed',
      at: NOW,
      node,
      requestId: failure.requestId ?? requestOf(tree, node),
      error: {
        kind: failure.kind ?? 'overloaded',
        message: failure.message ?? 'try later',
        retryable: failure.retryable ?? true,
        retryAfterMs: failure.retryAfterMs ?? null,
      },
      usage: failure.costUsd === undefined ? null : usage(failure.costUsd),
      jitter: 0,
    };
  };
export const breaks = (failure: Failure = {}): Given =>
  fails({ kind: 'badRequest', message: 'bad field', retryable: false, ...failure });

export const report = (patch: Partial<CellReport> = {}): CellReport => ({
  status: 'ok',
  stdout: '',
  stderr: '',
  variables: [],
  answer: null,
  variablesLost: 'no',
  ...patch,
});

export const ends =
  (patch: Partial<CellReport> = {}, who: Who = 'n0', cellId?: string): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    return {
      type: 'CellFinished',
      at: NOW,
      node,
      cellId: cellId ?? cellOf(tree, node),
      report: report(patch),
    };
  };
export const prints = (stdout: string): Given => ends({ stdout });
export const raises: Given = ends({ status: 'raised', stderr: 'NameError: x' });
export const answers = (answer: string): Given => ends({ answer });

type Asking = {
  readonly kind?: SubcallKind;
  readonly ordinal?: number;
  readonly who?: Who;
  readonly cellId?: string;
};
export const asks =
  (
    prompts: readonly string[],
    { kind = 'llm', ordinal = 1, who = 'n0', cellId }: Asking = {},
  ): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    return {
      type: 'SubcallAsked',
      at: NOW,
      node,
      cellId: cellId ?? cellOf(tree, node),
      ordinal,
      kind,
      prompts,
    };
  };

export const holds =
  (value: string | null, who: Who = 'n0'): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    return { type: 'VariableRead', at: NOW, node, readId: readOf(tree, node), value };
  };

export const judges =
  (verdict: StopVerdict, who: Who = 'n0'): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    return { type: 'PolicyAnswered', at: NOW, node, policyId: policyOf(tree, node), verdict };
  };

export const rings =
  (who: Who = 'n0'): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    return { type: 'TimerFired', at: NOW, node, timerId: timerOf(tree, node) };
  };
/** The run's time limit is over. */
export const timeIsUp =
  (who: Who = 'n0'): Given =>
  (tree) => {
    const node = nameOf(who, tree);
    const timerId = stateOf(tree, node)?.run.deadline?.timerId ?? `${node}.t0`;
    return { type: 'TimerFired', at: NOW, node, timerId };
  };

export const cancels =
  (who: Who = 'n0'): Given =>
  (tree) => ({ type: 'CancelRequested', at: NOW, node: nameOf(who, tree), cause: 'user' });
export const shutdown: TreeEvent = { type: 'ShutdownRequested', at: NOW, node: 'n0' };
export const resumed = (epoch = 1): TreeEvent => ({ type: 'Resumed', at: NOW, node: 'n0', epoch });

/** A list of prompts that can be told apart. */
export const promptsOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `prompt ${index + 1}`);

export const rootOf = (tree: Tree): CodeState => tree.nodes.n0 ?? assert.fail('a tree has a root');
