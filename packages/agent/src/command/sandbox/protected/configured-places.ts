import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import { realPathOf, statusOf } from '../../../platform/files/entry-status.js';
import { isWithin } from '../../../platform/files/is-within.js';
import { findRepository, readSmall } from './git-folders.js';

/**
 * Files of the workspace that git's configuration names: hooks, included files, programs.
 *
 * Git runs or obeys them, so a command may change them as little as the configuration. Conditions of `includeIf` count
 * as true.
 */

/** Keys that name a folder or file that git runs or obeys as a whole. */
const NAMES_PLACE =
  /^(?:core\.(?:hookspath|attributesfile)|init\.templatedir|include\.path|includeif\.\*\.path)$/;
/** Keys whose value is a command line. */
const NAMES_COMMAND: readonly RegExp[] = [
  /^core\.(?:fsmonitor|askpass|sshcommand|gitproxy|editor|pager)$/,
  /^(?:sequence\.editor|diff\.external|interactive\.difffilter|uploadpack\.packobjectshook)$/,
  /^filter\.\*\.(?:clean|smudge|process)$/,
  /^diff\.\*\.(?:command|textconv)$/,
  /^merge\.\*\.driver$/,
  /^(?:mergetool|difftool|browser|man)\.\*\.(?:cmd|path)$/,
  /^gpg(?:\.\*)?\.(?:program|defaultkeycommand)$/,
  /^(?:credential|credential\.\*)\.helper$/,
  /^(?:alias|pager)\.[a-z0-9-]+$/,
  /^alias\.\*\.command$/,
  /^remote\.\*\.(?:uploadpack|receivepack|url|pushurl)$/,
  /^submodule\.\*\.update$/,
  /^(?:trailer\.\*\.(?:command|cmd)|tar\.\*\.command|gc\.recentobjectshook|web\.browser|core\.alternaterefscommand)$/,
  /^(?:hook|hook\.\*)\.command$/,
  /^sendemail(?:\.\*)?\.\w+$/,
];

const FILES_MAX = 1_000;
const PLACES_MAX = 200;

type Entry = { readonly key: string; readonly value: string };

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b' };

/** A value without quotes, comments and continuations. */
const plainValue = (text: string): string => {
  let value = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (character === '\\') {
      at += 1;
      value += ESCAPES[text[at] ?? ''] ?? text[at] ?? '';
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === '#' || character === ';')) break;
    else value += character;
  }
  return value.trim();
};

