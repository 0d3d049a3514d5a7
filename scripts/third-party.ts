/**
 * Writes THIRD-PARTY.md: the licences of the packages that the bundle contains.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

type Bundled = {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly repository: string;
  /** Null: the package does not include it. */
  readonly text: string | null;
};

/**
 * `node_modules/a/node_modules/@b/c/index.js` -> `node_modules/a/node_modules/@b/c`; null of a file
 * of our own.
 */
const packageFolder = (input: string): string | null =>
  /^(?:[^:]*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0] ?? null;

/** Texts of packages that leave it out of what npm installs, by name. */
const KEPT = path.join(import.meta.dirname, 'licences');

const keptText = (name: string): string | null => {
  const file = path.join(KEPT, `${name}.txt`);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
};

const read = (folder: string): Bundled => {
  // Our own reading of npm's manifest: these stand in each that npm has accepted, but for
  // `repository`.
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license: string;
    readonly repository?: string | { readonly url: string };
  };
  const { name, version, license: licence, repository } = manifest;
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text =
    file === undefined ? keptText(name) : readFileSync(path.join(folder, file), 'utf8').trim();
  const url = typeof repository === 'string' ? repository : (repository?.url ?? '');
  return { name, version, licence, repository: url.replace(/^git\+|\.git$/g, ''), text };
};

/** A package without the text takes that of a sister: same repository, same licence. */
const textOf = (found: Bundled, all: readonly Bundled[]): string => {
  if (found.text !== null) return found.text;
  const { repository, licence } = found;
  const sister = all.find(
    (one) => one.text !== null && one.repository === repository && one.licence === licence,
  );
  if (sister?.text) return sister.text;
  throw new Error(
    `${found.name} comes without its licence text, so it can't be bundled: leave it external, or keep its text in scripts/licences/`,
  );
};

/**
 * THIRD-PARTY.md: the licence of every package that stands in dist/. `inputs` are the bundled
 * files.
 */
export const thirdParty = (root: string, inputs: readonly string[]): string => {
  const folders = new Set(inputs.map(packageFolder).filter((folder) => folder !== null));
  const packages = [...folders]
    .map((folder) => read(path.join(root, folder)))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const sections = packages.map(
    (one) =>
      `## ${one.name} ${one.version} (${one.licence})\n\n\`\`\`text\n${textOf(one, packages)}\n\`\`\`\n`,
  );
  const head =
    '# Third-party software\n\nPawl is bundled with these packages. Written by `npm run build`.\n';
  return [head, ...sections].join('\n');
};
