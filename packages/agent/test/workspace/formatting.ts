import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '../../src/machine/settings.js';
import type { HookReport } from '../../src/ports/hooks.js';
import type { FileMemory } from '../../src/ports/tool.js';
import { createFileMemory } from '../../src/tools/file-change.js';
import { type Deed, makeSession, type Place } from './place.js';

/** A session whose batches are looked at and formatted as the runtime has it done. */

export type Formatting = {
  readonly files: FileMemory;
  /** Makes the calls and runs both phases; the report of the formatters. */
  batch(...deeds: readonly Deed[]): Promise<HookReport>;
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
  const files = createFileMemory();
  const settings = { autoCommit: 'off', formatter: 'onChanges', sandbox } as const;
  const session = makeSession(place, { environment, formatterMs, settings }, files);
  return {
    files,
    async batch(...deeds) {
      const last = deeds.findLastIndex(({ cancelled }) => cancelled);
      if (last >= 0) await session.batch(deeds.slice(0, last + 1));
      const context = session.context(await session.batch(deeds.slice(last + 1)), { signal });
      const checked = await session.hooks.run('CheckingGitCommits', context);
      return session.hooks.run('RunningAutoformatters', { ...context, reports: [checked] });
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
