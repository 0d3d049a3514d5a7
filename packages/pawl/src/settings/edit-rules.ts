/**
 * Adds and removes the rules of one folder in the text of the user's config.toml:
 *
 *     [folder."/me/project".rules]
 *     allow = ["npm test"]
 *
 * 1. All other text stays as it is: comments, order, line ends.
 * 2. The new text is parsed. It must say what the old one said, and differ in this one rule;
 *    otherwise nothing changes.
 */

import { isTable, type ParsedTable } from '@pawl/agent/platform/untrusted-input';
import type { RuleSubject } from '@pawl/agent/policy/presets';
import {
  appendTable,
  BROKEN_TOML,
  type EditedConfig,
  isSame,
  joinBlank,
  lineSpan,
  parseOrNull,
  refused,
  type TomlFormat,
} from './edit-config.js';
import { findStatements, findStrings, hasComment, type TomlStatement } from './toml-keys.js';

/** A rule of a folder: the list that has it, and its text there. */
export type FolderRule = {
  /** Real absolute path. */
  readonly folder: string;
  /** Below `rules`: `allow`, or `hosts` and `allow`. */
  readonly list: readonly string[];
  readonly text: string;
};

/** The list and the text of a rule that allows; null for one that no list can hold. */
export const writableRule = (subject: RuleSubject, folder: string): FolderRule | null => {
  // Such a name is not UTF-8: another folder would be read back.
  if (folder.includes('\ufffd')) return null;
  if (subject.kind === 'path') return null; // the lists of paths are written by hand alone
  if (subject.kind !== 'command') {
    const table = subject.kind === 'host' ? 'hosts' : 'mcp';
    return { folder, list: [table, 'allow'], text: subject.pattern };
  }
  const { needs, words } = subject;
  if (needs === 'repository') return null; // there is no list allow_repository
  return {
    folder,
    list: [needs === undefined ? 'allow' : `allow_${needs}`],
    text: words.join(' '),
  };
};

/** Whether a text of the list is the rule's. The case of a host does not count. */
const isTextOf = ({ list, text }: FolderRule, one: unknown): boolean =>
  one === text || (list[0] === 'hosts' && String(one).toLowerCase() === text.toLowerCase());

/** A basic string. JSON's form is TOML's, but for the character DEL. */
const quote = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');

const keyText = (names: readonly string[]): string =>
  names.map((name) => (/^[\w-]+$/.test(name) ? name : quote(name))).join('.');

const ruleKey = ({ folder, list }: FolderRule): readonly string[] => [
  'folder',
  folder,
  'rules',
  ...list,
];

const startsWith = (names: readonly string[], start: readonly string[]): boolean =>
  start.every((name, index) => names[index] === name);

/** The texts of the list; null if something else stands there. */
const listedTexts = (table: ParsedTable, key: readonly string[]): readonly string[] | null => {
  let at: unknown = table;
  for (const name of key) {
    if (!isTable(at)) return null;
    at = Object.hasOwn(at, name) ? at[name] : undefined;
    if (at === undefined) return [];
  }
  if (!Array.isArray(at)) return null;
  const texts = at.filter((one): one is string => typeof one === 'string');
  return texts.length === at.length ? texts : null;
};

/** The table with these texts in the list. Empty lists and tables are left out. */
const withTexts = (
  table: ParsedTable,
  [name = '', ...rest]: readonly string[],
  texts: readonly string[],
): ParsedTable => {
  const { [name]: inner, ...others } = table;
  if (rest.length === 0) return texts.length === 0 ? others : { ...others, [name]: texts };
  const changed = withTexts(isTable(inner) ? inner : {}, rest, texts);
  return Object.keys(changed).length === 0 ? others : { ...others, [name]: changed };
};

/** The text, if it says what `before` says but for the texts of the list. */
const checkEdit = (
  edited: string,
  before: ParsedTable,
  key: readonly string[],
  texts: readonly string[],
  format: TomlFormat,
): EditedConfig | null => {
  const after = parseOrNull(edited, format);
  if (after === null || !isSame(listedTexts(after, key), texts)) return null;
  const isOtherwiseSame = isSame(withTexts(after, key, []), withTexts(before, key, []));
  return isOtherwiseSame ? { kind: 'edited', text: edited } : null;
};

/** Adds a text behind the last one of a list. */
const extendList = (text: string, list: TomlStatement, added: string): string => {
  const at = findStrings(text, list).at(-1)?.end;
  if (at === undefined) {
    const open = text.lastIndexOf('[', list.end) + 1;
    return text.slice(0, open) + quote(added) + text.slice(open);
  }
  // The rest of the line behind the last text; undefined if the list goes on there.
  const [restOfLine, comma = '', comment = ''] =
    /^([ \t]*,)?([ \t]*(?:#[^\r\n]*)?)(?=\r?\n)/.exec(text.slice(at)) ?? [];
  if (restOfLine === undefined) return `${text.slice(0, at)}, ${quote(added)}${text.slice(at)}`;
  const [indent = ''] = /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at) + 1)) ?? [];
  const newLine = text.slice(at).includes('\r\n') ? '\r\n' : '\n';
  const row = `${newLine}${indent}${quote(added)}${comma === '' ? '' : ','}`;
  return `${text.slice(0, at)},${comment}${row}${text.slice(at + restOfLine.length)}`;
};

