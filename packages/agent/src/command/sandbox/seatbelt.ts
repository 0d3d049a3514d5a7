/**
 * Seatbelt, the sandbox of macOS: the profile for one command, made from the same places as the
 * mounts of bubblewrap. Its base, seatbelt.sbpl, denies all but programs and the reading of the
 * system, and hides people's folders. The rules here open and close places.
 *
 * A profile is a list of rules; of those that match an act, the last one decides. The kernel
 * compares real paths, as they lie on the disk, at the time of the act, so a rule with another
 * spelling of a path would match nothing. A rule for a folder and all below holds whatever a
 * command exchanges or creates later. One for a protected name with a folder (`.github/workflows`)
 * does not: a folder that holds `workflows` can be moved to `.github`. protected-files.ts finds
 * that after the command, and sets the files aside.
 *
 * Names of folders come from cloned repositories. None of them stands as it is in the text of
 * a profile: paths are parameters. The exception is the pattern of the workspace, which keeps only
 * letters, digits, `/`, `_` and `-` (`folderPattern`).
 *
 * Against bubblewrap it lacks namespaces: a command sees that other processes exist, it has no
 * private loopback, and /tmp is another folder, which TMPDIR names.
 *
 * Written for macOS, and not yet run on one by us: the probe tries it on each machine, and a fence
 * that fails is not used.
 */

import { readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { isWithin } from '../../platform/files.js';
import { PROTECTED_PATHS } from '../../policy/paths.js';
import type { FenceContents } from './fence.js';
import { pathDepth, withoutInner } from './host.js';

/** What a command may reach. All paths are real ones. */
export type SeatbeltPlaces = {
  /** What it sees; of two places the deeper one counts, and of equal ones the later. */
  readonly places: readonly { readonly path: string; readonly right: 'read' | 'write' }[];
  /** Folders that it does not see, beside those that seatbelt.sbpl hides. */
  readonly hidden: readonly string[];
  /** Paths inside the places that it must not see, nor anything inside them. */
  readonly masked: readonly string[];
  /** The workspace if the command may write to it: protected names are closed there. */
  readonly writableWorkspace: string | null;
  /** Protected files that it may write: the user allowed that. */
  readonly allowed: readonly string[];
  /** Its folder for temporary files, in which it may have sockets. */
  readonly temporary: string;
  readonly network: boolean;
};

/** The text, and the values of its parameters P0, P1, …. */
export type SeatbeltProfile = { readonly text: string; readonly parameters: readonly string[] };

/** The bundler puts the text in place of the call. */
const BASE = readFileSync(new URL('./seatbelt.sbpl', import.meta.url), 'utf8').replace(
  /^ *;.*\n/gm,
  '',
);

/** Services with which programs check certificates, and find hosts and the network. */
const NETWORK_SERVICES = [
  ...['com.apple.SystemConfiguration.configd', 'com.apple.SystemConfiguration.DNSConfiguration'],
  ...['com.apple.networkd', 'com.apple.dnssd.service', 'com.apple.trustd.agent'],
];

/** Without it no name of a host is found. */
const RESOLVER = '/private/var/run/mDNSResponder';

// ---- Names in patterns ----

/** Letters that a file system without case takes for the same. */
const FOLDED: Readonly<Record<string, string>> = { k: '(k|K|\u212a)', s: '(s|S|\u017f)' };

const letterPattern = (letter: string): string =>
  FOLDED[letter.toLowerCase()] ??
  (/[a-z]/i.test(letter) ? `[${letter.toLowerCase()}${letter.toUpperCase()}]` : letter);

/** A protected path, in every case. `*` matches any start of a name. */
const namePattern = (name: string): string =>
  Array.from(name, (letter) => {
    if (letter === '*') return '[^/]*';
    return letter === '.' ? '[.]' : letterPattern(letter);
  }).join('');

/**
 * A folder in a pattern that denies. Every other character matches any text without `/`: so the
 * pattern matches more than this folder, and no name in it can mean anything else.
 */
const folderPattern = (folder: string): string => folder.replace(/[^A-Za-z0-9/_-]+/g, '[^/]*');

/**
 * Names that are closed wherever they lie in the workspace, also before they exist. A repository
 * may be made: what git would run of it is looked at after the command, as on Linux. A name below
 * or behind another one (`one/…`, `…/one`) is left out: that one's pattern matches it.
 */
const CLOSED_NAMES = PROTECTED_PATHS.map(({ path: name }) => name).filter(
  (name, _, all) =>
    name !== '.git' && !all.some((one) => name.startsWith(`${one}/`) || name.endsWith(`/${one}`)),
);

// ---- The rules ----

/** Each place with the right that the place around it gives; outside of all, only to read. */
const withRights = (places: SeatbeltPlaces['places']) =>
  places.map((place, index) => ({
    ...place,
    around:
      places.slice(0, index).findLast((one) => isWithin(place.path, one.path))?.right ?? 'read',
  }));

/** The folders above a place, the top one first, without `/`. */
const foldersAbove = (place: string): readonly string[] => {
  const names = path.dirname(place).split('/').slice(1);
  return names[0] === '' ? [] : names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`);
};

/** Writes rules, and remembers the parameters that they name. */
class RuleWriter {
  readonly lines: string[] = [];
  readonly parameters: string[] = [];

  /** A rule for these paths; none if there are none. */
  add(rule: string, filter: 'subpath' | 'literal', paths: readonly string[]): void {
    const filters = [...new Set(paths)].map((one) => `(${filter} (param "${this.#name(one)}"))`);
    if (filters.length > 0) this.lines.push(`(${rule}\n  ${filters.join('\n  ')})`);
  }

  #name(value: string): string {
    const at = this.parameters.indexOf(value);
    return `P${at === -1 ? this.parameters.push(value) - 1 : at}`;
  }
}

/** Rules for the workspace, after those that make it writable. */
const closeNames = (rules: RuleWriter, workspace: string, allowed: readonly string[]): void => {
  const start = `^${folderPattern(workspace)}/(.*/)?`;
  const filters = CLOSED_NAMES.map((name) => `(regex "${start}${namePattern(name)}(/.*)?$")`);
  rules.lines.push(`(deny file-write*\n  ${filters.join('\n  ')})`);
  // With the folders above: one that is not there yet comes with its file. They can be moved, too,
  // which protected-files.ts finds after the command.
  const above = allowed.flatMap(foldersAbove).filter((one) => isWithin(one, workspace));
  rules.add('allow file-write*', 'literal', [
    ...above.filter((one) => one !== workspace),
    ...allowed,
  ]);
};

/** The profile of a command. Nothing in the name of a folder is taken for a rule. */
export const seatbeltProfile = (contents: SeatbeltPlaces): SeatbeltProfile => {
  const { hidden, masked, writableWorkspace, allowed, temporary, network } = contents;
  const places = contents.places.toSorted(
    (one, other) => pathDepth(one.path) - pathDepth(other.path),
  );
  const rules = new RuleWriter();
  rules.add('deny file-read*', 'subpath', hidden);
  const shown = withoutInner(places.map(({ path: place }) => place));
  rules.add('allow file-read-metadata', 'literal', shown.flatMap(foldersAbove));
  rules.add('allow file-read*', 'subpath', shown);
  const writable = places.filter(({ right }) => right === 'write').map((one) => one.path);
  const closed: string[] = [];
  for (const { path: place, right, around } of withRights(places)) {
    if (right === around) continue;
    if (right === 'read') closed.push(place);
    rules.add(`${right === 'write' ? 'allow' : 'deny'} file-write*`, 'subpath', [place]);
  }
  if (writableWorkspace !== null) closeNames(rules, writableWorkspace, allowed);
  // Moving a folder above one of these places would take it along, and leave its path free. So would
  // moving a writable place itself.
  const unmovable = [...closed, ...writable, ...masked].flatMap((place) => [
    ...foldersAbove(place).filter((one) => writable.some((outer) => isWithin(one, outer))),
    ...(writable.includes(place) ? [place] : []),
  ]);
  rules.add('deny file-write-unlink', 'literal', unmovable);
  rules.add('deny file-read* file-write*', 'subpath', masked);
  addNetwork(rules, network, temporary);
  const text = `${[BASE.trim(), ...rules.lines].join('\n')}\n`;
  return { text, parameters: rules.parameters };
};

/** A path in a rule about the network is that of a socket: behind one is a program of the user. */
const addNetwork = (rules: RuleWriter, network: boolean, temporary: string): void => {
  if (network) {
    const services = NETWORK_SERVICES.map((name) => `(global-name "${name}")`);
    rules.lines.push(
      '(allow network*)',
      '(deny network* (subpath "/"))',
      `(allow network-outbound (literal "${RESOLVER}"))`,
      `(allow mach-lookup\n  ${services.join('\n  ')})`,
    );
  }
  rules.add('allow network*', 'subpath', [temporary]);
};

// ---- The places of a fence ----

/** As it lies on the disk: with its links resolved, and in the case that it was created in. */
const onDisk = (place: string): string => {
  try {
    return realpathSync.native(place);
  } catch {
    return place; // it is not there: no command can reach it by another spelling either
  }
};

/** What a fence shows, for a profile. */
const viewPlaces = (contents: FenceContents, hidden: readonly string[]): SeatbeltPlaces => {
  const { folders, mounts, masked, network, isHomeWritable, workspace, allowed } = contents;
  const shown = mounts.flatMap(({ from, right }) =>
    right === 'read' || right === 'write' ? [{ path: onDisk(from), right }] : [],
  );
  const temporary = onDisk(folders.temporary);
  const top = onDisk(workspace);
  const isWritable = shown.some((one) => one.path === top && one.right === 'write');
  return {
    places: [
      ...shown,
      { path: onDisk(folders.home), right: isHomeWritable ? 'write' : 'read' },
      { path: temporary, right: 'write' },
    ],
    hidden: hidden.map(onDisk),
    masked: masked.map(onDisk),
    writableWorkspace: isWritable ? top : null,
    allowed: allowed.map(onDisk),
    temporary,
    network,
  };
};

/**
 * The words of sandbox-exec up to the command line. `hidden`: folders of which the command sees
 * only the places that `contents` names. The system is not among the places, but can be read: so
 * what must not be seen of it has to be hidden.
 */
export const seatbeltWords = (
  contents: FenceContents,
  hidden: readonly string[],
): readonly string[] => {
  const { text, parameters } = seatbeltProfile(viewPlaces(contents, hidden));
  return ['-p', text, ...parameters.map((value, index) => `-DP${index}=${value}`), '--'];
};
