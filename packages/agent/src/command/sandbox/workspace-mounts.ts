/**
 * What one command gets of the workspace and its repository: mounts, and what is checked when it
 * has ended.
 *
 * Protected paths, which programs obey or run later (hooks of git, settings of editors), are
 * mounted read-only (protected-files.ts). A git folder (`.git`, or a bare repository) is read-only
 * as well, unless the words of the command are those of git commands that change it: then its
 * history is copied before (git-history.ts).
 *
 * From top to bottom: the types; git folders, as far as a command may change them;
 * `WorkspaceGuard`, which makes the mounts and checks afterwards; and the mounts of protected
 * paths.
 */

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { attemptNow } from '../../platform/attempt.js';
import {
  entryStatus,
  isFolder,
  isRawPath,
  isWithin,
  namesIn,
  realPath,
} from '../../platform/files.js';
import type { HistoryPurpose, RepositoryAccess } from '../../policy/repository-access.js';
import { findRepository, isInWorktreeFolder, type RepositoryPaths } from './git-folders.js';
import { ANY_PURPOSE, type GitHistory, NO_PURPOSE } from './git-history.js';
import {
  type HomeView,
  type HostView,
  isOnHost,
  type Mount,
  NO_SOCKETS,
  pathDepth,
  readable,
  readableIfThere,
  type Sockets,
  writable,
  writableIfThere,
} from './host.js';
import type { ProtectedFiles } from './protected-files.js';
import { type ProtectedPath, readInside, type Scan } from './protected-scan.js';

export type WorkspaceMounts = {
  readonly mounts: readonly Mount[];
  /** The same with read-only git folders, as most commands get them. */
  readonly usualMounts: readonly Mount[];
  /** Paths inside the mounts that the command must not see. */
  readonly masked: readonly string[];
  /** Reasons why git finds no repository inside the sandbox although there is one. */
  readonly refusals: readonly string[];
  /**
   * Paths of `mounts` whose identity must be compared inside, since other commands could exchange
   * them.
   */
  readonly exchangeable: readonly string[];
  /** Call it after the command. Returns lines about files that were set aside. */
  end(): readonly string[];
};

/** What a command may change. */
export type WorkspaceAccess = {
  readonly isWritable: boolean;
  readonly repository: RepositoryAccess;
  readonly purpose: HistoryPurpose;
  /** Protected files that it may write: the user allowed that. */
  readonly writable: readonly string[];
};

/** What commands see beside the workspace. */
type VisibleMachine = {
  readonly host: Pick<HostView, 'masked'>;
  readonly home: Pick<HomeView, 'masked' | 'mounts'>;
  /** Paths with secrets, which are masked if they would be visible. */
  readonly secrets: readonly string[];
};

type Repository = {
  /** Its folders if the git folder is not the `.git` of the workspace. */
  readonly elsewhere: RepositoryPaths | null;
  readonly mounts: (isWritable: boolean) => readonly Mount[];
  readonly refusals: readonly string[];
};

const NO_REPOSITORY: Repository = { elsewhere: null, mounts: () => [], refusals: [] };

/** Why git finds none, and the way out, in the words of bash-result.ts. */
const noRepository = (why: string): string =>
  `git finds no repository here, since ${why}: if that is what it needs, ask again with ` +
  'needs: "outside"';

/**
 * What a command sees of the repository in which the workspace lies. `secrets`: a repository that
 * contains one of these paths is not shown, such as a whole home under git.
 */
const viewRepository = (workspace: string, secrets: readonly string[]): Repository => {
  const located = findRepository(workspace);
  if (located.kind === 'none') return NO_REPOSITORY;
  if (located.kind === 'refused') {
    return { ...NO_REPOSITORY, refusals: [noRepository(located.why)] };
  }
  const { repository } = located;
  const { top, common } = repository;
  if (top === workspace && isWithin(common, workspace)) {
    return { ...NO_REPOSITORY, elsewhere: common === path.join(top, '.git') ? null : repository };
  }
  if (secrets.some((secret) => isWithin(secret, top))) {
    const why = `${top}, where it lies, holds secrets`;
    return { ...NO_REPOSITORY, refusals: [noRepository(why)] };
  }
  const mounts = (isWritable: boolean): readonly Mount[] => [
    ...(top === workspace ? [] : [readable(top)]),
    isWritable ? writable(common) : readable(common),
  ];
  return { elsewhere: repository, mounts, refusals: [] };
};

