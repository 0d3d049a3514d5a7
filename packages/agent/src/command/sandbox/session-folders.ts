/**
 * The folder of one process of a session: the home and /tmp of its commands, copies of git's
 * history, files that were set aside, and records for later processes. To set a file aside is to
 * move it away, so that nothing obeys it: a command created it at a protected path.
 *
 * A session that is resumed has a further process, with another such folder. In this file "the
 * session's" home and /tmp are those of this process, which its commands share. Only a command with
 * a higher sandbox level (what a command may change and reach, policy/decide.ts) than the session's
 * gets fresh ones, for itself alone.
 *
 * Commands write to home and /tmp. So symlinks are not followed there, and nothing is mounted there
 * that commands could exchange.
 *
 * From top to bottom: the folders, and making them; the fresh home and /tmp of one command;
 * removing all of it; the record of the session that a folder belongs to; and the calls that were
 * sent to other programs. `top`, or `folder` in the records, is the folder of the process.
 */

import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { type UserInfo, userInfo } from 'node:os';
import path from 'node:path';
import {
  descriptorPath,
  entriesIn,
  entryStatus,
  hasDescriptorPaths,
  namesIn,
  readSmall,
  writePrivateSync,
} from '../../platform/files.js';
import { bootId, pidNamespace } from '../../platform/processes.js';
import { inFolder } from '../../platform/replaceable-files.js';
import type { GitFiles, HomeView } from './host.js';

/** Path of the session's home inside the sandbox. */
export const INNER_HOME = '/run/pawl/home';

export type SessionFolders = {
  readonly home: string;
  readonly temporary: string;
  readonly setAside: string;
  /** An unreadable folder and an unreadable file, which are mounted over secrets. */
  readonly closedFolder: string;
  readonly closedFile: string;
  /** /etc/passwd, with the session's home. */
  readonly users: string;
};

const TEMPORARY_MODE = 0o1777;
const OWN_MODE = 0o700;

const placesIn = (top: string): SessionFolders => ({
  home: path.join(top, 'home'),
  temporary: path.join(top, 'tmp'),
  setAside: path.join(top, 'set-aside'),
  closedFolder: path.join(top, 'closed'),
  closedFile: path.join(top, 'closed-file'),
  users: path.join(top, 'passwd'),
});

/** The launcher's folder. */
export const commandsFolder = (top: string): string => path.join(top, 'commands');
/** Folder of the copies of git's history. */
export const historyFolder = (top: string): string => path.join(top, 'history');
/** The record of the protected paths, for a later process. It is absent while no command runs. */
export const protectedRecord = (top: string): string => path.join(top, 'protected.json');

/** The entry of this user in /etc/passwd. */
type Owner = Pick<UserInfo<string>, 'uid' | 'gid' | 'username' | 'shell'>;

const owner = (): Owner => {
  try {
    return userInfo();
  } catch {
    // In a container the user id may be missing from /etc/passwd.
    return {
      uid: process.geteuid?.() ?? 0,
      gid: process.getegid?.() ?? 0,
      username: 'user',
      shell: null,
    };
  }
};

/** /etc/passwd with the session's home in this user's entry. */
const usersText = (): string => {
  const { uid, gid, username, shell } = owner();
  const userLine = `${username}:x:${uid}:${gid}::${INNER_HOME}:${shell ?? '/bin/sh'}`;
  const others = readSmall('/etc/passwd')
    .split('\n')
    .filter((line) => line !== '' && line.split(':')[2] !== String(uid));
  return `${[userLine, ...others].join('\n')}\n`;
};