/** Adds the list below the table header that names the most of its key, or at the end. */
const addList = (text: string, rule: FolderRule, statements: readonly TomlStatement[]): string => {
  const key = ruleKey(rule);
  const newLine = text.includes('\r\n') ? '\r\n' : '\n';
  const header = statements
    .filter(({ kind, names }) => kind === 'table' && names.length > 1 && startsWith(key, names))
    .toSorted((one, other) => other.names.length - one.names.length)[0];
  const value = `[${quote(rule.text)}]`;
  if (header !== undefined) {
    const [, after] = lineSpan(text, header);
    const above = text.slice(0, after);
    const line = `${keyText(key.slice(header.names.length))} = ${value}${newLine}`;
    return `${above}${above.endsWith('\n') ? '' : newLine}${line}${text.slice(after)}`;
  }
  return appendTable(text, [`[${keyText(key.slice(0, 3))}]`, `${keyText(rule.list)} = ${value}`]);
};

/** Adds the rule. The same text comes back if it is there. */
export const addFolderRule = (text: string, rule: FolderRule, format: TomlFormat): EditedConfig => {
  const before = parseOrNull(text, format);
  if (before === null) return refused(BROKEN_TOML);
  const key = ruleKey(rule);
  const texts = listedTexts(before, key);
  if (texts === null) return refused(`${keyText(key)} is no list of texts.`);
  if (texts.some((one) => isTextOf(rule, one))) return { kind: 'edited', text };
  const statements = findStatements(text, format.parse);
  const list = statements.find(({ kind, names }) => kind === 'key' && isSame(names, key));
  const edited =
    list === undefined ? addList(text, rule, statements) : extendList(text, list, rule.text);
  const extended = checkEdit(edited, before, key, [...texts, rule.text], format);
  return (
    extended ??
    refused(`it has its rules in a form that can't be extended. Add ${quote(rule.text)} by hand.`)
  );
};

/** The line of the file that has the rule, from 1, and its text. Without the rule it is line 1. */
export const findRule = (
  text: string,
  rule: FolderRule,
  { parse }: TomlFormat,
): { readonly line: number; readonly text: string } => {
  const list = findStatements(text, parse).find(
    ({ kind, names }) => kind === 'key' && isSame(names, ruleKey(rule)),
  );
  const entry = (list === undefined ? [] : findStrings(text, list)).find(({ start, end }) =>
    isTextOf(rule, parse(`a = ${text.slice(start, end)}`).a),
  );
  const line = text.slice(0, entry?.start ?? list?.start ?? 0).split('\n').length;
  return { line, text: text.split('\n')[line - 1]?.trim() ?? '' };
};

/** The list without the texts of the rule; null if nothing else is in it. */
const cutFromList = (
  text: string,
  list: TomlStatement,
  rule: FolderRule,
  { parse }: TomlFormat,
): string | null => {
  const entries = findStrings(text, list);
  const cuts = entries.filter(({ start, end }) =>
    isTextOf(rule, parse(`a = ${text.slice(start, end)}`).a),
  );
  if (cuts.length === entries.length && !hasComment(text, list)) return null;
  // from the end, so that the places of the others stay right
  return cuts.reduceRight((cut, { start, end }) => {
    const [before, behind] = [cut.slice(0, start), cut.slice(end)];
    const comma = /^\s*,[ \t]*/.exec(behind)?.[0];
    return comma === undefined
      ? before.replace(/,\s*$/, '') + behind
      : before + behind.slice(comma.length);
  }, text);
};

/** Removes the list and, if nothing else stands below it, its header, but no comment. */
const cutList = (
  text: string,
  list: TomlStatement,
  statements: readonly TomlStatement[],
): string => {
  const index = statements.indexOf(list);
  const [header, next] = [statements[index - 1], statements[index + 1]];
  const isAlone =
    header?.kind === 'table' &&
    header.names[0] === 'folder' &&
    next?.kind !== 'key' &&
    !hasComment(text, { start: header.start, end: list.start });
  const [from] = lineSpan(text, isAlone ? header : list);
  const [, to] = lineSpan(text, list);
  return isAlone
    ? joinBlank(text.slice(0, from), text.slice(to))
    : text.slice(0, from) + text.slice(to);
};

/** Removes the rule. The same text comes back if it is not there. */
export const removeFolderRule = (
  text: string,
  rule: FolderRule,
  format: TomlFormat,
): EditedConfig => {
  const before = parseOrNull(text, format);
  if (before === null) return refused(BROKEN_TOML);
  const key = ruleKey(rule);
  const texts = listedTexts(before, key) ?? [];
  const others = texts.filter((one) => !isTextOf(rule, one));
  if (others.length === texts.length) return { kind: 'edited', text };
  const statements = findStatements(text, format.parse);
  const list = statements.find(({ kind, names }) => kind === 'key' && isSame(names, key));
  const edited =
    list === undefined
      ? null
      : (cutFromList(text, list, rule, format) ?? cutList(text, list, statements));
  const cut = edited === null ? null : checkEdit(edited, before, key, others, format);
  return (
    cut ??
    refused(`it has its rules in a form that can't be cut. Remove ${quote(rule.text)} by hand.`)
  );
};