/** Number of git folders that a command may change; further ones are read-only for it. */
const CHANGED_MAX = 6;
/**
 * Files of packs that are mounted one by one, so that a command can add others. Each mount costs
 * 0.2 ms.
 */
const PACK_FILES_MAX = 120;

/**
 * Git folders with a history that the command did not make: those of repositories, and bare ones,
 * which are recognized by their configuration. The folder of a linked worktree lies in that of its
 * repository.
 */
const gitFoldersIn = (
  all: readonly ProtectedPath[],
  createdRepositories: readonly string[],
  workspace: string,
  elsewhere: RepositoryPaths | null,
): readonly string[] => {
  const inside = all
    .filter((one) => one.kind === 'repository' && isFolder(one.path))
    .map((one) => one.path);
  const known = [...(elsewhere === null ? [] : [elsewhere.common]), ...inside];
  // Bare ones, and those of submodules.
  const configured = all
    .filter((one) => one.inGit && path.basename(one.path) === 'config' && one.kind === 'file')
    .filter(({ path: at }) => !isInWorktreeFolder(at) || !known.some((one) => isWithin(at, one)))
    .map((one) => path.dirname(one.path));
  return [...new Set([...known, ...configured])].filter(
    (folder) => folder !== workspace && !createdRepositories.some((top) => isWithin(folder, top)),
  );
};

/**
 * Folders above a git folder, or another place that must stay where it is: as mounts they can't be
 * renamed.
 */
const foldersAbove = (place: string, workspace: string): readonly string[] => {
  if (!isWithin(place, workspace)) return [];
  const parts = path.relative(workspace, path.dirname(place)).split(path.sep);
  return parts[0] === ''
    ? []
    : parts.map((_, index) => path.join(workspace, ...parts.slice(0, index + 1)));
};

/** Makes folders that are missing: a command could create them as links to elsewhere. */
const makeObjectFolders = (gitFolder: string): void => {
  if (!isFolder(path.join(gitFolder, 'objects'))) return;
  for (const name of ['pack', 'info']) {
    try {
      mkdirSync(path.join(gitFolder, 'objects', name));
    } catch {
      // It is there, or the folder is closed to us, so to commands as well.
    }
  }
};

/**
 * Mounts of a git folder that a command may change: packs stay as they are, and its parts can't be
 * exchanged.
 */
const changedGitMounts = (gitFolder: string, addsPacks: boolean): readonly Mount[] => {
  const at = (name: string): string => path.join(gitFolder, name);
  makeObjectFolders(gitFolder);
  const packs = namesIn(at('objects/pack')).filter((name) => /^pack-/.test(name));
  const parts = ['objects', 'refs', 'logs'].map(at).filter(isFolder);
  const mounts = [writable(gitFolder), ...parts.map(writableIfThere)];
  if (!addsPacks || packs.length > PACK_FILES_MAX)
    return [...mounts, readableIfThere(at('objects/pack')), readableIfThere(at('objects/info'))];
  return [
    ...mounts,
    writableIfThere(at('objects/pack')),
    ...packs.map((name) => readableIfThere(at(`objects/pack/${name}`))),
  ];
};

type GitMounts = {
  readonly mounts: readonly Mount[];
  /** Git folders that the command may change and whose history is copied. */
  readonly changeable: readonly string[];
  /** Git folders in which the command can't change anything. */
  readonly closed: readonly string[];
};

/**
 * The mounts of the workspace, with git folders as the command may change them. `access`:
 * `approved`: the user has allowed words that destroy history, so nothing is kept; `read`: all are
 * read-only; `write`: the first few can be changed; `writePacks`: also by new packs of objects.
 */
const withGitFolders = (
  mounts: readonly Mount[],
  gitFolders: readonly string[],
  access: RepositoryAccess,
  workspace: string,
): GitMounts => {
  if (access === 'approved') return { mounts, changeable: [], closed: [] };
  /** It lies in another git folder, which is mounted as a whole. */
  const isModule = (one: string): boolean =>
    gitFolders.some((outer) => outer !== one && isWithin(one, outer));
  const first = access === 'read' ? [] : gitFolders.slice(0, CHANGED_MAX);
  const changeable = first.filter((one) => isFolder(path.join(one, 'objects')));
  const closed = gitFolders.filter(
    (one) => !changeable.includes(one) && !(access === 'read' && isModule(one)),
  );
  const others = mounts.filter(({ path: place }) => !closed.some((one) => isWithin(place, one)));
  return {
    mounts: [
      ...changeable.flatMap((one) => foldersAbove(one, workspace)).map(writableIfThere),
      ...changeable.flatMap((one) => changedGitMounts(one, access === 'writePacks')),
      ...others,
      ...closed.map(readableIfThere),
    ],
    changeable,
    closed,
  };
};