/** Makes the user's files and symlinks in a home that no command has used yet. */
const fillHome = (home: string, links: HomeView['links'], gitFiles: GitFiles): void => {
  for (const [name, text] of gitFiles) {
    const place = path.join(home, name);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
  for (const { at, to, isFile } of links) {
    const place = path.join(home, at);
    mkdirSync(path.dirname(place), { recursive: true });
    if (isFile) copyFileSync(to, place);
    else symlinkSync(to, place);
  }
};

/** Makes the folders; once per process. */
export const makeFolders = (
  top: string,
  { links }: Pick<HomeView, 'links'>,
  gitFiles: GitFiles,
): SessionFolders => {
  const folders = placesIn(top);
  mkdirSync(top, { recursive: true, mode: OWN_MODE });
  chmodSync(top, OWN_MODE);
  mkdirSync(folders.home, { mode: OWN_MODE });
  mkdirSync(folders.temporary);
  chmodSync(folders.temporary, TEMPORARY_MODE);
  mkdirSync(folders.closedFolder, { mode: 0 });
  writeFileSync(folders.closedFile, '', { mode: 0 });
  writeFileSync(folders.users, usersText(), { mode: 0o644 });
  fillHome(folders.home, links, gitFiles);
  return folders;
};

/**
 * Gives home and /tmp back the rights that a command has taken from itself (`chmod 000 ~`): neither
 * a later command nor `carryOver` could use them. The paths can't be exchanged: a command sees only
 * what is in them.
 */
export const restoreRights = ({ home, temporary }: SessionFolders): void => {
  for (const [folder, mode] of [
    [home, OWN_MODE],
    [temporary, TEMPORARY_MODE],
  ] as const) {
    const now = entryStatus(folder)?.mode ?? mode;
    if ((now & OWN_MODE) !== OWN_MODE) chmodSync(folder, mode);
  }
};

/**
 * Replaces the links to the user's downloads by empty folders, which a command with network can
 * fill. The parent folder is opened first, since commands may exchange it.
 */
export const unlinkDownloads = (home: string, links: HomeView['links']): void => {
  for (const { at, to } of links.filter(({ isDownload }) => isDownload)) {
    inFolder(path.join(home, path.dirname(at)), (below) => {
      const link = `${below}/${path.basename(at)}`;
      if (readlinkSync(link) !== to) return; // a command has already replaced it
      unlinkSync(link);
      mkdirSync(link);
    });
  }
};

// ---- A fresh home and /tmp for one command ----

/** Fresh folders, below the folder of the process. */
const FRESH = /^fresh-\d+$/;

/**
 * A home and /tmp for one command with a higher sandbox level than the session's. They hold what
 * the session's held before its first command, so nothing that an earlier command prepared there (a
 * `.gitconfig`, a `.local/bin/git`) is read.
 */
export const makeFreshFolders = (
  top: string,
  number: number,
  { links }: Pick<HomeView, 'links'>,
  session: SessionFolders,
  gitFiles: GitFiles,
): SessionFolders => {
  const { home, temporary } = placesIn(path.join(top, `fresh-${number}`));
  mkdirSync(home, { recursive: true, mode: OWN_MODE });
  mkdirSync(temporary);
  chmodSync(temporary, TEMPORARY_MODE);
  fillHome(home, links, gitFiles);
  unlinkDownloads(home, links);
  return { ...session, home, temporary };
};

/** Opens a folder, so that it stays the same one even if a command exchanges its path. */
const openEntry = (place: string): number | null => {
  try {
    return openSync(place, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch {
    return null; // no folder, or a symlink
  }
};

/**
 * Moves one entry. The kernel moves no folder that its owner may not write to (Go's modules), so
 * such a folder is made writable meanwhile.
 */
const moveEntry = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    const folder = openEntry(from);
    if (folder === null) throw error;
    const { mode } = fstatSync(folder);
    try {
      fchmodSync(folder, OWN_MODE);
      renameSync(from, to);
    } finally {
      fchmodSync(folder, mode & 0o7777);
      closeSync(folder);
    }
  }
};

const isLinkTo = (place: string, targets: ReadonlySet<string>): boolean => {
  try {
    return targets.has(readlinkSync(place));
  } catch {
    return false; // no symlink
  }
};

/** Whether an entry, at this path in its home or /tmp, is one that `fillHome` made. */
type IsFilled = (place: string, at: string) => boolean;

/**
 * Moves the entries of one open folder to another, except those that `isFilled`. `above`: the path
 * of the folder in its home or /tmp. Returns the number of failures.
 */
const moveEntries = (from: number, to: number, isFilled: IsFilled, above = ''): number => {
  let failures = 0;
  for (const entry of readdirSync(descriptorPath(from), { withFileTypes: true })) {
    const source = `${descriptorPath(from)}/${entry.name}`;
    const target = `${descriptorPath(to)}/${entry.name}`;
    const at = path.join(above, entry.name);
    if (isFilled(source, at)) continue;
    const sourceFolder = entry.isDirectory() ? openEntry(source) : null;
    const targetFolder = sourceFolder === null ? null : openEntry(target);
    try {
      if (sourceFolder !== null && targetFolder !== null)
        failures += moveEntries(sourceFolder, targetFolder, isFilled, at);
      else {
        const isEmpty =
          sourceFolder !== null && readdirSync(descriptorPath(sourceFolder)).length === 0;
        // a folder for downloads that got none
        if (isEmpty && entryStatus(target) !== null) continue;
        // A file or link there, which a folder can't replace by itself.
        if (sourceFolder !== null) rmSync(target, { force: true });
        moveEntry(source, target);
      }
    } catch {
      failures += 1; // for example a file where a folder is
    } finally {
      for (const descriptor of [sourceFolder, targetFolder])
        if (descriptor !== null) closeSync(descriptor);
    }
  }
  return failures;
};

/** Number of files and links in a folder, without those that `isFilled`. */
const countFiles = (folder: string, isFilled: IsFilled, above = ''): number => {
  let count = 0;
  for (const entry of entriesIn(folder)) {
    const place = path.join(folder, entry.name);
    const at = path.join(above, entry.name);
    if (isFilled(place, at)) continue;
    if (entry.isDirectory()) count += countFiles(place, isFilled, at);
    else count += 1;
  }
  return count;
};

/**
 * Moves the files of a command from its fresh home and /tmp to those of the session, where later
 * commands look. Commands may exchange folders there meanwhile, so both sides are reached through
 * open folders. Where these are no paths, nothing is moved: a command could lead us elsewhere.
 * What `fillHome` made stays behind. Returns the number of entries that could not be moved.
 */
export const carryOver = (
  fresh: SessionFolders,
  session: SessionFolders,
  { links }: Pick<HomeView, 'links'>,
  gitFiles: GitFiles,
): number => {
  const linkTargets = new Set(links.map(({ to }) => to));
  for (const folders of [fresh, session]) restoreRights(folders);
  removeTree(path.join(fresh.home, '.gitconfig'));
  let failures = 0;
  const copies = [...gitFiles.keys(), ...links.filter(({ isFile }) => isFile).map(({ at }) => at)];
  for (const [from, to, stay] of [
    [fresh.home, session.home, new Set(copies)],
    [fresh.temporary, session.temporary, new Set()],
  ] as const) {
    const isFilled: IsFilled = (place, at) => stay.has(at) || isLinkTo(place, linkTargets);
    if (!hasDescriptorPaths()) {
      failures += countFiles(from, isFilled);
      continue;
    }
    const source = openEntry(from);
    const target = openEntry(to);
    try {
      if (source !== null && target !== null) failures += moveEntries(source, target, isFilled);
    } catch {
      failures += 1; // a folder could not be listed
    }
    for (const descriptor of [source, target]) if (descriptor !== null) closeSync(descriptor);
  }
  removeTree(path.dirname(fresh.home));
  return failures;
};

// ---- Removing folders ----

/** Removes a tree, including read-only folders. Never throws. */
const removeTree = (folder: string): void => {
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    remove();
  } catch {
    try {
      makeWritable(folder);
      remove();
    } catch {
      // It stays, and the next session tries again.
    }
  }
};

