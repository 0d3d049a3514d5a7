/**
 * The table `rules` of a configuration file. A rule allows, asks or denies by the words of a
 * command, by path, by host or by the tool of an MCP server.
 *
 * A project's file may only ask and deny. Its rules are read here as well; configuration.ts then
 * ignores the allowing ones, with a warning for each.
 */

import { firstCharacters, nearestWord } from '@pawl/agent/platform/text';
import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import type { Needs } from '@pawl/agent/policy/judged-call';
import { isHostPattern, isMcpPattern, patternFault } from '@pawl/agent/policy/patterns';
import type { Decision, RuleSubject } from '@pawl/agent/policy/presets';

/** A rule, and the line of the file on which its list begins. */
export type ReadRule = RuleSubject & { readonly decision: Decision; readonly line: number };

type ReadRules = {
  readonly rules: readonly ReadRule[];
  readonly faults: readonly { readonly line: number; readonly text: string }[];
};

/** What a rule is about, or what is wrong with its text. */
type ParsedRule = { readonly subject: RuleSubject } | { readonly fault: string };

/** A list of rules at `keys` below the table `rules`. `make` makes a rule of one of its texts. */
type List = {
  /** Its key below `rules`: `paths`, `read` for `rules.paths.read`. */
  readonly keys: readonly string[];
  readonly decision: Decision;
  /** Reads one text of the list. */
  make(text: string): ParsedRule;
};

const RULES_MAX = 500;

/** Words that need no quotes in a shell. A command whose first words need quotes is a mistake. */
const PLAIN_WORDS = /^[^\s'"\\$`;&|<>(){}*?[\]#~!]+( [^\s'"\\$`;&|<>(){}*?[\]#~!]+)*$/;

/** `needs`: what the rule lets the command leave the sandbox for, such as the network. */
const command =
  (needs?: Needs) =>
  (text: string): ParsedRule =>
    PLAIN_WORDS.test(text)
      ? {
          subject: {
            kind: 'command',
            words: text.split(' '),
            ...(needs === undefined ? {} : { needs }),
          },
        }
      : {
          fault:
            'is the plain words that a command begins with, with one blank between them: ' +
            '"npm test"',
        };

/** `touches`: whether the rule is about reading alone, or about changes too. */
const path =
  (touches: 'reads' | 'anything') =>
  (text: string): ParsedRule => {
    const fault = patternFault(text);
    return fault === null ? { subject: { kind: 'path', pattern: text, touches } } : { fault };
  };

const host = (text: string): ParsedRule =>
  isHostPattern(text)
    ? { subject: { kind: 'host', pattern: text.toLowerCase() } }
    : {
        fault: 'is a host without scheme, path and default port: "example.com" or "*.example.org"',
      };

const mcp = (text: string): ParsedRule =>
  isMcpPattern(text)
    ? { subject: { kind: 'mcp', pattern: text } }
    : {
        fault:
          'is an MCP server, one of its tools, or the beginning of their names: "github", ' +
          '"github/get_issue" or "github/get_*"',
      };

/**
 * All lists. `network` is the network alone; `outside` is everything outside the sandbox, the
 * network included.
 */
const lists: readonly List[] = [
  { keys: ['allow'], decision: 'allow', make: command() },
  { keys: ['allow_network'], decision: 'allow', make: command('network') },
  { keys: ['allow_outside'], decision: 'allow', make: command('outside') },
  { keys: ['ask'], decision: 'ask', make: command() },
  { keys: ['deny'], decision: 'deny', make: command() },
  { keys: ['paths', 'read'], decision: 'allow', make: path('reads') },
  { keys: ['paths', 'allow'], decision: 'allow', make: path('anything') },
  { keys: ['paths', 'ask'], decision: 'ask', make: path('anything') },
  { keys: ['paths', 'deny'], decision: 'deny', make: path('anything') },
  { keys: ['hosts', 'allow'], decision: 'allow', make: host },
  { keys: ['hosts', 'ask'], decision: 'ask', make: host },
  { keys: ['hosts', 'deny'], decision: 'deny', make: host },
  { keys: ['mcp', 'allow'], decision: 'allow', make: mcp },
  { keys: ['mcp', 'ask'], decision: 'ask', make: mcp },
  { keys: ['mcp', 'deny'], decision: 'deny', make: mcp },
];

const NAMES = lists.map(({ keys }) => `rules.${keys.join('.')}`);

const unknownListText = (name: string): string => {
  const close = nearestWord(name, NAMES);
  return (
    `there is no ${name}. ` +
    `${close === undefined ? `There are ${NAMES.join(', ')}.` : `Did you mean ${close}?`}`
  );
};

/** A list as written: its key below `rules`, and its value, still unchecked. */
type Entry = readonly [keys: readonly string[], raw: unknown];

const INNER_TABLES = new Set(['paths', 'hosts', 'mcp']);

const ruleEntries = (table: ParsedTable): readonly Entry[] =>
  Object.entries(table).flatMap(([name, raw]): readonly Entry[] =>
    INNER_TABLES.has(name) && isTable(raw)
      ? Object.entries(raw).map(([inner, value]) => [[name, inner], value])
      : [[[name], raw]],
  );

/**
 * Reads the table. `lineOf` tells the line of a key in the file; the key begins with `rules`. With
 * too many rules none counts: the rest could allow what a dropped one denies.
 */
export const readRules = (
  table: unknown,
  lineOf: (keys: readonly string[]) => number,
): ReadRules => {
  if (!isTable(table))
    return { rules: [], faults: [{ line: lineOf(['rules']), text: 'rules is a table: [rules]' }] };
  const rules: ReadRule[] = [];
  const faults: { line: number; text: string }[] = [];
  for (const [keys, raw] of ruleEntries(table)) {
    const line = lineOf(['rules', ...keys]);
    const name = firstCharacters(`rules.${keys.join('.')}`, 60);
    const list = lists.find((one) => one.keys.join('.') === keys.join('.'));
    if (list === undefined) faults.push({ line, text: unknownListText(name) });
    else if (!Array.isArray(raw)) faults.push({ line, text: `${name} is a list of texts: ["…"].` });
    else
      for (const text of raw) {
        const result =
          typeof text === 'string' ? list.make(text) : { fault: 'is a text in quotes' };
        if ('fault' in result) faults.push({ line, text: `a rule of ${name} ${result.fault}.` });
        else rules.push({ ...result.subject, decision: list.decision, line });
      }
  }
  if (rules.length <= RULES_MAX) return { rules, faults };
  return {
    rules: [],
    faults: [
      ...faults,
      { line: lineOf(['rules']), text: `there are more than ${RULES_MAX} rules.` },
    ],
  };
};