/** All entries of a configuration. Lines that git would refuse are skipped: then it obeys nothing of the file. */
export const configEntries = (text: string): readonly Entry[] => {
  const entries: Entry[] = [];
  let section = '';
  for (const line of text
    .replace(/^\ufeff/, '')
    .replace(/\\\r?\n/g, '')
    .split(/\r?\n/)) {
    let rest = line.trim();
    const head = /^\[\s*([A-Za-z0-9.-]+)\s*("(?:[^"\\]|\\.)*")?\s*\]\s*/.exec(rest);
    if (head !== null) {
      const [name = '', ...dotted] = (head[1] ?? '').toLowerCase().split('.');
      section = head[2] === undefined && dotted.length === 0 ? name : `${name}.*`;
      rest = rest.slice(head[0].length);
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(rest);
    if (entry === null || section === '') continue;
    entries.push({ key: `${section}.${(entry[1] ?? '').toLowerCase()}`, value: plainValue(entry[2] ?? '') });
  }
  return entries;
};

/** Words of a command line that may be names of files. */
const fileWords = (command: string): readonly string[] =>
  command
    .split(/[\s'"`;|&()<>=]+/)
    .filter((word) => word !== '' && !/^-|[$*?%{}:]/.test(word.replace(/^[A-Za-z]:\//, '')));

/** Whether a word of a command line names a file although none is there yet. */
const namesFile = (word: string): boolean =>
  word.includes('/') || /^[\w-]+\.(?:[cm]?[jt]s|sh|bash|py|rb|pl|php|lua)$/.test(word);

export type NamedPlace = {
  readonly path: string;
  /** The key that names it. */
  readonly key: string;
};

/** One configuration file, with the folder in which git runs what it names. */
export type ConfigPlace = { readonly file: string; readonly top: string };

type Reading = {
  readonly workspace: string;
  readonly home: string;
  readonly named: Map<string, NamedPlace>;
  readonly statuses: Map<string, string>;
  readonly visited: Set<string>;
};

const keyOfStatus = (file: string): string => {
  const status = statusOf(file);
  return status === null ? '' : `${status.ino}:${status.ctimeMs}:${status.size}`;
};

const resolveFrom = (folder: string, word: string, home: string): string =>
  word.startsWith('~/') ? path.join(home, word.slice(2)) : path.resolve(folder, word);

/** Adds a place, and what is behind it if it is a symlink. */
const addPlace = (reading: Reading, place: string, key: string): void => {
  const { workspace, named } = reading;
  for (const one of new Set([place, realPathOf(place) ?? place])) {
    if (!isWithin(one, workspace) || one === workspace || named.size >= PLACES_MAX) continue;
    named.set(one, { path: one, key });
  }
};

const addCommandWords = (reading: Reading, command: string, top: string, key: string): void => {
  for (const word of fileWords(command)) {
    const place = resolveFrom(top, word, reading.home);
    const status = statusOf(realPathOf(place) ?? place);
    if (status === null ? namesFile(word) : status.isFile()) addPlace(reading, place, key);
  }
};

/** Whether git runs this value as a command line. */
const isCommand = ({ key, value }: Entry): boolean => {
  if (!NAMES_COMMAND.some((pattern) => pattern.test(key))) return false;
  if (key.startsWith('alias.')) return value.startsWith('!');
  return /url$/.test(key) ? value.includes('::') : !/^(?:true|false|yes|no|on|off|\d+)$/i.test(value);
};

const readConfig = (reading: Reading, { file, top }: ConfigPlace): void => {
  const visit = `${top}\0${file}`;
  if (reading.visited.has(visit) || reading.visited.size >= FILES_MAX) return;
  reading.visited.add(visit);
  reading.statuses.set(file, keyOfStatus(file));
  const real = realPathOf(file);
  for (const entry of configEntries(real === null ? '' : readSmall(real))) {
    const { key, value } = entry;
    if (value === '') continue;
    if (isCommand(entry)) addCommandWords(reading, value.replace(/^!/, ''), top, key);
    if (!NAMES_PLACE.test(key)) continue;
    const isInclude = key.startsWith('include');
    const place = resolveFrom(isInclude ? path.dirname(file) : top, value, reading.home);
    addPlace(reading, place, key);
    if (isInclude) readConfig(reading, { file: place, top });
  }
};

/** The configuration files of the user and the machine. */
const userConfigs = (environment: ProcessEnvironment): readonly string[] => {
  const home = environment.HOME ?? homedir();
  const own = [
    path.join(home, '.gitconfig'),
    path.join(environment.XDG_CONFIG_HOME || path.join(home, '.config'), 'git/config'),
  ];
  const global = environment.GIT_CONFIG_GLOBAL;
  return [...(global ? [global] : own), environment.GIT_CONFIG_SYSTEM || '/etc/gitconfig'];
};

export type ConfiguredPlaces = {
  /** `configs`: those of the repositories; `tops`: folders in which the user's configuration counts. */
  read(configs: readonly ConfigPlace[], tops: readonly string[]): readonly NamedPlace[];
};

/** Reads configurations again only after one of them has changed. */
export const createConfiguredPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): ConfiguredPlaces => {
  let [cachedKey, statuses] = ['', new Map<string, string>()];
  let places: readonly NamedPlace[] = [];
  return {
    read(configs, tops) {
      const key = JSON.stringify([configs, tops]);
      const isSame =
        key === cachedKey && [...statuses].every(([file, status]) => keyOfStatus(file) === status);
      if (isSame) return places;
      const home = environment.HOME ?? homedir();
      const reading: Reading = {
        workspace,
        home,
        named: new Map(),
        statuses: new Map(),
        visited: new Set<string>(),
      };
      const user = userConfigs(environment).filter(path.isAbsolute);
      const all = [...configs, ...tops.flatMap((top) => user.map((file) => ({ file, top })))];
      for (const config of all) readConfig(reading, config);
      [cachedKey, statuses, places] = [key, reading.statuses, [...reading.named.values()]];
      return places;
    },
  };
};

/** What git's configuration names in the workspace, for tools that write files themselves. */
export const createNamedPlaces = (
  workspace: string,
  environment: ProcessEnvironment,
): (() => readonly NamedPlace[]) => {
  const places = createConfiguredPlaces(workspace, environment);
  return () => {
    const found = findRepository(workspace);
    if (found.kind !== 'found') return places.read([], [workspace]);
    const { top, folder } = found.repository;
    const configs = ['config', 'config.worktree'].map((name) => ({ file: path.join(folder, name), top }));
    return places.read(configs, [top]);
  };
};