/** Makes the folders of a tree writable: Go's modules are read-only, for example. */
const makeWritable = (folder: string): void => {
  chmodSync(folder, OWN_MODE);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(path.join(folder, entry.name));
  }
};

/** Removes all folders that commands use, but not the files of the commands themselves. */
export const removePrivateFolders = (top: string): void => {
  const { home, temporary, closedFolder, closedFile, users } = placesIn(top);
  for (const folder of [home, temporary, historyFolder(top)]) removeTree(folder);
  for (const place of [closedFolder, closedFile, users]) removeTree(place);
  for (const name of namesIn(top)) {
    if (/\.(filter|new)$/.test(name) || FRESH.test(name)) removeTree(path.join(top, name));
  }
};

/** Removes the session's folders. Files that were set aside stay, since the user may want them. */
export const removeFolders = (top: string): void => {
  removePrivateFolders(top);
  for (const place of [commandsFolder(top), sessionFile(top), sentFile(top)]) removeTree(place);
  // earlier versions emptied it
  if (entryStatus(protectedRecord(top))?.size === 0) rmSync(protectedRecord(top), { force: true });
  try {
    rmdirSync(top);
  } catch {
    // It holds files that were set aside, or never existed.
  }
};

// ---- The record of a session, in the file `session` of the folder ----

