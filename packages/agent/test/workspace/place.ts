import { execFile, execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import { findProgram } from '../../src/platform/find-program.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookContext } from '../../src/ports/hooks.js';
import { createFileMemory } from '../../src/tools/file-change.js';
import { CommitWatch } from '../../src/workspace/commit-watch.js';

const execute = promisify(execFile);

/** All that was just written lies still for an hour by this clock: what git says of the configuration is kept. */
export const anHourLater = (): number => Date.now() + 3_600_000;

export type Environment = Readonly<Record<string, string | undefined>>;
export type Write = HookContext['write'];

/** A folder with a home of its own, where git is called as a naive program calls it; gone when the test ends. */
export type Place = {
  readonly root: string;
  readonly workspace: string;
  readonly environment: Environment;
  /** Runs a command with git's usual configuration; rejects where it fails. */
  shell(command: string): Promise<string>;
  /** The same, whatever becomes of it. */
  tryShell(command: string): Promise<string>;
  path(name: string): string;
  write(name: string, text: string): Promise<void>;
  read(name: string): Promise<string>;
};

const AUTHOR = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
};

export const makePlace = async (test: TestContext, extra: Environment = {}): Promise<Place> => {
  const root = temporaryFolder(test, 'workspace');
  const workspace = path.join(root, 'work');
  await mkdir(workspace);
  await mkdir(path.join(root, 'home'));
  const environment: Environment = {
    PATH: process.env.PATH,
    HOME: path.join(root, 'home'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    TMPDIR: process.env.TMPDIR,
    GIT_CEILING_DIRECTORIES: process.env.GIT_CEILING_DIRECTORIES,
    ...extra,
  };
  const naive = { ...AUTHOR, ...environment };
  const shell = async (command: string): Promise<string> => {
    // whatever asks for input gets none
    const words = ['-c', `exec </dev/null; ${command}`];
    const options = { cwd: workspace, env: naive, maxBuffer: 64 * 1024 * 1024 };
    return (await execute('bash', words, options)).stdout;
  };
  const place = (name: string): string => path.join(workspace, name);
  return {
    root,
    workspace,
    environment,
    shell,
    tryShell: (command) => shell(command).catch((error: unknown) => String(error)),
    path: place,
    async write(name, text) {
      await mkdir(path.dirname(place(name)), { recursive: true });
      await writeFile(place(name), text);
    },
    read: (name) => readFile(place(name), 'utf8'),
  };
};

/** A repository with one commit: `a` and `b`, each with one line. */
export const makeRepository = async (
  test: TestContext,
  extra: Environment = {},
): Promise<Place> => {
  const place = await makePlace(test, extra);
  fillFolder(place.workspace, 'a repository', (folder) => {
    const script =
      'git init -q -b main && echo one > a && echo one > b && git add . && git commit -qm first';
    const env = { ...AUTHOR, ...place.environment };
    execFileSync('bash', ['-c', script], { cwd: folder, env });
  });
  return place;
};

/** Puts a program before git on the path, which notes its words in `log`; `REAL` in it stands for the real one. */
export const wrapGit = async (place: Place, script: string): Promise<Environment> => {
  const folder = path.join(place.root, 'bin');
  const real = findProgram('git', { environment: process.env, workspace: place.workspace }) ?? '';
  await mkdir(folder);
  const text = `#!/bin/bash\necho "$*" >> ${place.root}/log\n${script.replaceAll('REAL', real).replaceAll('ROOT', place.root)}\n`;
  await writeFile(path.join(folder, 'git'), text);
  await chmod(path.join(folder, 'git'), 0o755);
  return { ...place.environment, PATH: `${folder}:${process.env.PATH}` };
};

let calls = 0;

const judged = (paths: readonly string[]): JudgedCall => {
  calls += 1;
  return {
    callId: `call-${calls}`,
    tool: 'some',
    input: {},
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
    facts: { argv: [], paths, hosts: [], shape: '' },
  };
};

/**
 * What happens in one call; `unasked`: the phases are not told of it, as of a failure where only calls that end ok count;
 * `cancelled`: the turn ends with it.
 */
export type Deed = (
  | { readonly command: string }
  | { readonly edit: string; readonly text: string }
) & {
  readonly unasked?: true;
  readonly cancelled?: true;
  /** Somebody else does it, while the agent's next call waits for an answer. */
  readonly outside?: true;
};

/** A session at a place: calls are made as the runtime makes them. */
export type Session = {
  readonly watch: CommitWatch;
  readonly settings: Settings;
  /** The calls of one batch that ended ok. */
  batch(deeds: readonly Deed[]): Promise<readonly JudgedCall[]>;
  /** A call that has had its effect when Pawl is killed. */
  cut(deed: Deed): Promise<JudgedCall>;
  context(
    calls: readonly JudgedCall[],
    more?: { signal?: AbortSignal; write?: Write },
  ): HookContext;
};

/** Whatever is not said is as by default, but for auto-commit, which is on: all looks are made. */
export type SessionOptions = {
  readonly environment?: Environment;
  readonly settings?: Partial<Settings>;
  readonly isFormatted?: boolean;
  readonly now?: () => number;
  readonly beforeMs?: number;
  readonly recordFile?: string;
};

export const makeSession = (
  place: Place,
  {
    environment = place.environment,
    settings: own = {},
    isFormatted = false,
    ...clock
  }: SessionOptions = {},
): Session => {
  const watch = new CommitWatch({ environment, isFormatted: async () => isFormatted, ...clock });
  const settings: Settings = {
    ...defaultSettings,
    autoCommit: 'on',
    model: 'test/model',
    workspace: place.workspace,
    ...own,
  };
  return {
    watch,
    async cut(deed) {
      const call = judged(['edit' in deed ? place.path(deed.edit) : place.workspace]);
      await watch.before(call, settings);
      if ('edit' in deed) await place.write(deed.edit, deed.text);
      else await place.shell(deed.command);
      return call;
    },
    settings,
    async batch(deeds) {
      const ok: JudgedCall[] = [];
      for (const deed of deeds) {
        if (deed.outside === true && 'command' in deed) {
          await place.shell(deed.command);
          continue;
        }
        const call = judged(['edit' in deed ? place.path(deed.edit) : place.workspace]);
        await watch.before(call, settings);
        if ('edit' in deed) await place.write(deed.edit, deed.text);
        else await place.shell(deed.command);
        if (deed.cancelled === true || settings.autoCommit === 'on')
          await watch.after(call, settings);
        if (deed.unasked !== true) ok.push(call);
      }
      return deeds.some(({ cancelled }) => cancelled === true) ? [] : ok;
    },
    context: (done, { signal = new AbortController().signal, write = async () => null } = {}) => ({
      workspace: place.workspace,
      settings,
      calls: done,
      reports: [],
      recorded: new Map(),
      interrupted: null,
      prepare: async () => undefined,
      files: createFileMemory(),
      signal,
      write,
    }),
  };
};
