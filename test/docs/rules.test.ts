import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { agent } from '../../packages/agent/src/machine/machine.js';
import { type DocumentedRule, RULES_PAGE, readRules } from '../../scripts/machine-rules.js';

/** docs/design/rules.md: of one form, complete, kept by tests that exist, and cited only where it has the rule. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

type Rules = readonly DocumentedRule[];

const rules = readRules(read(RULES_PAGE));
const anchors = rules.map(({ anchor }) => anchor);

// ---- Tests that keep a rule ----

const escaped = (text: string): string => text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');

/** Whether a file has a test of this title, or one that is built around it; a trace is named by its first line. */
const hasTest = (source: string, title: string): boolean =>
  new RegExp(`['"\`](?:[^'"\`\\n]*[ }])?${escaped(title)} ?(?:['"\`]|\\$\\{)`).test(
    source.replaceAll("\\'", "'"),
  ) || source.startsWith(`# ${title}`);

/** The tests that rules name and that do not exist. */
const testFaults = (rules: Rules): readonly string[] =>
  rules.flatMap(({ anchor, tests }) => [
    ...(Object.values(tests).flat().length === 0 ? [`${anchor}: no test keeps it`] : []),
    ...Object.entries(tests).flatMap(([file, titles]) => {
      if (!existsSync(path.join(root, file))) return [`${anchor}: there is no ${file}`];
      const source = read(file);
      return titles
        .filter((title) => !hasTest(source, title))
        .map((title) => `${anchor}: ${file} has no test "${title}"`);
    }),
  ]);

test('each rule names tests that exist', () => {
  assert.deepEqual(testFaults(rules), []);
});

test('a rule without a test, a missing file and a missing title are named', () => {
  const rule = { text: 'It holds.', states: 'every', events: 'every' } as const;
  const planted: Rules = [
    { ...rule, anchor: 'untested', tests: {} },
    { ...rule, anchor: 'no-file', tests: { 'test/docs/gone.test.ts': ['x'] } },
    { ...rule, anchor: 'no-title', tests: { 'test/docs/links.test.ts': ['no such title'] } },
    {
      ...rule,
      anchor: 'kept',
      tests: { 'test/docs/seeds.test.ts': ['a title or a file that is gone is named'] },
    },
  ];
  assert.deepEqual(testFaults(planted), [
    'untested: no test keeps it',
    'no-file: there is no test/docs/gone.test.ts',
    'no-title: test/docs/links.test.ts has no test "no such title"',
  ]);
});

// ---- Completeness ----

const states = Object.keys(agent.states);
const events = Object.keys(agent.events);

/** A rule about every state or every event says nothing about a particular one. */
const namesIn = (names: DocumentedRule['states']): readonly string[] =>
  names === 'every' ? [] : names;

/** States and events that no rule names. */
const ungoverned = (rules: Rules): readonly string[] => {
  const named = new Set(
    rules.flatMap((rule) => [...namesIn(rule.states), ...namesIn(rule.events)]),
  );
  return [...states, ...events].filter((name) => !named.has(name));
};

/** States and events that rules name and that the machine does not have. */
const unknownNames = (rules: Rules): readonly string[] =>
  rules.flatMap((rule) => [
    ...namesIn(rule.states).filter((name) => !states.includes(name)),
    ...namesIn(rule.events).filter((name) => !events.includes(name)),
  ]);

test('each state and each event is governed by some rule', () => {
  assert.deepEqual(ungoverned(rules), []);
  assert.deepEqual(unknownNames(rules), []);
});

test('a state and an event without a rule are named', () => {
  const without = rules.map((rule) => ({
    ...rule,
    states: namesIn(rule.states).filter((name) => name !== 'Compacting'),
    events: namesIn(rule.events).filter((name) => name !== 'InputFailed'),
  }));
  assert.deepEqual(ungoverned(without), ['Compacting', 'InputFailed']);
});

test('no anchor stands twice, and anchors are words', () => {
  assert.equal(new Set(anchors).size, anchors.length);
  assert.deepEqual(
    anchors.filter((anchor) => !/^[a-z]+(-[a-z]+)*$/.test(anchor)),
    [],
  );
});

