import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Layers,
  refusedByProject,
  resolve,
  type SourceValue,
} from '../../src/settings/configuration.js';
import { findSetting, settings, type Value } from '../../src/settings/setting-table.js';

const BUILT_IN_MODEL = 'anthropic/built-in';
const none: Layers = { user: [], project: [], environment: [], flags: [] };

const from = {
  user: (key: string, value: Value): SourceValue => ({
    setting: findSetting(key),
    value,
    origin: { layer: 'user', file: '/u', line: 1 },
  }),
  project: (key: string, value: Value, file = '/p'): SourceValue => ({
    setting: findSetting(key),
    value,
    origin: { layer: 'project', file, line: 1 },
  }),
  environment: (key: string, value: Value): SourceValue => ({
    setting: findSetting(key),
    value,
    origin: { layer: 'environment', variable: findSetting(key).variable },
  }),
  flags: (key: string, value: Value): SourceValue => ({
    setting: findSetting(key),
    value,
    origin: { layer: 'flag', flag: key },
  }),
};

type Row = {
  readonly key: string;
  readonly user?: Value;
  readonly project?: Value;
  readonly environment?: Value;
  readonly flag?: Value;
  /** Value and layer; null: built in. */
  readonly then: readonly [Value, string] | null;
};

const rows: readonly Row[] = [
  { key: 'max_usd', then: null },
  { key: 'max_usd', user: 5, then: [5, 'user'] },
  { key: 'max_usd', user: 5, project: 2, then: [2, 'project'] },
  { key: 'max_usd', user: 5, project: 9, then: [5, 'user'] },
  { key: 'max_usd', project: 9, then: [9, 'project'] },
  { key: 'max_usd', user: 5, project: 2, environment: 7, then: [7, 'environment'] },
  { key: 'max_usd', user: 5, project: 2, environment: 7, flag: 8, then: [8, 'flag'] },
  { key: 'max_rounds', project: 50, then: [50, 'project'] },
  { key: 'max_rounds', project: 101, then: null },
  { key: 'max_rounds', user: 200, project: 150, then: [150, 'project'] },
  { key: 'preset', project: 'plan', then: ['plan', 'project'] },
  { key: 'preset', project: 'careful', then: ['careful', 'project'] },
  { key: 'effort', project: 'medium', then: ['medium', 'project'] },
  { key: 'effort', project: 'high', then: null },
  { key: 'effort', user: 'low', project: 'auto', then: ['low', 'user'] },
  { key: 'effort', user: 'max', project: 'auto', then: ['auto', 'project'] },
  { key: 'effort', user: 'auto', project: 'low', then: ['low', 'project'] },
  { key: 'preset', project: 'ci', then: null },
  { key: 'preset', project: 'auto', then: null },
  { key: 'preset', user: 'auto', project: 'ci', then: ['auto', 'user'] },
  { key: 'preset', user: 'full', project: 'ci', then: ['full', 'user'] },
  { key: 'preset', user: 'plan', project: 'careful', then: ['plan', 'user'] },
  { key: 'preset', project: 'plan', flag: 'auto', then: ['auto', 'flag'] },
  { key: 'sandbox', project: 'off', then: null },
  { key: 'sandbox', project: 'workspace', then: null },
  { key: 'sandbox', project: 'read-only', then: ['read-only', 'project'] },
  { key: 'sandbox', user: 'off', then: ['off', 'user'] },
  { key: 'sandbox', user: 'off', project: 'workspace', then: ['workspace', 'project'] },
  { key: 'sandbox', user: 'workspace', project: 'workspace+net', then: ['workspace', 'user'] },
  { key: 'sandbox', user: 'workspace', environment: 'off', then: ['off', 'environment'] },
  { key: 'pass_env', project: 'AWS_SECRET_ACCESS_KEY', then: null },
  { key: 'hooks', project: 'never', then: ['never', 'project'] },
  { key: 'hooks', project: 'always', then: null },
  { key: 'formatter', project: 'on', then: null },
  { key: 'formatter', project: 'off', then: ['off', 'project'] },
  { key: 'formatter', user: 'on', project: 'off', then: ['off', 'project'] },
  { key: 'auto_commit', project: true, then: null },
  { key: 'auto_commit', user: true, project: false, then: [false, 'project'] },
  { key: 'explore', project: true, then: null },
  { key: 'allow_unknown_price', project: true, then: null },
  { key: 'profile', project: 'full', then: null },
  { key: 'allow_hosts', project: 'evil.example', then: null },
  {
    key: 'allow_hosts',
    user: 'a.example,b.example',
    project: 'b.example',
    then: ['b.example', 'project'],
  },
  { key: 'allow_hosts', user: 'a.example', project: '*', then: ['a.example', 'user'] },
  { key: 'on_ask', project: 'deny', then: null },
  { key: 'on_ask', user: 'stop', project: 'deny', then: ['stop', 'user'] },
  { key: 'pictures', project: 'yes', then: null },
  { key: 'pictures', project: 'no', then: ['no', 'project'] },
  { key: 'pictures', user: 'yes', project: 'no', then: ['no', 'project'] },
  { key: 'pictures', user: 'yes', project: 'auto', then: ['auto', 'project'] },
  { key: 'silence_ms', user: 5, project: 2_000, then: [2_000, 'project'] },
  { key: 'silence_ms', user: 5, project: 9, then: [5, 'user'] },
  { key: 'silence_ms', project: 1, then: null },
  { key: 'silence_ms', project: 89_999, then: null },
  { key: 'silence_ms', project: 90_001, then: [90_001, 'project'] },
  { key: 'silence_ms', project: 3_600_001, then: null },
  { key: 'first_byte_ms', project: 1, then: null },
  { key: 'first_byte_ms', user: 300_000, project: 120_000, then: [300_000, 'user'] },
  { key: 'first_byte_ms', user: 1, then: [1, 'user'] },
  { key: 'first_byte_ms', project: 600_000, then: [600_000, 'project'] },
  { key: 'first_byte_ms', project: 600_000, environment: 400, then: [400, 'environment'] },
  { key: 'model', project: 'anthropic/cheap', then: ['anthropic/cheap', 'project'] },
  { key: 'model', project: 'openai/other', then: null },
  { key: 'model', user: 'openai/one', project: 'openai/two', then: ['openai/two', 'project'] },
  { key: 'model', user: 'openai/one', project: 'anthropic/two', then: ['openai/one', 'user'] },
  { key: 'model', user: 'scripted//a', project: 'scripted//b', then: ['scripted//a', 'user'] },
  { key: 'model', project: 'openai/other', flag: 'openai/mine', then: ['openai/mine', 'flag'] },
  { key: 'ask.environment', project: 'python', then: null },
  { key: 'ask.max_depth', project: 2, then: null },
  { key: 'ask.cell_ms', project: 5_000, then: [5_000, 'project'] },
  { key: 'ask.cell_ms', project: 100, then: null },
  { key: 'providers.anthropic.base_url', project: 'http://evil', then: null },
  { key: 'providers.anthropic.api_key_file', project: '/etc/passwd', then: null },
];

