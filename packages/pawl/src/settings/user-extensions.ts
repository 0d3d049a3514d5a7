/**
 * Extensions: programs of the user that give sessions tools, commands and models. They lie in
 * `extensions/` beside the user's config.toml, and nowhere else: no project brings one. They run in
 * this process, with all that the user may do.
 *
 * A file that can't be used is a fault, and the session goes on without it.
 */

import { readdirSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { defineTool } from '@pawl/agent';
import type { aiSdkModel } from '@pawl/agent/models/ai-sdk-model';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import type { Model } from '@pawl/agent/ports/model';
import type { Tool } from '@pawl/agent/ports/tool';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { packageFolder } from '../process/package-folder.js';

/** What the default export of an extension is called with. */
export type ExtensionApi = {
  readonly defineTool: typeof defineTool;
  readonly aiSdkModel: typeof aiSdkModel;
  /** A schema for `defineTool` from JSON Schema, for those who use no library of schemas. */
  jsonSchema(schema: JsonObject): Parameters<typeof defineTool>[0]['input'];
};

/** A command that the user types: `/NAME WORDS`. */
export type ExtensionCommand = {
  readonly name: string;
  /** One line for the list of commands. */
  readonly description: string;
  /** The text that the model reads below the line that was typed. */
  run(words: string): string | Promise<string>;
};

/** A provider of models, named as `NAME/MODEL`. */
export type ExtensionProvider = {
  readonly name: string;
  /** The model of this name; rejects with the reason if there is none. */
  connect(model: string): Model | Promise<Model>;
};

export type Extension = {
  readonly tools?: readonly Tool[];
  readonly commands?: readonly ExtensionCommand[];
  readonly providers?: readonly ExtensionProvider[];
};

/** The default export of a file in `extensions/`. */
export type ExtensionFunction = (pawl: ExtensionApi) => Extension | Promise<Extension>;

export type LoadedExtensions = Required<Extension> & {
  /** The files that are used. */
  readonly files: readonly string[];
  /** A line for each file, tool, command and provider that is not used, with the reason. */
  readonly faults: readonly string[];
};

const FILE = /^[^.].*(?<!\.d)\.(?:[cm]?js|m?ts)$/;
const TYPESCRIPT = /\.m?ts$/;
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;
const PARTS: readonly string[] = ['tools', 'commands', 'providers'];
/** Tools that only some sessions have. */
const OTHER_TOOLS = /^(?:task|skill|explore|ask_user|propose_plan|mcp__.*)$/;
const LOAD_MAX_MS = 10_000;
/** While a command runs, the texts that are typed after it wait. */
const COMMAND_MAX_MS = 2 * 60_000;

const listFiles = (folder: string): readonly string[] => {
  const listed = attemptNow(() => readdirSync(folder));
  if (listed.kind === 'fault') return []; // it is no folder, or a closed one
  return listed.value.filter((name) => FILE.test(name)).sort();
};

/** Why others could change this file or folder itself; null if they can't. */
const mistrust = (place: string): string | null => {
  const { uid, mode } = statSync(place);
  const isOwn = uid === process.getuid?.() || uid === 0 || process.getuid === undefined;
  if (!isOwn) return `${place} belongs to another user`;
  return (mode & 0o022) === 0 ? null : `others can change ${place}: chmod go-w ${place}`;
};

const canReadTypeScript = (): boolean =>
  'typescript' in process.features && process.features.typescript !== false;

const importFile = async (file: string, api: ExtensionApi): Promise<Extension> => {
  const real = realpathSync(file);
  const why = mistrust(path.dirname(file)) ?? mistrust(path.dirname(real)) ?? mistrust(real);
  if (why !== null) throw new Error(why);
  if (TYPESCRIPT.test(file) && !canReadTypeScript())
    throw new Error('TypeScript needs Node 22.18 or newer; JavaScript works everywhere');
  const importModule = createRequire(import.meta.url)(
    path.join(packageFolder(), 'bin', 'import-file.js'),
  );
  const { default: extend } = await importModule(pathToFileURL(real).href);
  if (typeof extend !== 'function') throw new Error('its default export is not a function');
  const extension: unknown = await extend(api);
  if (typeof extension !== 'object' || extension === null)
    throw new Error('its function gives no object with tools, commands or providers');
  for (const [key, parts] of Object.entries(extension)) {
    if (!PARTS.includes(key)) throw new Error(`it gives ${key}; known are ${PARTS.join(', ')}`);
    if (!Array.isArray(parts)) throw new Error(`its ${key} are not a list`);
  }
  return extension;
};

const inTime = <T>(work: T | Promise<T>, limitMs: number): Promise<T> =>
  Promise.race([
    work,
    delay(limitMs, undefined, { ref: false }).then(() => {
      throw new Error(`it took longer than ${limitMs / 1000} seconds`);
    }),
  ]);

const openApi = async (): Promise<ExtensionApi> => {
  const [{ defineTool }, { aiSdkModel }, { AjvJsonSchemaValidator }] = await Promise.all([
    import('@pawl/agent'),
    import('@pawl/agent/models/ai-sdk-model'),
    import('@modelcontextprotocol/server/validators/ajv'),
  ]);
  const validators = new AjvJsonSchemaValidator();
  return {
    defineTool,
    aiSdkModel,
    jsonSchema(schema) {
      const validate = validators.getValidator<JsonObject>(schema);
      return {
        '~standard': {
          version: 1,
          vendor: 'pawl',
          jsonSchema: { input: () => schema },
          validate(value) {
            const checked = validate(value);
            return checked.valid
              ? { value: checked.data }
              : { issues: [{ message: checked.errorMessage }] };
          },
        },
      };
    },
  };
};

type Part = { readonly name: string };
type Parts<P> = readonly (readonly [file: string, parts: readonly P[]])[];

/** The parts that can be used; of two with one name the first counts. */
const usable = <P extends Part>(
  kind: string,
  parts: Parts<P>,
  check: (part: P) => void,
  faults: string[],
): readonly P[] => {
  const used = new Map<string, P>();
  for (const [file, listed] of parts)
    for (const part of listed) {
      const checked = attemptNow(() => {
        check(part); // throws
        if (used.has(part.name)) throw new Error('there is another one');
        used.set(part.name, part);
      });
      if (checked.kind === 'fault')
        faults.push(`The ${kind} ${part?.name} of ${file} is not used: ${checked.fault.message}.`);
    }
  return [...used.values()];
};

/** Throws if Pawl has this name itself, or if it is none. */
const checkName = (name: string, isTaken: boolean): void => {
  if (isTaken) throw new Error('Pawl has one of that name');
  if (!NAME.test(name)) throw new Error('a name has small letters, digits and -');
};

const load = async (folder: string): Promise<LoadedExtensions> => {
  const names = listFiles(folder);
  const [api, { builtinTools }, { checkTool }, { findProvider, packageProviders }] =
    await Promise.all([
      openApi(),
      import('@pawl/agent/tools/builtin-tools'),
      import('@pawl/agent/session/outside-values'),
      import('@pawl/agent/models/provider-table'),
    ]);
  const faults: string[] = [];
  const loaded: (readonly [file: string, extension: Extension])[] = [];
  for (const name of names) {
    const file = path.join(folder, name);
    const one = await attempt(() => inTime(importFile(file, api), LOAD_MAX_MS));
    if (one.kind === 'done') loaded.push([file, one.value]);
    else faults.push(`The extension ${file} is not used: ${one.fault.message}.`);
  }
  const builtIn = new Set(builtinTools().map((tool) => tool.name));
  const listParts = <P>(read: (extension: Extension) => readonly P[] | undefined): Parts<P> =>
    loaded.map(([file, extension]) => [file, read(extension) ?? []]);
  return {
    files: loaded.map(([file]) => file),
    tools: usable(
      'tool',
      listParts(({ tools }) => tools),
      (tool) => {
        checkTool(tool);
        if (builtIn.has(tool.name) || OTHER_TOOLS.test(tool.name))
          throw new Error('Pawl has one of that name');
      },
      faults,
    ),
    commands: usable(
      'command',
      listParts(({ commands }) => commands),
      ({ name, run }) => {
        checkName(name, false);
        if (typeof run !== 'function') throw new Error('it has no function run');
      },
      faults,
    ).map((command) => ({
      name: command.name,
      description: command.description,
      run: (words) => inTime(command.run(words), COMMAND_MAX_MS),
    })),
    providers: usable(
      'provider',
      listParts(({ providers }) => providers),
      ({ name, connect }) => {
        const isPackaged = packageProviders.some((one) => one.name === name);
        checkName(name, name === 'scripted' || isPackaged || findProvider(name) !== undefined);
        if (typeof connect !== 'function') throw new Error('it has no function connect');
      },
      faults,
    ),
    faults,
  };
};

const loads = new Map<string, Promise<LoadedExtensions>>();

/** The extensions of a folder. They are loaded once in a process. */
export const loadExtensions = (folder: string): Promise<LoadedExtensions> => {
  const loading = loads.get(folder) ?? load(folder);
  loads.set(folder, loading);
  return loading;
};
