/**
 * What a command would destroy, by its words: the files that it deletes or overwrites, and whether
 * that is the workspace as a whole. "Loss" is what git could not bring back. The policy asks before
 * a loss, and decide.ts makes the decision. What git itself destroys: programs/git.ts.
 */

import type { ParsedCommand } from './judged-call.js';
import { absolutePath } from './patterns.js';
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

/** Git's own folder, or the part of it that holds commits. */
const REPOSITORY = /^\.git(\/(objects|refs|logs|packed-refs|HEAD|index)(\/.*)?)?$/;
const EVERYTHING = /^(\.\/)*(\*\*?|\{\*,\.\*\}|\.\*)\/?$/;

/** Whether a loss of this file is a loss of the workspace or its history. */
const isWhole = (file: FileWord, workspace: string): boolean => {
  if (file.kind === 'unknown') return false;
  if (file.kind === 'pattern') return EVERYTHING.test(file.text);
  const path = absolutePath(file.text, workspace);
  if (path === '/' || `${workspace}/`.startsWith(`${path}/`)) return true;
  return path.startsWith(`${workspace}/`) && REPOSITORY.test(path.slice(workspace.length + 1));
};

/** Whether a command goes to a folder below, so that `.` and `*` are no longer the workspace. */
const goesBelow = ({ words }: ParsedCommand): boolean =>
  words[0] === 'cd' &&
  words.length === 2 &&
  /^[^-./~]/.test(words[1] ?? '') &&
  !/(^|\/)\.\.?(\/|$)/.test(words[1] ?? '');

/** Why commands would delete the workspace as a whole or its history; null if they do not. */
export const wipesWorkspace = (
  commands: readonly ParsedCommand[],
  workspace: string,
): string | null => {
  for (const [index, command] of commands.entries()) {
    const deletes = findRow(command.words[0])?.deletes;
    if (deletes !== 'always' && deletes?.(command.words) !== true) continue;
    if (commands.slice(0, index).some(goesBelow)) continue;
    const files = fileLossesIn({ ...command, writes: [] }).flatMap((loss) => {
      if (loss.kind === 'file') return [loss.file];
      return loss.moves ? loss.sources : [];
    });
    const whole = files.find((file) => isWhole(file, workspace));
    if (whole !== undefined) return 'the workspace as a whole, or its history, would be lost';
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
