import path from 'node:path';
import { statusOf } from '../files/entry-status.js';
import { isWithin } from '../files/is-within.js';
import { isOnHost } from './host/host-folders.js';
import { type Mount, readable, writable } from './mounts.js';
import { findRepository } from './protected/git-folders.js';
import type { ProtectedFiles } from './protected/keep-protected-files.js';
import { protectedMounts } from './protected/protected-mounts.js';
import type { SessionView } from './session/visible-machine.js';

/** Mounts of the workspace and its repository for one command. */

export type WorkspaceMounts = {
  readonly mounts: readonly Mount[];
  readonly masked: readonly string[];
  /** Reasons why git finds no repository inside the sandbox although there is one. */
  readonly refusals: readonly string[];
  /** Paths of `mounts` whose identity must be compared inside, since other commands could exchange them. */
  readonly exchangeable: readonly string[];
  /** Call it after the command. Returns lines about files that were set aside. */
  end(): readonly string[];
};

export type WorkspaceGuard = {
  mountsFor(isWritable: boolean, view: SessionView, sockets: readonly string[]): WorkspaceMounts;
  sweep(): void;
  /** Accepts all changes: an unfenced command that the user allowed has ended. */
  accept(): void;
  /** As in ProtectedFiles. */
  settle(): readonly string[];
  close(): void;
};

type Repository = {
  /** Real path of the git folder if it is not the workspace's own `.git`. */
  readonly elsewhere: string | null;
  readonly mounts: (isWritable: boolean) => readonly Mount[];
  readonly refusals: readonly string[];
};

const NO_REPOSITORY: Repository = { elsewhere: null, mounts: () => [], refusals: [] };

/** `secrets`: a repository that contains one of these paths is not shown, such as a whole home under git. */
const repositoryOf = (workspace: string, secrets: readonly string[]): Repository => {
  const found = findRepository(workspace);
  if (found.kind === 'none') return NO_REPOSITORY;
  if (found.kind === 'refused') {
    return { ...NO_REPOSITORY, refusals: [`git finds no repository here, since ${found.why}`] };
  }
  const { top, folder } = found.repository;
  if (top === workspace && isWithin(folder, workspace)) {
    return { ...NO_REPOSITORY, elsewhere: folder === path.join(top, '.git') ? null : folder };
  }
  if (secrets.some((secret) => isWithin(secret, top))) {
    const why = `${top}, where it lies, holds secrets`;
    return { ...NO_REPOSITORY, refusals: [`git finds no repository here, since ${why}`] };
  }
  const mounts = (isWritable: boolean): readonly Mount[] => [
    ...(top === workspace ? [] : [readable(top)]),
    isWritable ? writable(folder) : readable(folder),
  ];
  return { elsewhere: folder, mounts, refusals: [] };
};

export const createWorkspaceGuard = (workspace: string, files: ProtectedFiles): WorkspaceGuard => {
  let repository = NO_REPOSITORY;
  /** Sockets that existed while no command ran, so no command made them. */
  let ownSockets: readonly string[] = [];
  let running = 0;

  return {
    sweep: () => files.sweep(repository.elsewhere),
    settle: () => {
      repository = repositoryOf(workspace, []);
      return files.settle(repository.elsewhere);
    },
    close: () => files.close(repository.elsewhere),
    accept: () => {
      if (running === 0) files.accept(repository.elsewhere);
      else files.acceptNew(repository.elsewhere);
    },
    mountsFor(isWritable, view, sockets) {
      repository = repositoryOf(workspace, view.secrets);
      const roots = [workspace, ...repository.mounts(isWritable).map((mount) => mount.path)];
      const isSeen = (place: string): boolean =>
        roots.some((root) => isWithin(place, root)) || isOnHost(place);
      const scan = files.look(repository.elsewhere);
      if (running === 0) ownSockets = scan.sockets;
      const own = isWritable
        ? protectedMounts(scan.found.values(), { workspace, own: files.own() })
        : { mounts: [], bound: new Set<string>(), exchangeable: [] };
      const masked = [
        ...view.host.masked,
        ...view.home.masked,
        ...view.secrets.filter(isSeen),
        ...sockets.filter(isSeen),
        ...ownSockets,
      ];
      const token = { bound: own.bound };
      if (isWritable) {
        running += 1;
        files.begin(token);
      }
      return {
        mounts: [
          ...view.home.mounts,
          ...repository.mounts(isWritable),
          isWritable ? writable(workspace) : readable(workspace),
          ...own.mounts,
        ],
        masked: [...new Set(masked)].filter((place) => statusOf(place) !== null),
        refusals: repository.refusals,
        exchangeable: own.exchangeable,
        end: () => {
          if (!isWritable) return [];
          running -= 1;
          return files.end(token, repository.elsewhere);
        },
      };
    },
  };
};