type PlannedMounts = GitMounts & {
  /** Paths that are read-only for the command. */
  readonly bound: ReadonlySet<string>;
  readonly exchangeable: readonly string[];
  /** The same mounts with read-only git folders, as most commands get them. */
  readonly usual: readonly Mount[];
};

/** Mounts of a workspace that the command may only read. */
const readOnlyMounts = (workspace: string, repository: Repository): PlannedMounts => {
  const mounts = [...repository.mounts(false), readable(workspace)];
  return { bound: new Set(), closed: [], mounts, usual: mounts, changeable: [], exchangeable: [] };
};

type WritableWorkspace = ProtectingContext & {
  readonly repository: Repository;
  readonly scan: Scan;
  /** Protected files that the user allowed the command to write. */
  readonly allowed: readonly string[];
};

/** Mounts of a workspace that the command may write to, except its protected paths. */
const writableMounts = (context: WritableWorkspace, access: RepositoryAccess): PlannedMounts => {
  const { workspace, repository, scan, createdRepositories, allowed } = context;
  // Programs can't be told of a raw path.
  const all = [...scan.protectedPaths.values()].filter((one) => !isRawPath(one.path));
  const opened = all.filter((one) => holdsOne(one, allowed));
  const kept = all.filter((one) => !opened.includes(one));
  const { mounts, bound, exchangeable } = protectedMounts(kept, context);
  const gitFolders = gitFoldersIn(all, createdRepositories, workspace, repository.elsewhere);
  const besides = opened.flatMap((one) => mountsBeside(one, allowed));
  const shown = [...repository.mounts(true), writable(workspace), ...besides, ...mounts];
  const usual = withGitFolders(shown, gitFolders, 'read', workspace);
  const git = access === 'read' ? usual : withGitFolders(shown, gitFolders, access, workspace);
  return { bound, exchangeable, usual: usual.mounts, ...git };
};

/** Whether a protected path is one of these files, or a folder with one of them. */
const holdsOne = ({ path: place, inGit }: ProtectedPath, files: readonly string[]): boolean =>
  !inGit && files.some((file) => isWithin(file, place));

/** Mounts of a folder with some files that the command may write: it and its other files stay. */
const mountsBeside = (
  { kind, path: folder }: ProtectedPath,
  allowed: readonly string[],
): readonly Mount[] => {
  if (kind !== 'folder' || allowed.includes(folder)) return [];
  const others = [...readInside(folder).marks.keys()].filter(
    (one) => !isFolder(one) && !isRawPath(one) && !allowed.includes(one),
  );
  return [writableIfThere(folder), ...others.slice(0, MOUNTS_MAX).map(readableIfThere)];
};

/** A link itself can't be masked: where it leads to is. */
const isLink = (place: string): boolean => entryStatus(place)?.isSymbolicLink() === true;

/** Gives the commands of a workspace their mounts, and checks what they have changed. */
export class WorkspaceGuard {
  readonly #workspace: string;
  readonly #userPlaces: readonly string[];
  readonly #files: ProtectedFiles;
  readonly #history: GitHistory;
  /** Sockets that existed while no command ran: no command created them. */
  #ownSockets: readonly string[] = [];
  /** Number of running commands that may write. */
  #running = 0;

  /** `userPlaces`: the user's places in the workspace. */
  constructor(
    workspace: string,
    userPlaces: readonly string[],
    files: ProtectedFiles,
    history: GitHistory,
  ) {
    this.#workspace = workspace;
    this.#userPlaces = userPlaces;
    this.#files = files;
    this.#history = history;
  }

