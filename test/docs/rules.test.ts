import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type MachineRule,
  machineRules,
  ruleSections,
} from '../../packages/agent/src/machine/documented-rules.js';
import { agent } from '../../packages/agent/src/machine/machine.js';
import { rulesPage, rulesText } from '../../scripts/rules-page.js';

/** docs/rules.md: written from its source, complete, kept by tests that exist, and cited only where it has the rule. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

type Rules = Iterable<readonly [string, MachineRule]>;

// ---- Tests that keep a rule ----

const escaped = (text: string): string => text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');

/** Whether a file has a test of this title, or one that is built around it; a trace is named by its first line. */
const hasTest = (source: string, title: string): boolean =>
  new RegExp(`['"\`](?:[^'"\`\\n]*[ }])?${escaped(title)}(?:['"\`]|\\$\\{)`).test(
    source.replaceAll("\\'", "'"),
  ) || source.startsWith(`# ${title}`);

/** The tests that rules name and that do not exist. */
const testFaults = (rules: Rules): readonly string[] =>
  [...rules].flatMap(([anchor, { tests }]) => [
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
  assert.deepEqual(testFaults(machineRules), []);
});

test('a rule without a test, a missing file and a missing title are named', () => {
  const rule = { text: 'It holds.', states: 'every', events: 'every' } as const;
  const planted: Rules = [
    ['untested', { ...rule, tests: {} }],
    ['no-file', { ...rule, tests: { 'test/docs/gone.test.ts': ['x'] } }],
    ['no-title', { ...rule, tests: { 'test/docs/links.test.ts': ['no such title'] } }],
    ['kept', { ...rule, tests: { 'test/docs/seeds.test.ts': ['a title or a file that is gone is named'] } }],
  ];
  assert.deepEqual(testFaults(planted), [
    'untested: no test keeps it',
    'no-file: there is no test/docs/gone.test.ts',
    'no-title: test/docs/links.test.ts has no test "no such title"',
  ]);
});

// ---- Completeness ----

/** What no rule names. A rule about every state or every event says nothing about a particular one. */
const ungoverned = (rules: Rules): readonly string[] => {
  const list = [...rules].map(([, rule]) => rule);
  const named = new Set<string>(
    list.flatMap(({ states, events }) => [
      ...(states === 'every' ? [] : states),
      ...(events === 'every' ? [] : events),
    ]),
  );
  return [...Object.keys(agent.states), ...Object.keys(agent.events)].filter((name) => !named.has(name));
};

test('each state and each event is governed by some rule', () => {
  assert.deepEqual(ungoverned(machineRules), []);
});

test('a state and an event without a rule are named', () => {
  const without = [...machineRules].map(
    ([anchor, { states, events, ...rule }]) =>
      [
        anchor,
        {
          ...rule,
          states: states === 'every' ? states : states.filter((name) => name !== 'Compacting'),
          events: events === 'every' ? events : events.filter((name) => name !== 'InputFailed'),
        },
      ] as const,
  );
  assert.deepEqual(ungoverned(without), ['Compacting', 'InputFailed']);
});

test('no anchor stands twice, and anchors are words', () => {
  const anchors = Object.values(ruleSections).flatMap((section) => Object.keys(section));
  assert.equal(anchors.length, machineRules.size);
  assert.deepEqual(
    anchors.filter((anchor) => !/^[a-z]+(-[a-z]+)*$/.test(anchor)),
    [],
  );
});

// ---- The page ----

test('docs/rules.md is what the rules give', () => {
  assert.equal(read(rulesPage), rulesText(), 'run `npm run update`');
});

// ---- Citations ----

const CITING = /\.(?:ts|js|py|md|trace|toml|yml)$/;
const citingFiles = [
  ...['README.md', 'AGENTS.md', 'CHANGELOG.md'],
  ...['packages', 'test', 'scripts', 'bench', 'docs', 'examples'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => CITING.test(file) && !/node_modules|^pawl\/(dist|docs|[A-Z]+\.md)/.test(file))
      .map((file) => path.join(folder, file)),
  ),
].filter((file) => existsSync(path.join(root, file)));

const citations = /rules\.md#([\w-]+)/g;
/** Rules, sections and cases by a number that nobody can look up: `R12`, `(2.13)`, `case 7:`. */
const numbers =
  /\bR\d{1,2}[a-z]?\b|(?<=(?:\/\/|\*) [^\n]*)\((?:[^()\n]*, )?[2-4]\.\d{1,2}\)|\b(?:case|invariant) \d+[a-z]?:/g;

/** Citations of rules that the page does not have, and of numbers in its place. */
const citationFaults = (file: string, text: string): readonly string[] =>
  [
    ...[...text.matchAll(citations)].filter(([, anchor = '']) => !machineRules.has(anchor)),
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
    '/** See docs/rules.md#limit-before-request and docs/rules.md#no-such-rule. */',
    '// As in R12 and R83c, but not R100 (retry, 2.7), in Node 22.2 (case 3).',
    "test('case 7: it holds')",
  ];
  assert.deepEqual(citationFaults('x.ts', text.join('\n')), [
    'x.ts: rules.md#no-such-rule',
    'x.ts: R12',
    'x.ts: R83c',
    'x.ts: (retry, 2.7)',
    'x.ts: case 7:',
  ]);
});
