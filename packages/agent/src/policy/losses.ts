/**
 * What a command would destroy, by its words: the files that it deletes or overwrites, and whether
 * that is the workspace as a whole. "Loss" is what git could not bring back. The policy asks before
 * a loss, and decide.ts makes the decision. What git itself destroys: programs/git.ts.
 */

import type { ParsedCommand } from './judged-call.js';
import { absolutePath, expandBraces, fitsName, partSigns } from './patterns.js';
import { type FileLoss, type FileWord, lossesByWords, UNKNOWN } from './programs/file-losses.js';
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

// ---- The workspace as a whole ----

/** Parts of git's own folder that hold commits. */
const HISTORY = ['objects', 'refs', 'logs', 'packed-refs', 'HEAD', 'index'];
/** A pattern that fits these names stands for all files. */
const ANY_NAMES = ['x', 'package.json'];
/** Folders in which a command may run, and words in folders that are looked at. */
const FOLDERS_MAX = 300;
const LOOKS_MAX = 20_000;

const addEscapes = (text: string): string => text.replace(/[\\*?[\]{},]/g, '\\$&');

/** Whether a part of a pattern fits a name. Hidden names need the dot. */
const fitsPart = (part: string, name: string): boolean => {
  if (part === name) return true;
  if (name.startsWith('.') && !part.startsWith('.')) return false;
  const signs = partSigns(part);
  return signs === null ? name.startsWith('.') : fitsName(signs, [...name]);
};

/** The patterns that a word stands for; those of a path have escapes alone. */
const wordPatterns = (file: FileWord): readonly string[] => {
  if (file.kind === 'unknown') return [];
  return file.kind === 'path' ? [addEscapes(file.text)] : (expandBraces(file.text) ?? [file.text]);
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
  // each `cd` may have run, or not: it may fail, or stand in a subshell
  let folders: readonly string[] = [workspace];
  let looks = 0;
  for (const command of commands) {
    const { words, folder } = command;
    const deletes = findRow(words[0])?.deletes;
    if (deletes === 'always' || deletes?.(words) === true) {
      const files = fileLossesIn({ ...command, writes: [] }).flatMap((loss) => {
        if (loss.kind === 'file') return [loss.file];
        return loss.moves ? loss.sources : [];
      });
      const patterns = files.flatMap(wordPatterns);
      looks += patterns.length * folders.length;
      if (folders.length > FOLDERS_MAX || looks > LOOKS_MAX) return WIPED;
      const places = folders.map((one) => (folder === undefined ? one : absolutePath(folder, one)));
      if (patterns.some((text) => places.some((place) => isWhole(text, place, workspace))))
        return WIPED;
    }
    const target = words[1];
    if (words[0] !== 'cd' || words.length !== 2 || target == null) continue;
    if (folders.length <= FOLDERS_MAX)
      folders = [...new Set(folders.flatMap((one) => [one, absolutePath(target, one)]))];
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
