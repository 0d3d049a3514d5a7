import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookContext, HookReport } from '../../src/ports/hooks.js';
import type { FileMemory } from '../../src/ports/tool.js';
import { createFileMemory } from '../../src/tools/file-change.js';
import { ABSENT, hashBytes, loadFile } from '../../src/tools/files.js';
import { createHooks } from '../../src/workspace/after-tool-hooks.js';
import type { Place } from './place.js';

/** A session whose batches are looked at and formatted as the runtime has it done. */

/** `edit`: a call of a file tool, which the model has seen. `command`: a call that names no file. */
export type Deed = (
  | { readonly edit: string; readonly text: string }
  | { readonly command: string }
) & {
  /** The turn is cancelled with it: it belongs to the next batch. */
  readonly cancelled?: true;
};

export type Formatting = {
  readonly files: FileMemory;
  /** Makes the calls and runs both phases; the report of the formatters. */
  batch(...deeds: readonly Deed[]): Promise<HookReport>;
};

let calls = 0;

const judged = (file: string, group: Pick<JudgedCall['traits'], 'group'>): JudgedCall => {
  calls += 1;
  return {
    callId: `call-${calls}`,
    tool: 'some',
    input: {},
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0, ...group },
    facts: { argv: [], paths: [file], hosts: [], shape: '' },
  };
};

/** Writes a file as the tools for files do. */
export const writeAsTool = async (
  file: string,
  text: string,
  memory: FileMemory,
): Promise<void> => {
  const before = await loadFile(file);
  const isNew = before.kind !== 'file';
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  memory.set(file, hashBytes(text));
  memory.wrote?.(
    file,
    isNew ? ABSENT : before.sha256,
    hashBytes(text),
    isNew ? null : before.bytes.toString(),
  );
};

export const makeFormatting = (
  place: Place,
  options: {
    readonly formatterMs?: number;
    readonly signal?: AbortSignal;
    readonly searchPath?: string;
    readonly sandbox?: Settings['sandbox'];
  } = {},
): Formatting => {
  const { formatterMs = 60_000, signal = new AbortController().signal, searchPath } = options;
  const { sandbox = 'off' } = options;
  const environment = {
    ...place.environment,
    ...(searchPath === undefined ? {} : { PATH: searchPath }),
  };
  const hooks = createHooks({ environment, formatterMs });
  const files = createFileMemory();
  const { workspace } = place;
  const settings = {
    ...defaultSettings,
    model: 'test/model',
    workspace,
    formatter: 'onChanges',
    sandbox,
  } as const;
  return {
    files,
    async batch(...deeds) {
      const done: JudgedCall[] = [];
      for (const deed of deeds) {
        const call =
          'edit' in deed
            ? judged(place.path(deed.edit), { group: 'fileChanges' })
            : judged(workspace, {});
        await hooks.before(call, settings);
        if ('edit' in deed) await writeAsTool(place.path(deed.edit), deed.text, files);
        else await place.shell(deed.command);
        if (deed.cancelled === true) await hooks.after(call, settings);
        else done.push(call);
      }
      const context = (reports: readonly HookReport[]): HookContext => ({
        workspace,
        settings,
        calls: done,
        reports,
        recorded: new Map(),
        interrupted: null,
        prepare: async () => undefined,
        files,
        signal,
        write: async () => null,
      });
      const checked = await hooks.run('CheckingGitCommits', context([]));
      return hooks.run('RunningAutoformatters', context([checked]));
    },
  };
};

const ownModules = fileURLToPath(new URL('../../../../node_modules', import.meta.url));

/** Gives a place the formatters that this project has. */
export const installOwn = (place: Place): void =>
  symlinkSync(ownModules, place.path('node_modules'));

/** Stands in for Prettier: it knows `{b:1}` and `const x=1`. */
const STAND_IN =
  "#!/bin/sh\nsed -E 's/\\{b:([0-9]+)\\}$/{ b: \\1 };/; s/^const ([a-z]+)=([0-9]+)$/const \\1 = \\2;/'\n";

/** Gives a place a line of sed in place of Prettier, which costs a start of Node. */
export const installStandIn = (place: Place): void => {
  mkdirSync(place.path('node_modules/.bin'), { recursive: true });
  writeFileSync(place.path('node_modules/.bin/prettier'), STAND_IN, { mode: 0o755 });
};

/** A program in a folder outside the workspace, which is returned: for the PATH. It is a script of bash. */
export const installProgram = (
  place: Place,
  name: string,
  script: string,
  folder = 'programs',
): string => {
  const programs = path.join(place.root, folder);
  mkdirSync(programs, { recursive: true });
  writeFileSync(path.join(programs, name), `#!/bin/bash\n${script}\n`);
  chmodSync(path.join(programs, name), 0o755);
  return `${programs}:${process.env.PATH}`;
};
