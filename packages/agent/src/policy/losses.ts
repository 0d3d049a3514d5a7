/**
 * What a command would destroy, by its words: the files that it deletes or overwrites, the folders
 * in which it may run, and whether the loss is the workspace as a whole. "Loss" is what git could
 * not bring back. The policy asks before a loss, and decide.ts makes the decision. What git itself
 * destroys: programs/git.ts.
 */

import type { ParsedCommand } from './judged-call.js';
import {
  absolutePath,
  addEscapes,
  expandBraces,
  fitsName,
  partSigns,
  removeEscapes,
} from './patterns.js';
import { type FileLoss, type FileWord, lossesByWords, UNKNOWN } from './programs/file-losses.js';
import { matchesOption } from './programs/program.js';
import { findRow } from './programs/program-table.js';

/** Devices, such as /dev/null: a write to one counts as no loss. */
const DEVICE = /^\/dev\//;

/** What a command deletes or overwrites: its files, and the targets of its redirections. */
export const fileLossesIn = (command: ParsedCommand): readonly FileLoss[] => {
  const { writes, appends = [] } = command;
  const overwritten = writes.flatMap((file, index): readonly FileLoss[] => {
    if (appends.includes(index) || (file !== null && DEVICE.test(file))) return [];
    return [{ kind: 'file', file: file === null ? UNKNOWN : { kind: 'path', text: file } }];
  });
  const { losses } = findRow(command.words[0]) ?? {};
  if (losses === undefined) return overwritten;
  const words = fileWords(command).slice(1);
  const named = typeof losses === 'function' ? losses(words) : lossesByWords(losses, words);
  return [...named, ...overwritten];
};

/** The words of a command as names of files. */
const fileWords = ({
  words,
  patterns,
}: Pick<ParsedCommand, 'words' | 'patterns'>): readonly FileWord[] =>
  words.map((word, index): FileWord => {
    if (word !== null) return { kind: 'path', text: word };
    const pattern = patterns?.[index] ?? null;
    return pattern === null ? UNKNOWN : { kind: 'pattern', text: pattern };
  });

// ---- The folders in which commands may run ----

/** Folders that are followed for one text. */
const FOLDERS_MAX = 300;

/** Options of wrappers that run their command in another folder. */
const FOLDER_OPTIONS = '-C -D -w --chdir --cwd --dir --directory --prefix --wd --working-directory';

/** The words that may name a folder to which a command goes, or where it runs another one. */
const folderWords = (command: ParsedCommand): readonly FileWord[] => {
  const { words, runs = 0 } = command;
  const named = fileWords(command);
  // `pushd +1` and `popd` go back to a folder from before
  if (/^(cd|pushd|popd)$/.test(words[0] ?? ''))
    return named.filter(
      (_, index) => index > 0 && !/^(-[a-zA-Z@-]|[-+]\d)/.test(words[index] ?? ''),
    );
  return words.slice(0, runs).flatMap((word, index) => {
    if (word === null || !matchesOption(word, FOLDER_OPTIONS)) return [];
    const text = word.replace(/^(--[^=]*=?|-[a-zA-Z]*?[CDw])/, '');
    return text === '' ? [named[index + 1] ?? UNKNOWN] : [{ kind: 'path', text }];
  });
};

