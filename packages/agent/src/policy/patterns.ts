/** Patterns of rules. From top to bottom: hosts, tools of MCP servers, paths, words of commands. */

import type { McpToolName, ParsedCommand } from './judged-call.js';
import { programName } from './paths.js';

/*
 * ---- Hosts ----
 *
 * 1. A host is in the form of a parsed URL: lower case, with its port unless it is the default,
 *    IPv4 as four numbers, IPv6 in brackets.
 * 2. A private host (a private address, or a name that only a private network knows) is allowed
 *    only by its exact name, never by a pattern.
 */

const PORT = /:\d+$/;

/** Addresses that are private, local, reserved or multicast. */
const privateV4 = ([a = 0, b = 0, c = 0]: readonly number[]): boolean =>
  a === 0 ||
  a === 10 ||
  a === 127 ||
  a >= 224 ||
  (a === 100 && b >= 64 && b < 128) ||
  (a === 169 && b === 254) ||
  (a === 172 && b >= 16 && b < 32) ||
  (a === 192 && ((b === 0 && c <= 2) || b === 168)) ||
  (a === 198 && (b === 18 || b === 19));

const readV4 = (text: string): readonly number[] | null => {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(text)) return null;
  const numbers = text.split('.').map(Number);
  return numbers.every((number) => number < 256) ? numbers : null;
};