// ---- The page ----

test('an entry without a text, states or tests, or with more than these, is named', () => {
  const entry =
    '### it-holds\n\nIt holds.\n\n- States: every state\n- Tests: [it](../../test/it.test.ts)';
  assert.deepEqual(readRules(`# Rules\n\n## A subject\n\n${entry}\n`), [
    {
      anchor: 'it-holds',
      text: 'It holds.',
      states: 'every',
      events: [],
      tests: { 'test/it.test.ts': ['it'] },
    },
  ]);
  for (const line of [
    'It holds.\n\n',
    '- States: every state\n',
    '- Tests: [it](../../test/it.test.ts)',
  ])
    assert.throws(() => readRules(entry.replace(line, '')), /this entry is no rule:\nit-holds/);
  assert.throws(() => readRules(`${entry}\n- More: this`), /this entry is no rule/);
});

// ---- Citations ----

const CITING = /\.(?:ts|js|py|md|trace|toml|yml)$/;
const citingFiles = [
  ...['README.md', 'AGENTS.md', 'CHANGELOG.md'],
  ...['packages', 'test', 'scripts', 'bench', 'docs', 'examples'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(
        (file) => CITING.test(file) && !/node_modules|^pawl\/(dist|THIRD-PARTY\.md)/.test(file),
      )
      .map((file) => path.join(folder, file)),
  ),
].filter((file) => existsSync(path.join(root, file)));

const citations = /rules\.md#([\w-]+)/g;
/** Rules that rows about the machine name, and that the invariants check. */
const ROWS = /^(?:packages\/(?:agent\/test\/(?:machine|policy)|verify\/test)|test\/kit\/agent)\//;
const rowRules = /\brule: '([\w-]+)'/g;
const invariantRules = /(?<=type RuleName =(?:\s+\| '[\w-]+')*\s+\| )'([\w-]+)'/g;
/** Rules, sections and cases by a number that nobody can look up: `R12`, `(2.13)`, `case 7:`. */
const numbers =
  /\bR\d{1,2}[a-z]?\b|(?<=(?:\/\/|\*) [^\n]*)\((?:[^()\n]*, )?[2-4]\.\d{1,2}\)|\b(?:case|invariant) \d+[a-z]?:/g;

/** Citations of rules that the page does not have, and of numbers in its place. */
const citationFaults = (file: string, text: string): readonly string[] =>
  [
    ...[
      ...text.matchAll(citations),
      ...text.matchAll(invariantRules),
      ...(ROWS.test(file) ? text.matchAll(rowRules) : []),
    ].filter(([, anchor = '']) => !anchors.includes(anchor)),
    ...text.matchAll(numbers),
  ].map(([citation]) => `${file}: ${citation}`);

test('no citation of a rule leads nowhere, and none is a number', () => {
  const faults = citingFiles
    .filter((file) => !file.endsWith('test/docs/rules.test.ts'))
    .flatMap((file) => citationFaults(file, read(file)));
  assert.deepEqual(faults, []);
});

test('a citation that leads nowhere, or is a number, is named', () => {
  const text = [
    '/** See rules.md#limit-before-request and rules.md#no-such-rule. */',
    '// As in R12 and R83c, but not R100 (retry, 2.7), in Node 22.2 (case 3).',
    "test('case 7: it holds')",
    "type RuleName =\n  | 'one-request'\n  | 'no-such-promise';",
    "{ rule: 'Bash(npm test)' }, { rule: 'no-such-row' }",
  ];
  assert.deepEqual(citationFaults('packages/agent/test/machine/x.ts', text.join('\n')), [
    'packages/agent/test/machine/x.ts: rules.md#no-such-rule',
    "packages/agent/test/machine/x.ts: 'no-such-promise'",
    "packages/agent/test/machine/x.ts: rule: 'no-such-row'",
    'packages/agent/test/machine/x.ts: R12',
    'packages/agent/test/machine/x.ts: R83c',
    'packages/agent/test/machine/x.ts: (retry, 2.7)',
    'packages/agent/test/machine/x.ts: case 7:',
  ]);
});
