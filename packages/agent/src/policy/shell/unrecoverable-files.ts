/**
 * Finds the files that a command would delete or overwrite and that git could not restore.
 *
 * 1. Only the workspace counts: elsewhere a command in the sandbox writes only to its private home
 *    and /tmp.
 * 2. A file counts if it exists and is unknown to git, ignored by it, or changed since it was
 *    added. Ignored files do not count if their name says that they are generated: `node_modules`,
 *    `dist`.
 * 3. Words that are determined at run time count as well, and so do files outside a repository.
 *
 * From top to bottom: `unrecoverableFiles`; `namedFiles`, all files that a text names; the paths
 * that the words of a command mean; `discardedFiles`, which asks the same about `git restore` and
 * `git checkout`; and `withGitReadings`, which reads words of git as git does.
 */

import path from 'node:path';
import { entryStatus, followStatus, isWithin, namesIn, realPath } from '../../platform/files.js';
import { reads } from '../command-options.js';
import type { ParsedCommand, ShellFacts } from '../judged-call.js';
import { commandFolders, fileLossesIn } from '../losses.js';
import { isGenerated, wordSet } from '../paths.js';
import { expandBraces, fitsName, partSigns, removeEscapes } from '../patterns.js';
import type { FileLoss, FileWord } from '../programs/file-losses.js';
import { isGitCommand } from '../programs/git.js';
import {
  folderBefore,
  gitCommand,
  listOperands,
  makesBranch,
  type PathRestore,
  pathRestore,
} from '../programs/git-words.js';
import type { Words } from '../programs/program.js';
import { isGit } from '../programs/program-table.js';

/** A file that git could not restore. The path is absolute. */
export type GitLoss = { readonly path: string; readonly kind: 'untracked' | 'ignored' | 'changed' };

/**
 * Which of these files, or of the files below these folders, git could not restore. Null: no
 * repository, or git fails.
 */
export type FindLosses = (
  workspace: string,
  paths: readonly string[],
) => Promise<readonly GitLoss[] | null>;

/**
 * Files that the commands of a text would delete or overwrite and that git could not restore: paths
 * relative to the workspace, and UNNAMED_FILE first if some are determined at run time. Null if the
 * commands delete and overwrite nothing.
 */
export const unrecoverableFiles = async (
  facts: ShellFacts,
  workspace: string,
  findLosses: FindLosses,
): Promise<readonly string[] | null> => {
  const named = lossPaths(facts, workspace);
  if (named === null) return null;
  const { files, isUnknown } = named;
  const lost = files.length === 0 ? [] : await findLostFiles(files, workspace, findLosses);
  const relative = lost.map((file) => path.relative(workspace, file) || '.');
  return [...new Set([...(isUnknown ? [UNNAMED_FILE] : []), ...relative])].slice(0, LISTED_MAX);
};

/**
 * The files and folders of the workspace that the commands of a text delete or overwrite.
 * `isUnknown`: also others, which are determined at run time. Null: none.
 */
const lossPaths = (
  { commands }: ShellFacts,
  workspace: string,
): { readonly files: readonly string[]; readonly isUnknown: boolean } | null => {
  const losses = commands.map(fileLossesIn);
  const all = losses.flat();
  if (all.length === 0) return null;
  const { folders, isComplete } = commandFolders(commands, workspace);
  const followed = folders.slice(0, FOLDERS_MAX);
  // another command may delete the file at its new place, or make that a link
  const countsMoves =
    all.length > 1 || commands.some(({ words }) => path.basename(words[0] ?? '') === 'ln');
  const options = globOptions(commands);
  const paths = followed.flatMap((folder) =>
    all.map((loss) => {
      const glob = { folder, ...options };
      return loss.kind === 'copy'
        ? copyPaths(loss, { glob, workspace, countsMoves })
        : wordPaths(loss.file, glob);
    }),
  );
  const files = inWorkspace(
    paths.flatMap((some) => some ?? []),
    workspace,
  );
  const hasOthers = !isComplete || followed.length < folders.length;
  return { files, isUnknown: hasOthers || paths.includes(null) };
};

const TOKENS_MAX = 400;
const NAME_CHARACTERS_MAX = 1_000;
/** Folders in a text below which its other words may name files: `tar -C FOLDER`. */
const BASES_MAX = 5;

/**
 * The files that a text names anywhere, whatever its commands do with them: as a word, behind an
 * option, in a script for another program. Real absolute paths in the workspace; of folders only
 * those that it deletes or overwrites by its words.
 */