const layersOf = ({ key, user, project, environment, flag }: Row): Layers => ({
  user: user === undefined ? [] : [from.user(key, user)],
  project: project === undefined ? [] : [from.project(key, project)],
  environment: environment === undefined ? [] : [from.environment(key, environment)],
  flags: flag === undefined ? [] : [from.flags(key, flag)],
});

for (const row of rows) {
  const { key, then, ...layers } = row;
  const given = Object.entries(layers).map(([layer, value]) => `${layer} says ${value}`);
  const outcome = then === null ? 'it stays as built in' : `it is ${then[0]}, by the ${then[1]}`;
  test(`${key}: ${given.join(', ') || 'nobody says anything'}: ${outcome}`, () => {
    const found = resolve(layersOf(row), BUILT_IN_MODEL).find(({ setting }) => setting.key === key);
    assert.ok(found);
    assert.deepEqual(found.origin === null ? null : [found.value, found.origin.layer], then);
    const said = given.length - (then === null ? 0 : 1);
    assert.equal(found.overruled.length, said, 'every overruled source is named');
  });
}

test('no file of a project loosens anything, whatever it says and whatever it follows', () => {
  const values: readonly Value[] = [1, 7, 1e9, true, false];
  for (const setting of settings.filter(
    ({ project, kind }) => project === 'tighten' && kind.type !== 'hosts',
  )) {
    const choices = setting.kind.type === 'words' ? setting.kind.words : values;
    const rank = (value: Value | null): number => {
      const { kind } = setting;
      if (value === null || (kind.type === 'words' && value === kind.undecided))
        return setting.projectBound === null
          ? Number.POSITIVE_INFINITY
          : rank(setting.projectBound);
      return kind.type === 'words' ? kind.words.indexOf(String(value)) : Number(value);
    };
    for (const user of [null, ...choices]) {
      for (const project of choices) {
        const layers = {
          ...none,
          user: user === null ? [] : [from.user(setting.key, user)],
          project: [from.project(setting.key, project)],
        };
        const found = resolve(layers, BUILT_IN_MODEL).find((one) => one.setting === setting);
        assert.ok(
          rank(found?.value ?? null) <= rank(user),
          `${setting.key}: ${user} became ${found?.value} by ${project}`,
        );
      }
    }
  }
});

