import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noLimits, type Settings } from '@pawl/agent/machine/settings';
import { decide } from '@pawl/agent/policy/decide';
import type { JudgedCall, Needs, ParsedCommand } from '@pawl/agent/policy/judged-call';
import {
  type Decision,
  type Preset,
  presetRules,
  type WrittenRule,
} from '@pawl/agent/policy/presets';
import { countCases } from '../../../../test/tier.js';
import { chooseSettings } from '../../src/sessions/session-settings.js';
import { stricterRules } from '../../src/settings/configuration.js';

// Whatever a project's file says: nothing is allowed that the user's own files do not allow.
// PAWL_COUNT=1000000 looks at so many pairs; PAWL_RULE_SEED makes other ones.

const PAIRS = countCases(20_000);
const SEED = Number(process.env.PAWL_RULE_SEED ?? 20_261_122);

const createRandom = (seed: number) => {
  let state = seed >>> 0;
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const pick = <T>(list: readonly [T, ...T[]] | readonly T[]): T => {
    const chosen = list[below(list.length)];
    if (chosen === undefined) throw new Error('an empty list');
    return chosen;
  };
  const several = <T>(max: number, make: () => T): readonly T[] =>
    Array.from({ length: below(max + 1) }, make);
  return { below, pick, several };
};

const { below, pick, several } = createRandom(SEED);
const WORDS = ['git', 'npm', 'push', 'test', 'diff', '--force', '-C', './x'];
const PATHS = [
  '/project/a.ts',
  '/project/docs/b.md',
  '/project/.env',
  '/etc/hosts',
  '/me/notes/n.md',
];
const PATTERNS = ['**', '*.ts', 'docs', 'docs/**', '.env*', '/etc/**', '/me/notes', '*'];
const HOSTS = ['example.com', 'api.example.com', 'localhost:80', 'evil.org'];
const HOST_PATTERNS = ['*', '*.example.com', 'example.com', 'localhost:80'];
const DECISIONS: readonly Decision[] = ['allow', 'ask', 'deny'];
const needs = (): { needs?: Needs } =>
  pick([{}, {}, { needs: 'network' }, { needs: 'outside' }] as const);

const rule = (): WrittenRule => {
  const head = { decision: pick(DECISIONS), origin: 'x:1' };
  const words = [pick(WORDS), ...several(2, () => pick(WORDS))];
  return pick<() => WrittenRule>([
    () => ({ ...head, kind: 'command', words, ...needs() }),
    () => ({ ...head, kind: 'command', words, ...needs() }),
    () => ({
      ...head,
      kind: 'path',
      pattern: pick(PATTERNS),
      touches: pick(['reads', 'anything']),
    }),
    () => ({ ...head, kind: 'host', pattern: pick(HOST_PATTERNS) }),
  ])();
};

const command = (): ParsedCommand => ({
  words: [pick(WORDS), ...several(3, () => pick([...WORDS, null]))],
  assignments: pick([[], [], ['A=b']]),
  writes: pick([[], [], ['/dev/null'], ['out'], [null]]),
  program: pick(['/usr/bin/git', '/project/git', null]),
  ...pick([{}, {}, { runs: 1 }]),
});

const call = (): JudgedCall => {
  const shell = { commands: several(3, command), unclear: pick([null, null, null, 'odd']) };
  const facts = pick([
    { paths: ['/project'], hosts: [], shell, ...needs() },
    { paths: several(2, () => pick(PATHS)), hosts: [], ...needs() },
    { paths: [], hosts: several(2, () => pick(HOSTS)) },
  ]);
  return {
    callId: '1',
    tool: 'any',
    input: {},
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: below(2) === 0, deadlineMs: 0 },
    facts: { argv: [], shape: 'x', ...facts },
  };
};

const strictness: Readonly<Record<Decision, number>> = { allow: 0, ask: 1, deny: 2 };

/** How many pairs were loosened by what `merge` makes of the user's and the project's rules. */
const loosened = (
  pairs: number,
  merge: (user: readonly WrittenRule[], project: readonly WrittenRule[]) => readonly WrittenRule[],
): number => {
  let count = 0;
  for (let index = 0; index < pairs; index++) {
    const [user, project, judged] = [several(4, rule), several(4, rule), call()];
    const preset = pick<Preset>(['plan', 'careful', 'auto', 'ci']);
    const sandbox = pick<NonNullable<Settings['sandbox']>>([
      'workspace',
      'workspace+net',
      'read-only',
      'off',
      'missing',
    ]);
    const settings = {
      rules: presetRules[preset],
      preset,
      sandbox,
      workspace: '/project',
      onAsk: pick(['ask', 'stop', 'deny'] as const),
    };
    const own = decide({ ...settings, writtenRules: user }, [], judged).decision;
    const both = decide({ ...settings, writtenRules: merge(user, project) }, [], judged).decision;
    if (strictness[both] < strictness[own]) count++;
  }
  return count;
};

test(`a project only tightens: ${PAIRS} random pairs of rules, seed ${SEED}`, () => {
  assert.equal(loosened(PAIRS, stricterRules), 0);
});

test('control: with all rules of the project taken, some of them loosen', () => {
  assert.ok(loosened(5_000, (user, project) => [...user, ...project]) > 10);
});

test('only a flag typed for the session widens the sandbox of the preset plan', () => {
  const flags = { preset: 'plan', sandbox: 'workspace' } as const;
  const levels = (['headless', 'node', 'editor'] as const).map((place) => {
    const prepared = { flags, before: null, limits: noLimits, profile: {} };
    return chooseSettings(flags, prepared as never, place).sandbox;
  });
  assert.deepEqual(levels, ['workspace', null, null]);
});