  /**
   * The mounts of a command that is about to start. From now on it counts as running, until `end`.
   * `sockets`: `NO_SOCKETS` masks none, and then a workspace that is only read is not scanned.
   */
  mountsFor(
    { isWritable, repository: access, purpose, writable: allowed }: WorkspaceAccess,
    view: VisibleMachine,
    sockets: Sockets,
  ): WorkspaceMounts {
    const workspace = this.#workspace;
    const repository = viewRepository(workspace, view.secrets);
    const scan =
      isWritable || sockets !== NO_SOCKETS ? this.#files.scanBefore(repository.elsewhere) : null;
    if (this.#running === 0 && scan !== null) this.#ownSockets = scan.sockets;
    const { mounts, usual, bound, closed, changeable, exchangeable } =
      isWritable && scan !== null
        ? writableMounts(
            {
              ...{ workspace, repository, scan, userPlaces: this.#userPlaces },
              createdRepositories: this.#files.createdRepositories(),
              allowed,
            },
            access,
          )
        : readOnlyMounts(workspace, repository);

    const roots = [workspace, ...repository.mounts(isWritable).map((mount) => mount.path)];
    const isSeen = (place: string): boolean =>
      roots.some((root) => isWithin(place, root)) || isOnHost(place);
    const masked = [
      ...view.host.masked,
      ...view.home.masked,
      ...view.secrets.filter((place) => isSeen(place) && !isLink(place)),
      ...sockets.paths.filter(isSeen),
      ...(sockets === NO_SOCKETS ? [] : this.#ownSockets),
    ];
    const existing = [...new Set(masked)].filter(
      (place) => entryStatus(place) !== null && !isRawPath(place),
    );
    // Nothing can be mounted in a closed folder, and nothing over one.
    const closedInside = existing.filter((place) => isWithin(place, workspace));
    const isBelow = (place: string): boolean =>
      closedInside.some((outer) => outer !== place && isWithin(place, outer));
    const isOpen = (place: string): boolean => !closedInside.includes(place) && !isBelow(place);
    const isMounted = (mount: Mount): boolean => isOpen(mount.path);
    const hasClosed = closedInside.length > 0;

    const writer = { bound, closed };
    let disallow = (): void => undefined;
    // first, since it fails where there is no room for copies
    const running = isWritable
      ? this.#history.begin(changeable, access === 'approved' ? ANY_PURPOSE : purpose)
      : null;
    if (isWritable) {
      this.#running += 1;
      this.#files.begin(writer);
      if (allowed.length > 0) disallow = this.#files.allowWriting(allowed);
    }
    return {
      mounts: [...view.home.mounts, ...(hasClosed ? mounts.filter(isMounted) : mounts)],
      usualMounts: [...view.home.mounts, ...(hasClosed ? usual.filter(isMounted) : usual)],
      masked: hasClosed ? existing.filter((place) => !isBelow(place)) : existing,
      refusals: repository.refusals,
      exchangeable: exchangeable.filter((place) => isOpen(place) && entryStatus(place) !== null),
      end: () => {
        if (running === null) return [];
        this.#running -= 1;
        disallow();
        const kept = attemptNow(() => {
          const lines = this.#history.end(running);
          if (access === 'approved') this.#history.accept();
          return lines;
        });
        // the disk is full: the copies stay as they were before
        const lines =
          kept.kind === 'done' ? kept.value : [`git history was not copied: ${kept.fault.message}`];
        return [...this.#files.end(writer), ...lines];
      },
    };
  }

  /**
   * Call it before an unfenced command that the user allowed, and its result afterwards. If it has
   * run, all changes are accepted then. `deletes`: its words delete history. Returns lines for the
   * model.
   */
  beginUnfenced(deletes: boolean): (hasRun: boolean) => readonly string[] {
    const running = this.#history.begin([], deletes ? ANY_PURPOSE : NO_PURPOSE);
    return (hasRun) => {
      const lines = this.#history.end(running);
      if (!hasRun) return lines;
      this.#history.accept();
      if (this.#running === 0) this.#files.acceptAll();
      else this.#files.acceptNewPaths();
      return lines;
    };
  }

  /** As in ProtectedFiles: lines about what commands of a killed session changed. */
  judgeInterrupted(): readonly string[] {
    // No secrets: nothing is mounted, only the place of the git folder is asked for.
    return this.#files.judgeInterrupted(viewRepository(this.#workspace, []).elsewhere);
  }

  /** The session ends, after all commands. */
  close(): void {
    this.#files.close();
    this.#history.close();
  }
}

// ---- The read-only mounts of protected paths inside a writable workspace ----

/** Each mount costs 0.2 ms. Paths beyond this number are only checked after a command. */
const MOUNTS_MAX = 60;
/** Number of repositories in which git works; further ones are entirely read-only. */
const REPOSITORIES_MAX = 6;

/** Makes the target of a symlink read-only if it lies in the workspace. */
const linkTargetMounts = (link: string, workspace: string): readonly Mount[] => {
  const real = realPath(link);
  if (real === null || real === workspace || !isWithin(real, workspace)) return [];
  return [readableIfThere(real)];
};

/**
 * The mounts of one protected path. A folder that contains something read-only, like `.github`, is
 * a separate mount, so that it can't be renamed: a new folder in its place would be writable.
 */
const protectingMounts = (
  protectedPath: ProtectedPath,
  { workspace, userPlaces }: Pick<ProtectingContext, 'workspace' | 'userPlaces'>,
): readonly Mount[] => {
  const parent = path.dirname(protectedPath.path);
  const mounts =
    protectedPath.kind === 'link'
      ? linkTargetMounts(protectedPath.path, workspace)
      : [readableIfThere(protectedPath.path)];
  if (userPlaces.includes(protectedPath.path))
    return [...foldersAbove(protectedPath.path, workspace).map(writableIfThere), ...mounts];
  if (protectedPath.kind === 'link') return mounts;
  if (protectedPath.kind === 'repository') {
    return [
      entryStatus(protectedPath.path)?.isDirectory()
        ? writableIfThere(protectedPath.path)
        : readableIfThere(protectedPath.path),
    ];
  }
  const isPart =
    path.basename(parent).startsWith('.') && parent !== workspace && !protectedPath.inGit;
  return [...(isPart ? [writableIfThere(parent)] : []), ...mounts];
};

export type ProtectedMounts = {
  readonly mounts: readonly Mount[];
  /** Paths that are read-only for the command. */
  readonly bound: ReadonlySet<string>;
  /** Mounted paths below folders that another command could exchange. */
  readonly exchangeable: readonly string[];
};

type ProtectingContext = {
  readonly workspace: string;
  /** The user's places: always mounted, with the folders above, so that all stays in place. */
  readonly userPlaces: readonly string[];
  /** Folders with a harmless repository that a command of this session created. */
  readonly createdRepositories: readonly string[];
};

/**
 * The mounts of all protected paths.
 *
 * `protectedPaths`: if there are too many, those nearest to the top are mounted.
 * `createdRepositories`: folders whose repositories stay writable and are only checked afterwards.
 */
const protectedMounts = (
  protectedPaths: Iterable<ProtectedPath>,
  { workspace, userPlaces, createdRepositories }: ProtectingContext,
): ProtectedMounts => {
  const isCreated = ({ path: place, inGit, kind }: ProtectedPath): boolean =>
    (inGit || kind === 'repository') &&
    createdRepositories.some((folder) => isWithin(place, folder));
  const all = [...protectedPaths]
    .filter((one) => !isCreated(one))
    .toSorted(
      (one, other) =>
        Number(userPlaces.includes(other.path)) - Number(userPlaces.includes(one.path)) ||
        pathDepth(one.path) - pathDepth(other.path),
    );
  const repositories = all.filter(({ kind }) => kind === 'repository').map((one) => one.path);
  const closed = repositories.slice(REPOSITORIES_MAX); // entirely read-only
  const mounts = new Map<string, Mount>();
  const bound = new Set<string>();
  for (const one of all) {
    const outer = closed.find((repository) => isWithin(one.path, repository));
    if (outer !== undefined) {
      mounts.set(outer, readableIfThere(outer));
      bound.add(one.path);
      continue;
    }
    if (mounts.size >= MOUNTS_MAX) break;
    for (const mount of protectingMounts(one, { workspace, userPlaces })) {
      // Of two mounts at one path the read-only one counts.
      if (!mounts.has(mount.path) || mount.words[0] === '--ro-bind-try')
        mounts.set(mount.path, mount);
    }
    if (one.kind !== 'link') bound.add(one.path);
  }
  // A folder at the top, or a mount itself, can't be replaced.
  const isFirm = (place: string): boolean =>
    [workspace, path.join(workspace, '.git')].includes(path.dirname(place)) ||
    (path.dirname(path.dirname(place)) === workspace && mounts.has(path.dirname(place)));
  const exchangeable = [...mounts.keys()].filter(
    (place) => isWithin(place, workspace) && !isFirm(place),
  );
  return { mounts: [...mounts.values()], bound, exchangeable };
};
