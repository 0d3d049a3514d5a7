/**
 * Names of files that people can't tell apart, or that were probably meant.
 *
 * A name may have a blank of another kind (screenshots on macOS have U+202F), an accent of its own
 * (NFD), a curly quote, a long dash or other capitals. Where a path leads nowhere, its first
 * missing part is compared with the names in its folder.
 */

import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { nearestWords } from '../platform/text.js';

/** Equal for names that look alike, except for capitals. */
const foldLook = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(/\s/gu, ' ')
    .replace(/[\u2018-\u201b\u2032]/gu, "'")
    .replace(/[\u201c-\u201f\u2033]/gu, '"')
    .replace(/\p{Pd}/gu, '-');

const foldCapitals = (name: string): string => foldLook(name).toLowerCase();

/** The first part of a path that does not exist, and the names in its folder. */
type MissingPart = {
  readonly folder: string;
  readonly name: string;
  /** The parts after it. */
  readonly rest: readonly string[];
  readonly names: readonly string[];
};

const exists = (place: string): Promise<boolean> =>
  lstat(place).then(
    () => true,
    () => false, // a folder that can't be entered has no names for us either
  );

/** Null if the path exists. The folder of a path that can't be read has no names. */
const findMissingPart = async (real: string): Promise<MissingPart | null> => {
  if (await exists(real)) return null;
  const rest: string[] = [];
  let missing = real;
  while (path.dirname(missing) !== missing && !(await exists(path.dirname(missing)))) {
    rest.unshift(path.basename(missing));
    missing = path.dirname(missing);
  }
  const folder = path.dirname(missing);
  const names = await readdir(folder).catch(() => []); // no folder, or not ours to read
  return { folder, name: path.basename(missing), rest, names };
};

const alike = ({ name, names }: MissingPart, fold: (name: string) => string): readonly string[] => {
  const sought = fold(name);
  return names.filter((one) => one !== name && fold(one) === sought);
};

const PARTS_MAX = 40;

/**
 * The path that exists and looks like `real`; `real` itself if it exists, or if none or several
 * look like it. Symlinks in the found part are not followed.
 */
export const findAlike = async (real: string): Promise<string> => {
  let place = real;
  for (let parts = 0; parts < PARTS_MAX; parts++) {
    const missing = await findMissingPart(place);
    if (missing === null) return place;
    const [only, ...others] = alike(missing, foldCapitals);
    if (only === undefined || others.length > 0) return real;
    place = path.join(missing.folder, only, ...missing.rest);
  }
  return real;
};

/** `"a b.txt" (its name has U+00A0)`: with the characters that may be taken for others. */
export const quoteName = (name: string): string => {
  const odd = [...(name.normalize('NFC') === name ? name : name.normalize('NFD'))].filter(
    (character) => /[^\x20-\x7e]/.test(character) && !/^[\p{L}\p{N}\p{So}]$/u.test(character),
  );
  const codes = [...new Set(odd)].map(
    (character) =>
      `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`,
  );
  return codes.length === 0 ? `"${name}"` : `"${name}" (its name has ${codes.join(', ')})`;
};

const NAMES_MAX = 3;
/** In a larger folder no nearest name is sought: comparing them would hold up everything else. */
const SOUGHT_MAX = 2_000;

/** A sentence about names in the folder that were probably meant; empty if there is none. */
export const suggestNames = async (real: string): Promise<string> => {
  const missing = await findMissingPart(real);
  if (missing === null) return '';
  const same = alike(missing, foldCapitals);
  const isSmall = missing.names.length <= SOUGHT_MAX;
  const near = same.length > 0 || !isSmall ? same : nearestWords(missing.name, missing.names);
  if (near.length === 0) return '';
  const named = near.slice(0, NAMES_MAX).map(quoteName).join(', ');
  const where = missing.rest.length === 0 ? '' : `"${missing.name}" is missing; `;
  return ` ${where === '' ? 'Its folder has' : `${where}beside it:`} ${named}.`;
};

/** Why a path is no folder, with advice for what is there instead. */
export const noFolder = async (real: string, shown: string, advice: string): Promise<string> =>
  (await exists(real))
    ? `${shown} is no folder. ${advice}`
    : `${shown} does not exist.${await suggestNames(real)}`;

/**
 * Quoted names in the folder of a file to be made: `same` ones can't be told from its own, those of
 * `capitals` only by their capitals. None if the file exists.
 */
export const findLookAlikes = async (
  real: string,
): Promise<{ readonly same: readonly string[]; readonly capitals: readonly string[] }> => {
  const missing = await findMissingPart(real);
  if (missing === null) return { same: [], capitals: [] };
  const same = alike(missing, foldLook);
  const capitals = alike(missing, foldCapitals).filter((name) => !same.includes(name));
  return { same: same.map(quoteName), capitals: capitals.map(quoteName) };
};
