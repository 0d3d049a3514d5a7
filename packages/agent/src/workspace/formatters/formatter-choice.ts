import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { isWithin } from '../../platform/files/is-within.js';
import { repositoryFolders } from '../../platform/files/repository-folders.js';
import {
  findProgram,
  findRepositoryProgram,
  type ProgramPath,
} from '../../platform/programs/find-program.js';
import { type Claim, type FormatterFolder, openFolder, strongest } from './formatter-detection.js';
import { type FormatTarget, type Formatter, formatters } from './formatter-table.js';

/**
 * Chooses the formatters that a repository uses for a file.
 *
 * 1. The nearest folder with signs counts, from the file's own up to the workspace. Formatters that are only possible
 *    count if no certain one is found.
 * 2. A formatter comes from the project's own program folders or from the PATH. Nothing is ever downloaded.
 */

type Claimed = { readonly formatter: Formatter; readonly target: FormatTarget; readonly claim: Claim };

export type ChosenFormatter = Claimed & {
  /** Whether no other formatter has signs in the same folder for such files. */
  readonly isAlone: boolean;
  readonly program: ProgramPath;
};

export const isFormattable = (file: string): boolean => formatters.some(({ files }) => files.test(file));

/** Folders with other people's files. */
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
  environment: ProcessEnvironment,
): ProgramPath | null => {
  const top = repositoryFolders(workspace).top ?? workspace;
  const own = upTo(top, path.dirname(file)).flatMap((folder) => homes.map((home) => path.join(folder, home)));
  return findRepositoryProgram(own, program) ?? findProgram(program, { environment, workspace });
};

/** Looks for signs of formatters, reading each folder once. */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: ProcessEnvironment;
  readonly #folders = new Map<string, Promise<FormatterFolder>>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** The formatters of a file: several if the same folder has signs of several. */
  async of(file: string): Promise<readonly ChosenFormatter[]> {
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

  async #claims(able: readonly Formatter[], target: FormatTarget): Promise<readonly Claimed[]> {
    const opened = this.#folders.get(target.folder) ?? openFolder(target.folder);
    this.#folders.set(target.folder, opened);
    const claims: Claimed[] = [];
    for (const formatter of able) {
      const claim = await strongest(formatter.signs, await opened);
      if (claim !== null) claims.push({ formatter, target, claim });
    }
    return claims;
  }

  /** Drops formatters that are not installed. */
  #installed(claims: readonly Claimed[]): readonly ChosenFormatter[] {
    return claims.flatMap((claim) => {
      const { formatter, target } = claim;
      const program = installedAs(formatter, target.file, this.#workspace, this.#environment);
      return program === null ? [] : [{ ...claim, isAlone: claims.length === 1, program }];
    });
  }
}