/** The path that a word surely is; null for several, and for one that is known at run time. */
const plainPath = (word: FileWord): string | null => {
  if (word.kind === 'path') return word.text;
  return word.kind === 'unknown' || /(^|[^\\])[*?[{]/.test(word.text)
    ? null
    : removeEscapes(word.text);
};

/**
 * All folders in which any of the commands may run: each `cd` and `pushd` may have run before it,
 * or not, since it may fail or stand in a subshell. `isComplete`: there are no others.
 */
export const commandFolders = (
  commands: readonly ParsedCommand[],
  workspace: string,
): { readonly folders: readonly string[]; readonly isComplete: boolean } => {
  let folders: readonly string[] = [workspace];
  let isComplete = true;
  for (const command of commands) {
    const { words, assignments } = command;
    const goesHome = words[0] === 'cd' && words.length === 1;
    if (goesHome || assignments.some((one) => one.startsWith('CDPATH='))) isComplete = false;
    for (const target of folderWords(command).map(plainPath)) {
      // `cd -` goes back; without a `cd` before it the folder stands in the environment
      const isBack = target === '-' && folders.length > 1;
      if (isBack) continue;
      const isFollowed = target !== null && target !== '-' && folders.length <= FOLDERS_MAX;
      isComplete &&= isFollowed;
      if (isFollowed)
        folders = [...new Set([...folders, ...folders.map((one) => absolutePath(target, one))])];
    }
  }
  return { folders, isComplete };
};

// ---- The workspace as a whole ----

/** Parts of git's own folder that hold commits. */
const HISTORY = ['objects', 'refs', 'logs', 'packed-refs', 'HEAD', 'index'];
/** A pattern that fits these names stands for all files. */
const ANY_NAMES = ['x', 'package.json'];
/** Words in folders that are looked at for one text. */
const LOOKS_MAX = 20_000;

/** Whether a part of a pattern fits a name. Hidden names need the dot. */
const fitsPart = (part: string, name: string): boolean => {
  if (part === name) return true;
  if (name.startsWith('.') && !part.startsWith('.')) return false;
  const signs = partSigns(part);
  return signs === null ? name.startsWith('.') : fitsName(signs, [...name]);
};

/** The patterns that a word stands for; those of a path have escapes alone. Null: too many. */
const wordPatterns = (file: FileWord): readonly string[] | null => {
  if (file.kind === 'unknown') return [];
  return file.kind === 'path' ? [addEscapes(file.text)] : expandBraces(file.text);
};

/** Whether a loss of what the pattern stands for is a loss of the workspace or its history. */
const isWhole = (pattern: string, folder: string, workspace: string): boolean => {
  const parts = absolutePath(pattern, addEscapes(folder)).split('/').filter(Boolean);
  const names = workspace.split('/').filter(Boolean);
  if (!parts.every((part, index) => fitsPart(part, names[index] ?? part))) return false;
  const [top, inside] = parts.slice(names.length);
  if (top === undefined) return true; // the workspace, or a folder above it
  if (inside === undefined && ANY_NAMES.every((name) => fitsPart(top, name))) return true;
  if (!fitsPart(top, '.git')) return false;
  return inside === undefined || HISTORY.some((name) => fitsPart(inside, name));
};

const WIPED = 'the workspace as a whole, or its history, would be lost';

/** Why commands would delete the workspace as a whole or its history; null if they do not. */
export const wipesWorkspace = (
  commands: readonly ParsedCommand[],
  workspace: string,
): string | null => {
  const deletions: ParsedCommand[] = [];
  for (const command of commands) {
    const deletes = findRow(command.words[0])?.deletes;
    if (deletes === 'always' || deletes?.(command.words) === true) deletions.push(command);
  }
  if (deletions.length === 0) return null;
  const { folders: known, isComplete } = commandFolders(commands, workspace);
  // a folder that is known only at run time may be the one around the workspace
  const folders = isComplete ? known : [...known, absolutePath('..', workspace)];
  let looks = 0;
  for (const command of deletions) {
    const { folder } = command;
    const files = fileLossesIn({ ...command, writes: [] }).flatMap((loss) => {
      if (loss.kind === 'file') return [loss.file];
      return loss.moves ? loss.sources : [];
    });
    const places = folders.map((one) => (folder === undefined ? one : absolutePath(folder, one)));
    for (const patterns of files.map(wordPatterns)) {
      looks += (patterns?.length ?? 0) * folders.length;
      // what is too much to be followed could be anything
      if (patterns === null || folders.length > FOLDERS_MAX || looks > LOOKS_MAX) return WIPED;
      if (patterns.some((text) => places.some((place) => isWhole(text, place, workspace))))
        return WIPED;
    }
  }
  return null;
};

/** What a command would destroy for good beside files, as the reason to ask; null if nothing. */
export const findGitLoss = ({
  words: written,
  readAs: words = written,
  undoes,
}: ParsedCommand): string | null =>
  // it deletes only what the command before it has made, so nothing is lost
  undoes === 'previous' ? null : (findRow(words[0])?.destroys?.(words) ?? null);
