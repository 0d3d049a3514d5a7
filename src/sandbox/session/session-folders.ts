import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { type UserInfo, userInfo } from 'node:os';
import path from 'node:path';
import type { HomeView } from '../host/home-folders.js';
import { historyFolder } from '../keep-git-history.js';
import { readSmall } from '../protected/git-folders.js';

/**
 * The folders of one session: its home, its /tmp, and files that were set aside.
 *
 * Commands write to home and /tmp. So symlinks are not followed there, and nothing is mounted there that commands could
 * exchange.
 */

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

const foldersOf = (top: string): SessionFolders => ({
  home: path.join(top, 'home'),
  temporary: path.join(top, 'tmp'),
  setAside: path.join(top, 'set-aside'),
  closedFolder: path.join(top, 'closed'),
  closedFile: path.join(top, 'closed-file'),
  users: path.join(top, 'passwd'),
});

/** The launcher's folder, removed with the session. */
export const commandsFolder = (top: string): string => path.join(top, 'commands');

type Owner = Pick<UserInfo<string>, 'uid' | 'gid' | 'username' | 'shell'>;

const owner = (): Owner => {
  try {
    return userInfo();
  } catch {
    // In a container the user id may be missing from /etc/passwd.
    return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, username: 'user', shell: null };
  }
};

/** /etc/passwd with the session's home in this user's entry. */
const usersText = (): string => {
  const { uid, gid, username, shell } = owner();
  const own = `${username}:x:${uid}:${gid}::${INNER_HOME}:${shell ?? '/bin/sh'}`;
  const others = readSmall('/etc/passwd')
    .split('\n')
    .filter((line) => line !== '' && line.split(':')[2] !== String(uid));
  return `${[own, ...others].join('\n')}\n`;
};

/** Makes the symlinks, in a home that no command has used yet. */
const makeLinks = (home: string, links: HomeView['links']): void => {
  for (const { at, to, isFile } of links) {
    const place = path.join(home, at);
    mkdirSync(path.dirname(place), { recursive: true });
    if (isFile) copyFileSync(to, place);
    else symlinkSync(to, place);
  }
};

/** Makes the folders; once per session. */
export const makeFolders = (
  top: string,
  { links }: Pick<HomeView, 'links'>,
  gitSettings: string,
): SessionFolders => {
  const folders = foldersOf(top);
  mkdirSync(top, { recursive: true, mode: OWN_MODE });
  chmodSync(top, OWN_MODE);
  mkdirSync(folders.home, { mode: OWN_MODE });
  mkdirSync(folders.temporary);
  chmodSync(folders.temporary, TEMPORARY_MODE);
  mkdirSync(folders.closedFolder, { mode: 0 });
  writeFileSync(folders.closedFile, '', { mode: 0 });
  writeFileSync(folders.users, usersText(), { mode: 0o644 });
  if (gitSettings !== '') writeFileSync(path.join(folders.home, '.gitconfig'), gitSettings);
  makeLinks(folders.home, links);
  return folders;
};

/**
 * Replaces the links to the user's downloads by empty folders, which a command with network can fill. The parent folder
 * is opened first, since commands may exchange it.
 */
export const unlinkDownloads = (home: string, links: HomeView['links']): void => {
  for (const { at, to } of links.filter(({ isDownload }) => isDownload)) {
    const parent = path.join(home, path.dirname(at));
    let descriptor: number | null = null;
    try {
      descriptor = openSync(parent, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      const below = `/proc/self/fd/${descriptor}`;
      const link = `${below}/${path.basename(at)}`;
      if (readlinkSync(below) !== parent || readlinkSync(link) !== to) continue;
      unlinkSync(link);
      mkdirSync(link);
    } catch {
      // A command has already replaced the link.
    } finally {
      if (descriptor !== null) closeSync(descriptor);
    }
  }
};

const openFolders = (folder: string): void => {
  chmodSync(folder, OWN_MODE);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openFolders(path.join(folder, entry.name));
  }
};

/** Removes a tree, including read-only folders. Never throws. */
const removeTree = (folder: string): void => {
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    remove();
  } catch {
    try {
      openFolders(folder);
      remove();
    } catch {
      // It stays, and the next session tries again.
    }
  }
};

/** Removes all folders that commands use, but not the files of the commands themselves. */
export const removePrivateFolders = (top: string): void => {
  const { home, temporary, closedFolder, closedFile, users } = foldersOf(top);
  for (const folder of [home, temporary, historyFolder(top)]) removeTree(folder);
  for (const place of [closedFolder, closedFile, users]) removeTree(place);
  for (const name of namesIn(top)) if (name.endsWith('.filter')) removeTree(path.join(top, name));
};

/** Removes the session's folders. Files that were set aside stay, since the user may want them. */
export const removeFolders = (top: string): void => {
  removePrivateFolders(top);
  for (const name of [commandsFolder(top), path.join(top, 'session')]) removeTree(name);
  try {
    rmdirSync(top);
  } catch {
    // It holds files that were set aside, or never existed.
  }
};

export const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it is not there
  }
};
