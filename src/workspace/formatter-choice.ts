import path from 'node:path';
import { type Claim, type Folder, openFolder, strongest } from './formatter-signs.js';
import { type Formatter, formatters, type Target } from './formatter-table.js';
import type { Environment } from './git-config.js';
import { findProgram, isWithin, markedFolder, safeSearchPath } from './locate.js';

/**
 * Which formatters a repository uses for a file.
 *
 * 1. The nearest folder counts, from the file's own up to the workspace; what only may be used counts where nothing
 *    is used for certain.
 * 2. A formatter is run from where the project keeps its programs, or from the PATH. Nothing is ever fetched.
 */

type Claimed = { readonly formatter: Formatter; readonly target: Target; readonly claim: Claim };

export type Chosen = Claimed & {
  /** Nothing in the same folder says that another formatter is used for such files. */
  readonly isAlone: boolean;
  /** Absolute path. */
  readonly program: string;
};

export const isFormattable = (file: string): boolean => formatters.some(({ files }) => files.test(file));

/** Folders whose files are somebody else's. */
const FOREIGN = /(^|\/)(node_modules|\.git|\.venv|venv|vendor)\//;

export const isForeign = (file: string, workspace: string): boolean =>
  !isWithin(file, workspace) || FOREIGN.test(path.relative(workspace, file));

const upTo = (top: string, folder: string): readonly string[] => {
  const folders: string[] = [];
  for (let place = folder; isWithin(place, top); place = path.dirname(place)) {
    folders.push(place);
    if (place === top) break;
  }
  return folders;
};

const installedAs = (
  { program, homes }: Formatter,
  file: string,
  workspace: string,
  environment: Environment,
): string | null => {
  const top = markedFolder(workspace) ?? workspace;
  const own = upTo(top, path.dirname(file)).flatMap((folder) => homes.map((home) => path.join(folder, home)));
  const shared = safeSearchPath(environment.PATH ?? '', environment.HOME ?? '', workspace);
  return findProgram([...own, ...shared], program);
};

/** Looks for signs; what it has read of a folder it does not read again. */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: Environment;
  readonly #folders = new Map<string, Promise<Folder>>();

  constructor(workspace: string, environment: Environment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** More than one where the same folder has signs of several. */
  async of(file: string): Promise<readonly Chosen[]> {
    const able = formatters.filter(({ files }) => files.test(file));
    const folders = upTo(this.#workspace, path.dirname(file));
    let perhaps: readonly Claimed[] = [];
    for (const folder of able.length === 0 ? [] : folders) {
      const claimed = await this.#claims(able, { file, folder, folders });
      const certain = claimed.filter(({ claim }) => claim === 'governs');
      if (certain.length > 0) return this.#installed(certain);
      if (perhaps.length === 0) perhaps = claimed;
    }
    return this.#installed(perhaps);
  }

  async #claims(able: readonly Formatter[], target: Target): Promise<readonly Claimed[]> {
    const opened = this.#folders.get(target.folder) ?? openFolder(target.folder);
    this.#folders.set(target.folder, opened);
    const claims: Claimed[] = [];
    for (const formatter of able) {
      const claim = await strongest(formatter.signs, await opened);
      if (claim !== null) claims.push({ formatter, target, claim });
    }
    return claims;
  }

  /** Without those that are not installed. */
  #installed(claims: readonly Claimed[]): readonly Chosen[] {
    return claims.flatMap((claim) => {
      const { formatter, target } = claim;
      const program = installedAs(formatter, target.file, this.#workspace, this.#environment);
      return program === null ? [] : [{ ...claim, isAlone: claims.length === 1, program }];
    });
  }
}