/** Rewrites an IPv6 address that ends in IPv4 notation to plain groups. */
const withoutV4 = (address: string): string => {
  const groupsEnd = address.lastIndexOf(':') + 1;
  const tail = readV4(address.slice(groupsEnd));
  if (tail === null) return address;
  const [a = 0, b = 0, c = 0, d = 0] = tail;
  return `${address.slice(0, groupsEnd)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
};

/** The eight groups of an IPv6 address; null for other texts. */
const readV6 = (text: string): readonly number[] | null => {
  const [address = ''] = text.split('%');
  const plain = withoutV4(address);
  if (!/^[\da-f:]*:[\da-f:]*$/i.test(plain)) return null;
  const [before = '', after, more] = plain.split('::');
  if (more !== undefined) return null;
  const groups = (part: string): readonly number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(before), groups(after ?? '')];
  const missing = after === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const all = [...first, ...Array.from({ length: missing }, () => 0), ...last];
  return all.length === 8 ? all : null;
};

/** The IPv4 address inside one of IPv6: mapped, translated (64:ff9b::/96), 6to4. */
const insideV6 = (groups: readonly number[]): readonly number[] | null => {
  const v4 = (high = 0, low = 0): readonly number[] => [high >> 8, high & 255, low >> 8, low & 255];
  const [first, second] = groups;
  const zeros = (from: number, to: number): boolean =>
    groups.slice(from, to).every((group) => group === 0);
  if (zeros(0, 5) && (groups[5] === 0xffff || groups[5] === 0)) return v4(groups[6], groups[7]);
  if (first === 0x64 && second === 0xff9b && zeros(2, 6)) return v4(groups[6], groups[7]);
  return first === 0x2002 ? v4(groups[1], groups[2]) : null;
};

/**
 * Whether an IPv6 address is private: everything outside 2000::/3 is local, multicast or
 * unassigned.
 */
const privateV6 = (groups: readonly number[]): boolean => {
  const inside = insideV6(groups);
  if (inside !== null) return privateV4(inside);
  const [first = 0] = groups;
  return first < 0x2000 || first > 0x3fff;
};

/** Whether an IP address is private; null for texts that are not an address. */
export const isPrivateAddress = (address: string): boolean | null => {
  const v4 = readV4(address);
  if (v4 !== null) return privateV4(v4);
  const v6 = address.includes(':') ? readV6(address) : null;
  return v6 === null ? null : privateV6(v6);
};

const PRIVATE_NAME = /(^|\.)(localhost|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

/** Whether a host is private (a private address, or a name that only a private network knows). */
export const isPrivateHost = (host: string): boolean => {
  const hostname = host.replace(PORT, '').replace(/^\[|\]$/g, '');
  const name = hostname.replace(/\.$/, '');
  const address = isPrivateAddress(name);
  if (address !== null) return address;
  return !name.includes('.') || PRIVATE_NAME.test(name);
};

/**
 * Whether a pattern matches the host: `example.com` with any port, `example.com:8080` with this
 * port, `*.example.com` every subdomain, `*` every host. `example.com.` is the same host.
 */
export const matchesHost = (pattern: string, host: string): boolean => {
  const lower = pattern.toLowerCase();
  const plain = host.replace(/\.(?=$|:\d+$)/, '');
  const named = PORT.test(lower) ? plain : plain.replace(PORT, '');
  return lower.startsWith('*') ? named.endsWith(lower.slice(1)) : named === lower;
};

const HOST_PATTERN =
  /^(\*|(\*\.)?[a-z\d_-]+(\.[a-z\d_-]+)*|\[[\da-f:.]+\])(:(?!(80|443)$)\d{1,5})?$/i;

/** Whether a text is a host pattern: without scheme, user, path and default port. */
export const isHostPattern = (text: string): boolean => HOST_PATTERN.test(text);

/*
 * ---- Tools of MCP servers ----
 *
 * `github` is every tool of the server,
 * `github/get_issue` is one tool, and `github/get_*` is every tool whose name begins so.
 * `project:github` is only a server that a project names.
 *
 * A project chooses the names of its servers. So a pattern without `project:` never allows one of
 * their tools; it denies them, and asks about them.
 */

const PROJECT = 'project:';
const MCP_PATTERN = /^(project:)?[A-Za-z0-9_-]+(\/[^\s/*]*\*?)?$/;

/** Whether the text is a pattern. */
export const isMcpPattern = (text: string): boolean =>
  MCP_PATTERN.test(text) && !text.endsWith('/');

/** Whether a pattern without `project:` names the tool. */
const matchesName = (pattern: string, { server, tool }: McpToolName): boolean => {
  const slash = pattern.indexOf('/');
  if (slash < 0) return pattern === server;
  if (pattern.slice(0, slash) !== server) return false;
  const name = pattern.slice(slash + 1);
  return name.endsWith('*') ? tool.startsWith(name.slice(0, -1)) : tool === name;
};

/** Whether a rule that denies or asks is about the tool. */
export const matchesMcpTool = (pattern: string, tool: McpToolName): boolean =>
  pattern.startsWith(PROJECT)
    ? tool.from === 'project' && matchesName(pattern.slice(PROJECT.length), tool)
    : matchesName(pattern, tool);

/** Whether a rule that allows is about the tool. */
export const allowsMcpTool = (pattern: string, tool: McpToolName): boolean =>
  pattern.startsWith(PROJECT) === (tool.from === 'project') && matchesMcpTool(pattern, tool);

/*
 * ---- Paths: `docs/**`, `*.pem`, `/etc/hosts` ----
 *
 * 1. `*` and `?` match characters of one name, `**` any folders, `{a,b}` one of several.
 * 2. A pattern without `/` matches the name at any depth of the workspace. Other patterns start at
 *    the workspace, or at the root with a leading `/`. A pattern matches everything below a
 *    matching path too.
 * 3. The time is at most proportional to pattern length times path length.
 */

/** Patterns that one with braces may stand for. */
const PATTERNS_MAX = 64;
/** Braces with a comma and without others in them. What a backslash escapes is text. */
const BRACES = /^((?:[^\\]|\\.)*)\{((?:[^\\{},]|\\.)*,(?:[^\\{}]|\\.)*)\}(.*)$/s;

/** Expands `{a,b}`, also in other braces, as a shell does; null if there are too many. */
export const expandBraces = (pattern: string): readonly string[] | null => {
  const open = [pattern];
  const done: string[] = [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [, before = '', choices, after = ''] = BRACES.exec(next) ?? [];
    if (choices === undefined) done.push(next);
    else for (const choice of choices.split(/(?<!\\),/)) open.push(before + choice + after);
    if (open.length + done.length > PATTERNS_MAX) return null;
  }
  return done;
};

/** A pattern that means the text itself. */
export const addEscapes = (text: string): string => text.replace(/[\\*?[\]{},]/g, '\\$&');

/** A pattern without its escapes. */
export const removeEscapes = (pattern: string): string => pattern.replace(/\\(.)/gs, '$1');

/**
 * Whether a name matches a segment with `*` and `?`, or with expressions for one character each.
 * Backtracks only to the last star, so that no pattern of a stranger takes long.
 */
export const fitsName = (pattern: ArrayLike<string | RegExp>, name: ArrayLike<string>): boolean => {
  const fitsAt = (index: number, character = ''): boolean => {
    const sign = pattern[index];
    if (sign instanceof RegExp) return sign.test(character);
    return sign === '?' || sign === character;
  };
  // `at`, `seen`: how far pattern and name fit. `star`: index of the last star in the pattern.
  // `mark`: where in the name its text ends; it grows by one whenever the rest does not fit.
  let [at, seen, star, mark] = [0, 0, -1, 0];
  while (seen < name.length) {
    if (pattern[at] === '*') {
      star = at++;
      mark = seen;
    } else if (at < pattern.length && fitsAt(at, name[seen])) {
      at++;
      seen++;
    } else if (star >= 0) {
      at = star + 1;
      seen = ++mark;
    } else return false;
  }
  return Array.prototype.every.call(pattern, (sign, index) => index < at || sign === '*');
};

/** A class in brackets, or one sign, which may be escaped. */
const PART_SIGN = /\\(.)|\[(?:([!^])|(?![!^]))([^\]\\[]+)\]|./gsu;

/**
 * One part of a path as signs for `fitsName`; null if it has brackets that are not understood, as
 * `[[:alpha:]]` and `[]a]`.
 */
export const partSigns = (part: string): readonly (string | RegExp)[] | null => {
  try {
    const signs = [...part.matchAll(PART_SIGN)].map(([all, escaped, not, set]) => {
      if (escaped !== undefined)
        return new RegExp(`^\\u{${escaped.codePointAt(0)?.toString(16)}}$`, 'u');
      if (set === undefined) return all;
      const excludes = not === undefined ? '' : '^';
      return new RegExp(`^[${excludes}${set.replace(/[\\&^]/g, '\\$&')}]$`, 'su');
    });
    return signs.includes('[') ? null : signs;
  } catch {
    return null; // for example a range that goes backwards
  }
};

/**
 * Whether the pattern matches the path or a folder above it, by dynamic programming over prefixes.
 */
const fitsNames = (pattern: readonly string[], names: readonly string[]): boolean => {
  let reached = new Set([0]);
  for (const segment of pattern) {
    const next = new Set<number>();
    for (const count of reached) {
      if (segment === '**') for (let more = count; more <= names.length; more++) next.add(more);
      else if (count < names.length && fitsName(segment, names[count] ?? '')) next.add(count + 1);
    }
    reached = next;
  }
  return reached.size > 0;
};

/** The names in a path. */
const segments = (path: string): readonly string[] =>
  path.split('/').filter((one) => one !== '' && one !== '.');

/** Whether a pattern without braces matches a path. */
const fitsOne = (pattern: string, path: string, workspace: string): boolean => {
  if (pattern.startsWith('/')) return fitsNames(segments(pattern), segments(path));
  const base = workspace.endsWith('/') ? workspace : `${workspace}/`;
  if (!`${path}/`.startsWith(base)) return false;
  const inside = segments(path.slice(base.length));
  const parts = segments(pattern);
  return fitsNames(pattern.replace(/\/$/, '').includes('/') ? parts : ['**', ...parts], inside);
};

/** Whether a pattern matches a real absolute path. */
export const matchesPath = (pattern: string, path: string, workspace: string): boolean =>
  (expandBraces(pattern) ?? [pattern]).some((one) => fitsOne(one, path, workspace));

/** The fault of a pattern; null for a valid one. */
export const patternFault = (pattern: string): string | null => {
  if (pattern.trim() === '') return 'is empty';
  if (segments(pattern).includes('..')) return "may not hold '..'";
  if (pattern.startsWith('!')) return "may not begin with '!': write a rule of the other kind";
  const expanded = expandBraces(pattern);
  if (expanded === null) return `stands for more than ${PATTERNS_MAX} patterns`;
  // such as `{a,b`, which would match nothing
  return expanded.some((one) => /[{}]/.test(one) && one.includes(','))
    ? 'has braces that do not match'
    : null;
};

// ---- Words of commands ----

type Words = ParsedCommand['words'];

/** A word of a command as an absolute path, if it is one: `./a/../b` in the workspace. */
export const absolutePath = (word: string, workspace: string): string => {
  const parts: string[] = [];
  for (const part of (word.startsWith('/') ? word : `${workspace}/${word}`).split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
};

/**
 * Whether the command begins with exactly these words. A word computed at run time matches none.
 */
export const beginsWith = (words: Words, prefix: readonly string[]): boolean =>
  prefix.every((word, index) => words[index] === word);

/** `maybe`: a word that is computed at run time stands where the rule has a word. */
export type RuleMatch = 'yes' | 'no' | 'maybe';

const isOption = (word: string | null | undefined): boolean =>
  word?.startsWith('-') === true && word.length > 1;

/**
 * Whether the rule's words follow the program in order, with only options and their values between
 * them: `git -C x push` matches `git push`.
 */
const matchArguments = (words: Words, rest: readonly string[]): RuleMatch => {
  let at = 1;
  for (const argument of rest) {
    for (;;) {
      const word = words[at];
      if (word === undefined) return 'no';
      if (word === null) return 'maybe';
      if (word === argument) break;
      const isValue = isOption(words[at - 1]);
      if (!isOption(word) && !isValue) return 'no';
      at++;
    }
    at++;
  }
  return 'yes';
};

/** Whether the rule's words are those of a command. */
const matchWords = (words: Words, rule: readonly string[]): RuleMatch => {
  const [program, ...rest] = rule;
  const [first] = words;
  if (first === undefined || program === undefined) return 'no';
  if (first === null) return 'maybe';
  const isSame = first === program || (!program.includes('/') && programName(first) === program);
  return isSame ? matchArguments(words, rest) : 'no';
};

/**
 * Whether a rule that asks or denies matches the command. A wrapper such as `timeout` is also
 * matched at each of its words, where the wrapped command may begin.
 */
export const matchCommand = (
  { words, runs, mayRun }: ParsedCommand,
  rule: readonly string[],
): RuleMatch => {
  const isWrapper = runs !== undefined || mayRun !== undefined;
  const places = isWrapper ? words.map((_, index) => words.slice(index)) : [words];
  // an unknown argument is not taken for a wrapped program: it would match every rule
  const matches = places.map((place, index) =>
    index > 0 && place[0] === null ? 'no' : matchWords(place, rule),
  );
  if (matches.includes('yes')) return 'yes';
  return matches.includes('maybe') ? 'maybe' : 'no';
};
