import {
  type MachineRule,
  type RuleSection,
  ruleSections,
} from '../packages/agent/src/machine/documented-rules.js';

/** docs/rules.md, from the rules that stand beside the table. */

export const rulesPage = 'docs/rules.md';

const introduction = [
  '# The rules of the machine',
  '',
  'What the table in `packages/agent/src/machine/table.ts` promises, rule by rule. `npm run update` writes this page from `packages/agent/src/machine/documented-rules.ts`; the states, events and arrows themselves are in [machine.md](machine.md).',
  '',
  'Each rule has an anchor, under which comments cite it. Below its text stand the states and events that it is about, and the tests that keep it. A test holds that each state and each event is governed by some rule, that each named test exists, and that no citation leads nowhere.',
];

const names = (list: readonly string[] | 'every', one: string): string | null => {
  if (list === 'every') return `every ${one}`;
  return list.length === 0 ? null : list.map((name) => `\`${name}\``).join(', ');
};

const testLinks = ({ tests }: MachineRule): string =>
  Object.entries(tests)
    .flatMap(([file, titles]) => titles.map((title) => `[${title.trim()}](../${file})`))
    .join('; ');

const entry = ([anchor, rule]: readonly [string, MachineRule]): readonly string[] => {
  const events = names(rule.events, 'event');
  return [
    `### ${anchor}`,
    '',
    rule.text,
    '',
    `- States: ${names(rule.states, 'state')}`,
    ...(events === null ? [] : [`- Events: ${events}`]),
    `- Tests: ${testLinks(rule)}`,
    '',
  ];
};

const section = ([title, rules]: readonly [string, RuleSection]): readonly string[] => [
  `## ${title}`,
  '',
  ...Object.entries(rules).flatMap(entry),
];

export const rulesText = (): string =>
  `${[...introduction, '', ...Object.entries(ruleSections).flatMap(section)].join('\n').trim()}\n`;
