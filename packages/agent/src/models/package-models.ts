/**
 * Models that are reached through a package of the AI SDK, which the user installs beside Pawl.
 *
 * A package is loaded when such a model is named, and only from the folders of the caller: never
 * from a project, whose files are not the user's. The package reads its credentials from the
 * variables of its provider.
 */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { attempt, attemptNow } from '../platform/attempt.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { asText, isObject } from '../platform/untrusted-input.js';
import type { Model } from '../ports/model.js';
import { aiSdkModel } from './ai-sdk-model.js';
import { listedFacts, UNKNOWN } from './catalogue.js';
import type { PackageProvider } from './provider-table.js';

/** Why there is no model; `message` is for the user and says what to do. */
export type PackageProblem = {
  readonly kind: 'noKey' | 'noPackage';
  readonly message: string;
};

export type PackageOptions = {
  /** Folders whose `node_modules` may hold the package; the first that has it counts. */
  readonly folders: readonly string[];
  readonly environment: ProcessEnvironment;
  readonly baseUrl?: string | undefined;
};

/** The model of a provider whose package the user has installed. */
export const packageModel = async (
  provider: PackageProvider,
  name: string,
  options: PackageOptions,
): Promise<{ readonly kind: 'ok'; readonly model: Model } | PackageProblem> => {
  const { environment, baseUrl, folders } = options;
  const id = `${provider.name}/${name}`;
  const unset = provider.variables.find((names) => names.every((one) => !environment[one]?.trim()));
  if (unset !== undefined) {
    const message = `${id} needs ${unset.join(' or ')}: export ${unset[0]}=…\nSee ${provider.documentation}`;
    return { kind: 'noKey', message };
  }
  const found = await findPackage(provider, folders);
  if (found === null) return { kind: 'noPackage', message: installText(provider, id, folders) };
  const loaded = attemptNow(() =>
    aiSdkModel(createModel(provider, name, found, baseUrl), listedFacts(id) ?? UNKNOWN, id),
  );
  if (loaded.kind === 'done') return { kind: 'ok', model: loaded.value };
  const why = loaded.fault.message.split('\n')[0];
  const message = `${provider.npm} in ${found.folder} can't be used: ${why}.\nInstall another version, or a newer Node.`;
  return { kind: 'noPackage', message };
};

const installText = ({ npm }: PackageProvider, id: string, [folder]: readonly string[]): string =>
  folder === undefined
    ? `${id} is reached through ${npm}.\nGive its model to aiSdkModel.`
    : `${id} is reached through ${npm}.\nInstall it: npm install --prefix ${folder} ${npm}`;

/** A package, with its description. */
type FoundPackage = {
  readonly folder: string;
  readonly described: Readonly<Record<string, unknown>>;
};

const findPackage = async (
  { npm }: PackageProvider,
  folders: readonly string[],
): Promise<FoundPackage | null> => {
  for (const parent of folders) {
    const folder = path.join(parent, 'node_modules', npm);
    // One that is missing, or broken, is not there: the next folder may have it.
    const read = await attempt(
      async (): Promise<unknown> =>
        JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')),
    );
    if (read.kind === 'done' && isObject(read.value)) return { folder, described: read.value };
  }
  return null;
};

/** The file of an export, as Node finds it for `import`. */
const exportFile = ({ folder, described }: FoundPackage, subpath: string): string => {
  const { exports, module, main } = described;
  let target: unknown = isObject(exports) ? exports[subpath] : undefined;
  while (isObject(target)) target = target.import ?? target.default;
  const file = asText(target) ?? (subpath === '.' ? (asText(module) ?? asText(main)) : null);
  if (file === null) throw new Error(`it has no ${subpath}`);
  return path.join(folder, file);
};

type Creator = (settings: object) => (name: string) => Parameters<typeof aiSdkModel>[0];

const createModel = (
  provider: PackageProvider,
  name: string,
  found: FoundPackage,
  baseUrl: string | undefined,
): Parameters<typeof aiSdkModel>[0] => {
  const [subpath, create] = provider.entry(name);
  const file = exportFile(found, subpath);
  // A bundled program has no import(); `require` loads a module of either form.
  const loaded: Readonly<Record<string, unknown>> = createRequire(file)(file);
  const creator = loaded[create];
  if (typeof creator !== 'function') throw new Error(`it has no ${create}`);
  // What the package documents; aiSdkModel checks the generation of what it makes.
  return (creator as Creator)(baseUrl === undefined ? {} : { baseURL: baseUrl })(name);
};
