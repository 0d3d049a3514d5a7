/** The rules of the machine as docs/design/rules.md, which is written by hand, has them. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { MachineRule } from '../packages/inspector/src/model/explain-state-and-arrow.js';

export const RULES_PAGE = 'docs/design/rules.md';

export type DocumentedRule = MachineRule & {
  /** Titles of tests, by file. A title that is built from parts is named by its fixed part. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
};

const ENTRY =
  /^(?<anchor>\S+)\n\n(?<text>.+)\n\n- States: (?<states>.+)\n(?:- Events: (?<events>.+)\n)?- Tests: (?<tests>.+)$/;
const TEST = /\[([^\]]+)\]\(\.\.\/\.\.\/([^)]+)\)/g;

const readNames = (list: string): readonly string[] | 'every' =>
  list.startsWith('every ') ? 'every' : [...list.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);

const readTests = (list: string): DocumentedRule['tests'] => {
  const tests: Record<string, string[]> = {};
  for (const [, title = '', file = ''] of list.matchAll(TEST))
    tests[file] = [...(tests[file] ?? []), title];
  return tests;
};

/** All rules of the page, in its order. Throws at an entry that has another form. */
export const readRules = (page: string): readonly DocumentedRule[] =>
  page
    .replaceAll(/^## .*$/gm, '')
    .split(/^### /m)
    .slice(1)
    .map((entry) => {
      const { anchor, text, states, events, tests } = ENTRY.exec(entry.trim())?.groups ?? {};
      if (anchor === undefined || text === undefined)
        throw new Error(`${RULES_PAGE}: this entry is no rule:\n${entry}`);
      return {
        anchor,
        text,
        states: readNames(states ?? ''),
        events: readNames(events ?? ''),
        tests: readTests(tests ?? ''),
      };
    });

export const machineRules = (root: string): readonly DocumentedRule[] =>
  readRules(readFileSync(path.join(root, RULES_PAGE), 'utf8'));