export const namedFiles = (
  facts: ShellFacts,
  text: string,
  workspace: string,
): readonly string[] => {
  const words = facts.commands.flatMap((command) => [...command.words, ...command.writes]);
  // names in quotes may have blanks
  const quoted = [...text.matchAll(/"([^"\n]+)"|'([^'\n]+)'/g)].map(
    ([, inDouble, inSingle]) => inDouble ?? inSingle,
  );
  const parts = [...words, ...quoted, ...text.split(/[\s"'`=:,;()<>|&{}[\]$%\\]+/)].flatMap(
    (word) => (word == null || word === '' ? [] : [word, word.replace(/^-\w|^[^=]*=/, '')]),
  );
  const tokens = [...new Set(parts)]
    .filter((token) => token !== '' && token.length < NAME_CHARACTERS_MAX)
    .slice(0, TOKENS_MAX);
  const starts = commandFolders(facts.commands, workspace).folders.slice(0, FOLDERS_MAX);
  const bases = tokens.map((token) => resolvePath(workspace, token)).filter(isFolder);
  const candidates = [...new Set([...starts, ...bases.slice(0, BASES_MAX)])].flatMap((folder) =>
    tokens.map((token) => resolvePath(folder, token)).filter(isFile),
  );
  return [
    ...new Set([
      ...inWorkspace(candidates, workspace),
      ...(lossPaths(facts, workspace)?.files ?? []),
    ]),
  ];
};

/** Characters of patterns and paths that are looked at for one text. */
const WORK_MAX = 1_000_000;
/** What one path counts for, beside its pattern. */
const PATH_WORK = 50;
const FOLDERS_MAX = 30;
const LISTED_MAX = 50;

const UNNAMED_FILE = 'a file that is named only when the command runs';

const exists = (file: string): boolean => entryStatus(file) !== null;

const isFile = (file: string): boolean => followStatus(file)?.isFile() === true;
const isFolder = (file: string): boolean => followStatus(file)?.isDirectory() === true;

/** The path of a name in a folder. As for the system, `..` behind a symlink is above its target. */
const resolvePath = (folder: string, name: string): string =>
  name
    .split('/')
    .reduce(
      (place, part) =>
        part === '..' ? path.dirname(realPath(place) ?? place) : path.join(place, part),
      name.startsWith('/') ? '/' : folder,
    );

const HAS_PATTERN = /(^|[^\\])[*?[]/;
/** Of a sequence such as `{1..3}`. */
const HAS_BRACE = /(^|[^\\])\{/;

/** How the shell expands patterns. */
type GlobOptions = {
  /** bash's option dotglob: `*` matches hidden names too. */
  readonly withHidden: boolean;
  readonly work: Work;
};

/** What remains of WORK_MAX, so that no text of a stranger takes long. */
type Work = { remaining: number };

const isTooMuch = (work: Work, characters: number): boolean => {
  work.remaining -= characters + PATH_WORK;
  return work.remaining < 0;
};

/** Where a pattern is expanded. */
type Glob = GlobOptions & { readonly folder: string };

const globOptions = (commands: readonly ParsedCommand[]): GlobOptions => ({
  withHidden: commands.some(({ words }) => words.includes('dotglob')),
  work: { remaining: WORK_MAX },
});

/** The paths that a pattern without braces matches; null: unknown. */
const matchPattern = (
  pattern: string,
  { folder, withHidden, work }: Glob,
): readonly string[] | null => {
  let places: readonly string[] = [pattern.startsWith('/') ? '/' : folder];
  for (const part of pattern.split('/')) {
    if (part === '' || part === '.') continue;
    if (isTooMuch(work, places.length * PATH_WORK)) return null;
    if (!HAS_PATTERN.test(part)) {
      places = places.map((place) => resolvePath(place, removeEscapes(part))).filter(exists);
      continue;
    }
    const signs = partSigns(part);
    if (signs === null || part.includes('**')) return null;
    const takesHidden = withHidden || part.startsWith('.');
    places = places.flatMap((place) => {
      const names = work.remaining < 0 ? [] : namesIn(place);
      work.remaining -= names.join('/').length;
      return names
        .filter((name) => (takesHidden || !name.startsWith('.')) && fitsName(signs, [...name]))
        .map((name) => path.join(place, name));
    });
    if (isTooMuch(work, places.length * PATH_WORK)) return null;
  }
  // a pattern without a match is the name itself: `[id].tsx`
  return places.length > 0 ? places : [resolvePath(folder, removeEscapes(pattern))].filter(exists);
};

/** The paths that a word means in a folder; null if they are determined at run time. */
const wordPaths = (word: FileWord, glob: Glob): readonly string[] | null => {
  if (word.kind === 'unknown' || isTooMuch(glob.work, word.text.length)) return null;
  if (word.kind === 'path') return [resolvePath(glob.folder, word.text)];
  const plain = expandBraces(word.text);
  if (plain === null || plain.some((one) => HAS_BRACE.test(one.replaceAll('{}', '')))) return null;
  const matched = plain
    .filter((pattern) => pattern !== '') // of `{,a}` bash makes the word `a` alone
    .map((pattern) =>
      HAS_PATTERN.test(pattern)
        ? matchPattern(pattern, glob)
        : [resolvePath(glob.folder, removeEscapes(pattern))],
    );
  return matched.every((paths) => paths !== null) ? matched.flat() : null;
};

type LossOptions = {
  readonly glob: Glob;
  readonly workspace: string;
  /** A moved file counts too, since another command of the text may delete it at its new place. */
  readonly countsMoves: boolean;
};

/** The paths that a copy or move overwrites, or moves away; null: unknown. */
const copyPaths = (
  { sources, to, moves }: Extract<FileLoss, { kind: 'copy' }>,
  { glob, workspace, countsMoves }: LossOptions,
): readonly string[] | null => {
  const targets = wordPaths(to, glob);
  if (targets === null || targets.length !== 1) return null;
  const [target = ''] = targets;
  const named = sources.map((source) => wordPaths(source, glob));
  const known = named.filter((one) => one !== null).flat();
  const isComplete = !named.includes(null);
  // a file that stays in the workspace, and that nothing else touches, is only moved
  const staysInside = realPlaces(target).every((place) => isWithin(place, workspace));
  const losesSources = moves && (countsMoves || !staysInside);
  if (losesSources && !isComplete) return null;
  const gone = losesSources ? known : [];
  if (!isFolder(target)) return [target, ...gone];
  // `cp -r from/. to` puts what is in the folder beside what is in the other.
  const spreads = sources.some(
    (source) => source.kind === 'path' && /(^|\/)\.{1,2}\/?$/.test(source.text),
  );
  if (!isComplete || spreads) return [target, ...gone];
  return [...known.map((source) => path.join(target, path.basename(source))), ...gone];
};

/**
 * The path without symlinks in its folder. If it is a symlink itself, also its target, which a
 * command may overwrite.
 */
const realPlaces = (file: string): readonly string[] => {
  const folder = realPath(path.dirname(file));
  if (folder === null) return [file]; // it is missing: nothing is there to be lost
  const place = path.join(folder, path.basename(file));
  return [...new Set([place, realPath(place) ?? place])];
};

/**
 * The existing paths inside the workspace. A folder around the workspace counts as the workspace.
 */
const inWorkspace = (files: readonly string[], workspace: string): readonly string[] => {
  const places = files.flatMap(realPlaces).flatMap((file) => {
    if (isWithin(file, workspace)) return [file];
    return isWithin(workspace, file) ? [workspace] : [];
  });
  return [...new Set(places)].filter(exists);
};

/**
 * Whether a file belongs to git itself or to a repository below the workspace, about which git of
 * the workspace reports nothing. The folder of such a repository, and the workspace with its
 * `.git`, count too.
 */
const belongsToRepository = (file: string, workspace: string): boolean => {
  if (file.split('/').includes('.git') || exists(path.join(file, '.git'))) return true;
  for (let folder = path.dirname(file); isWithin(folder, workspace) && folder !== workspace; )
    if (exists(path.join(folder, '.git'))) return true;
    else folder = path.dirname(folder);
  return false;
};

/** Those of the files that git could not restore. */
const findLostFiles = async (
  files: readonly string[],
  workspace: string,
  findLosses: FindLosses,
): Promise<readonly string[]> => {
  const repositories = files.filter((file) => belongsToRepository(file, workspace));
  const others = files.filter((file) => !repositories.includes(file));
  if (others.length === 0) return repositories;
  const changes = await findLosses(workspace, others);
  if (changes === null) return files;
  const lost = changes.filter(
    // isGenerated: by its name, builds or package managers make it again
    ({ path: file, kind }) => kind !== 'ignored' || !isGenerated(path.relative(workspace, file)),
  );
  return [...repositories, ...lost.map((change) => change.path)];
};

// ---- Changes that git would discard ----

/**
 * The uncommitted changes that the commands would discard and that are not the session's own: paths
 * relative to the workspace. Null: no repository, or git fails.
 */
export type FindDiscarded = (
  workspace: string,
  restores: readonly PathRestore[],
) => Promise<readonly string[] | null>;

/** Programs that delete files or make folders, and create no file. */
const ONLY_DELETES = wordSet('rm rmdir mkdir unlink');

/**
 * Whether a command can't change the files that a restore beside it discards. Any other program
 * could create one before git restores it.
 */
const leavesRestores = (command: ParsedCommand, workspace: string): boolean =>
  reads(command, workspace) ||
  (command.assignments.length + command.writes.length === 0 &&
    (pathRestore(command) !== null || ONLY_DELETES.has(command.words[0] ?? '')));

/**
 * The changes that `git restore` and `git checkout` of paths in a text would discard, and that are
 * not the session's own. Null: no such command, or unknown.
 */
export const discardedFiles = async (
  { commands, unclear, indirect }: ShellFacts,
  workspace: string,
  findDiscarded: FindDiscarded,
): Promise<readonly string[] | null> => {
  const restores = commands
    .filter(({ words, readAs = words }) => isGit(readAs))
    .map(pathRestore)
    .filter((one) => one !== null);
  if (restores.length === 0 || unclear !== null || indirect !== undefined) return null;
  const isElsewhere = restores.some(
    ({ folder }) =>
      folder !== undefined && belongsToRepository(path.resolve(workspace, folder, 'x'), workspace),
  );
  const { folders, isComplete } = commandFolders(commands, workspace);
  const staysInFolder = isComplete && folders.length === 1;
  return staysInFolder &&
    !isElsewhere &&
    commands.every((command) => leavesRestores(command, workspace))
    ? findDiscarded(workspace, restores)
    : null;
};

// ---- How git reads its words ----

/** Asks git for the words of an alias, or the commit of a name. Null: none. */
export type AskGit = (
  workspace: string,
  about: 'alias' | 'commit',
  name: string,
) => Promise<string | null>;
type AskHere = (about: 'alias' | 'commit', name: string) => Promise<string | null>;

/** Aliases of aliases are followed up to this depth. */
const ALIASES_DEEP = 3;
/** A plain alias: without quotes, and without a shell command. */
const PLAIN_ALIAS = /^[\w@%+=:,./ -]+$/;

/** The words of git with an alias of the repository or the user in full. */
const withoutAlias = async (words: Words, ask: AskHere) => {
  let all = words;
  for (let depth = 0; depth < ALIASES_DEEP; depth++) {
    const [name, ...rest] = gitCommand(all);
    if (name == null || isGitCommand(name) || !/^[\w-]+$/.test(name)) return all;
    const alias = await ask('alias', name);
    if (alias === null) return all;
    const before = all.slice(0, all.length - rest.length - 1);
    if (!PLAIN_ALIAS.test(alias)) return [...before, null, ...rest];
    all = [...before, ...alias.trim().split(/ +/), ...rest];
  }
  return all;
};

/**
 * The words of a command of git as git reads them: aliases and patterns in full, and `--` before
 * the operands of `git checkout` if the first is a file whose name no branch and no commit has.
 * `folders`: where it may run. `options`: how the shell expands its patterns.
 */
const readAsGit = async (
  { words, patterns = [] }: ParsedCommand,
  { folders, options }: { readonly folders: readonly string[]; readonly options: GlobOptions },
  ask: AskHere,
): Promise<Words> => {
  const glob = { folder: folders[0] ?? '', ...options };
  const takesPaths = /^(checkout|restore)$/.test(gitCommand(words)[0] ?? '');
  const matched = words.flatMap((word, index): Words => {
    const text = patterns[index] ?? null;
    if (!takesPaths || text === null || folders.length > 1) return [word];
    const paths = wordPaths({ kind: 'pattern', text }, glob);
    const isListed = paths !== null && paths.length > 0 && paths.length <= LISTED_MAX;
    return isListed ? paths.map((one) => `./${path.relative(glob.folder, one)}`) : [word];
  });
  const all = await withoutAlias(matched, ask);
  const [name, ...rest] = gitCommand(all);
  const [first] = listOperands(rest);
  if (name !== 'checkout' || first == null || rest.includes('--') || makesBranch(rest)) return all;
  const inside = folderBefore(all.slice(1, all.length - rest.length - 1).map((word) => word ?? ''));
  const isFile = folders.some((folder) => exists(path.resolve(folder, inside ?? '', first)));
  if (!isFile || (await ask('commit', first)) !== null) return all;
  const at = all.length - rest.length + rest.indexOf(first);
  return [...all.slice(0, at), '--', ...all.slice(at)];
};

/** The commands of a text. Those of git get their words as git reads them (`readAs`). */
export const withGitReadings = async (
  facts: ShellFacts,
  workspace: string,
  askGit: AskGit,
): Promise<ShellFacts> => {
  if (!facts.commands.some(({ words }) => isGit(words))) return facts;
  const place = {
    folders: commandFolders(facts.commands, workspace).folders.slice(0, FOLDERS_MAX),
    options: globOptions(facts.commands),
  };
  const commands: ParsedCommand[] = [];
  for (const command of facts.commands) {
    const readAs = isGit(command.words)
      ? await readAsGit(command, place, (...about) => askGit(workspace, ...about))
      : command.words;
    const isUnchanged = readAs.join('\0') === command.words.join('\0');
    commands.push(isUnchanged ? command : { ...command, readAs });
  }
  return { ...facts, commands };
};