/**
 * The session that a folder belongs to. Each process of a session has one folder:
 * so a later process finds the commands of one that was killed.
 */
export type SessionRecord = {
  readonly sessionId: string;
  /** Boot id and pid namespace. */
  readonly machine: string;
  /** Device and inode of the folder at its creation; empty in a record of an earlier version. */
  readonly folder: string;
};

/**
 * Where the commands of a record ran. `here`: process numbers mean the same. `namespace`: this
 * machine since its last start, in another pid namespace. `elsewhere`: another machine, or this one
 * before it was restarted. `copy`: the folder is a copy of the one that the commands use.
 */
export type RecordOrigin = 'here' | 'namespace' | 'elsewhere' | 'copy';

/** This machine since its last start, and this pid namespace. Null if that is unknown. */
const thisMachine = (): string | null => {
  const boot = bootId();
  const pids = pidNamespace();
  return boot === '' || pids === '' ? null : `${boot} ${pids}`;
};

/** Device and inode: a copy has others. */
const identifyFolder = (folder: string): string => {
  const status = entryStatus(folder);
  return status === null ? '' : `${status.dev}:${status.ino}`;
};

/** Where the process of a folder ran. */
export const findOrigin = (folder: string, record: SessionRecord): RecordOrigin => {
  const machine = thisMachine();
  const [boot] = record.machine.split(' ');
  if (machine === null || boot !== machine.split(' ')[0]) return 'elsewhere';
  if (record.folder !== '' && record.folder !== identifyFolder(folder)) return 'copy';
  return record.machine === machine ? 'here' : 'namespace';
};

export const sessionFile = (folder: string): string => path.join(folder, 'session');

/**
 * Makes the folder and names its session in it. Without the record, an interrupted command counts
 * as unknown.
 */
export const recordSession = (folder: string, sessionId: string): void => {
  const machine = thisMachine();
  if (machine === null) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const lines = [sessionId, machine, identifyFolder(folder)];
    writePrivateSync(sessionFile(folder), `${lines.join('\n')}\n`);
  } catch {
    // The disk is full: the command itself will fail and say so.
  }
};

/** Null if there is none, or only a part of one. */
export const readSession = (folder: string): SessionRecord | null => {
  try {
    const [sessionId = '', machine = '', place] = readFileSync(sessionFile(folder), 'utf8').split(
      '\n',
    );
    return place === undefined ? null : { sessionId, machine, folder: place };
  } catch {
    // it belongs to no session that can be resumed, or its process was killed before it began
    return null;
  }
};

// ---- Calls that were sent to other programs, such as MCP servers ----

const sentFile = (folder: string): string => path.join(folder, 'sent');

const sentLine = (call: string): string => JSON.stringify(call);

/**
 * Records that a call is about to leave this process. Throws if that can't be written: then the
 * call must not leave it. The first newline ends a line that a full disk has cut.
 */
export const recordSent = (folder: string, call: string): void =>
  appendFileSync(sentFile(folder), `\n${sentLine(call)}\n`);

/** Whether the process of a folder has sent a call. */
export const hasSent = (folder: string, call: string): boolean => {
  try {
    return readFileSync(sentFile(folder), 'utf8').split('\n').includes(sentLine(call));
  } catch {
    return false; // it has sent none
  }
};