test('no file of a project shortens a time that is waited for a model', () => {
  const values = [1, 999, 1_000, 50_000, 120_000, 3_600_000, 1e9];
  const waited = settings.filter(({ project }) => project === 'raise');
  assert.deepEqual(
    waited.map(({ key }) => key),
    ['first_byte_ms', 'silence_ms'],
  );
  for (const setting of waited) {
    for (const user of [null, ...values]) {
      for (const project of values) {
        const layers = {
          ...none,
          user: user === null ? [] : [from.user(setting.key, user)],
          project: [from.project(setting.key, project)],
        };
        const found = resolve(layers, BUILT_IN_MODEL).find((one) => one.setting === setting);
        const before = Number(user ?? setting.projectBound);
        const now = Number(found?.value ?? setting.projectBound);
        assert.ok(now >= before, `${setting.key}: ${before} became ${now} by ${project}`);
        assert.ok(
          now === before || now <= 3_600_000,
          `${setting.key}: ${before} became ${now} by ${project}`,
        );
      }
    }
  }
});

test('every setting says what a project may do, and none of a provider is a project’s', () => {
  for (const { key, project } of settings) {
    if (key.startsWith('providers.')) assert.equal(project, 'no', key);
  }
});

test('the settings of a repository and of a folder in it may each only tighten the other’s', () => {
  const project = [
    from.project('max_usd', 3, '/p/root'),
    from.project('max_usd', 5, '/p/root/part'),
  ];
  const found = resolve({ ...none, project }, BUILT_IN_MODEL).find(
    ({ setting }) => setting.key === 'max_usd',
  );
  assert.deepEqual([found?.value, found?.overruled.map(({ value }) => value)], [3, [5]]);
});

test('a value that a project may never set is reported; a limit that is tighter elsewhere is not', () => {
  const project = [
    from.project('max_usd', 9),
    from.project('model', 'openai/x'),
    from.project('formatter', 'on'),
    from.project('providers.openai.base_url', 'http://evil'),
    from.project('answer_minutes', 1),
    from.project('silence_ms', 1),
  ];
  const resolved = resolve({ ...none, user: [from.user('max_usd', 5)], project }, BUILT_IN_MODEL);
  assert.deepEqual(
    refusedByProject(resolved).map(({ key, why }) => `${key}: ${why}`),
    [
      'model: a project may only choose a model of the provider that is used anyway',
      'formatter: a project may only choose what is stricter',
      'answer_minutes: a project may not set it',
      'silence_ms: a project may not go below 1000',
      'providers.openai.base_url: a project may not set it',
    ],
  );
});
