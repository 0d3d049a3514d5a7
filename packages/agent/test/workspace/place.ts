import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { toolCall } from '../../src/machine/event.js';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import { hashBytes } from '../../src/platform/files.js';
import { findProgram } from '../../src/platform/find-program.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookContext, HookReport, Hooks } from '../../src/ports/hooks.js';
import type { FileMemory } from '../../src/ports/tool.js';
import { createFileMemory } from '../../src/tools/file-change.js';
import { ABSENT, loadFile } from '../../src/tools/files.js';
import { createHooks, type HooksOptions } from '../../src/workspace/after-tool-hooks.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';

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

/**
 * What happens in one call; `unasked`: the phases are not told of it, as of a failure where only calls that end ok count;
 * `cancelled`: the turn ends with it.
 */
export type Deed =
  /** `byWords`: its words do not change git folders. `level`: its sandbox, by default one. */
  (
    | { readonly command: string; readonly byWords?: 'readsGit'; readonly level?: 'off' }
    | { readonly edit: string; readonly text: string }
  ) & {
    readonly unasked?: true;
    readonly cancelled?: true;
    /** Somebody else does it, while the agent's next call waits for an answer. */
    readonly outside?: true;
  };

/** A session at a place: calls and phases are run as the runtime runs them. */
export type Session = {
  readonly hooks: Omit<Hooks, 'deadlinesMs'>;
  readonly settings: Settings;
  /** The calls of one batch that ended ok. */
  batch(deeds: readonly Deed[]): Promise<readonly JudgedCall[]>;
  /** A call that has had its effect when Pawl is killed. */
  cut(deed: Deed): Promise<JudgedCall>;
  /** The same session in a later process; `ended`: what it waits for. */
  resume(ended?: JudgedCall): Promise<Session>;
  /** What a resumed session does first. */
  recover(ended?: JudgedCall): Promise<void>;
  check(context: HookContext): Promise<HookReport>;
  /** Commits, as in `check`; `formatted`: what formatters do before it. */
  commit(context: HookContext, formatted?: () => Promise<unknown>): Promise<HookReport>;
  context(
    calls: readonly JudgedCall[],
    more?: { signal?: AbortSignal; write?: Write },
  ): HookContext;
};

/** Whatever is not said is as by default, but for auto-commit, which is on. */
export type SessionOptions = Partial<Pick<HooksOptions, 'now' | 'formatterMs'>> & {
  readonly environment?: Environment;
  readonly settings?: Partial<Settings>;
  /** False: the session keeps no checkpoints. */
  readonly checkpoints?: boolean;
  readonly sessionId?: string;
};

let [calls, sessions] = [0, 0];

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

export const makeSession = (
  place: Place,
  {
    environment = place.environment,
    settings: own = {},
    checkpoints: keeps = true,
    sessionId = `session-${++sessions}`,
    ...times
  }: SessionOptions = {},
  files: FileMemory = createFileMemory(),
): Session => {
  const { workspace } = place;
  const settings: Settings = {
    ...defaultSettings,
    autoCommit: 'on',
    model: 'test/model',
    sandbox: 'off',
    workspace,
    ...own,
  };
  const checkpoints = keeps
    ? createCheckpoints({
        workspace,
        sessionId,
        stateFolder: path.join(place.root, 'state'),
        environment,
        written: (file) => files.ownWrite?.(file)?.after,
      })
    : null;
  const hooks = createHooks({ environment, observer: checkpoints, ...times });
  const traits = { effect: 'opaque', mutating: true } as const;
  const begin = async (deed: Deed): Promise<JudgedCall> => {
    calls += 1;
    const call =
      'edit' in deed
        ? toolCall({
            callId: `call-${calls}`,
            tool: 'write',
            traits: { ...traits, group: 'fileChanges' },
            facts: { paths: [place.path(deed.edit)] },
          })
        : toolCall({
            callId: `call-${calls}`,
            tool: 'bash',
            traits,
            facts: {
              paths: [workspace],
              ...(deed.byWords === undefined ? {} : { shell: { commands: [], unclear: null } }),
            },
          });
    await hooks.before(call, settings);
    await checkpoints?.before(call, 'level' in deed ? deed.level : 'workspace');
    if ('edit' in deed) await writeAsTool(place.path(deed.edit), deed.text, files);
    else await place.shell(deed.command);
    return call;
  };
  const take = () => checkpoints?.take({ by: 'agent' });
  let isOpen = false;
  return {
    hooks,
    settings,
    cut: begin,
    async resume(ended) {
      await checkpoints?.close();
      const more = { environment, settings: own, sessionId, ...times };
      const later = makeSession(place, more, files);
      await later.recover(ended);
      return later;
    },
    async recover(ended) {
      if (ended !== undefined) await checkpoints?.after(ended);
      await checkpoints?.take({ by: 'agent', alsoRan: 'killedCalls' });
    },
    async batch(deeds) {
      if (isOpen) await take(); // as the next request of the model does
      const ok: JudgedCall[] = [];
      for (const deed of deeds) {
        if (deed.outside === true && 'command' in deed) {
          await rest();
          await place.shell(deed.command);
          await rest();
          continue;
        }
        const call = await begin(deed);
        await checkpoints?.after(call);
        if (deed.cancelled === true || settings.autoCommit === 'on')
          await hooks.after(call, settings);
        isOpen = true;
        if (deed.unasked !== true) ok.push(call);
      }
      if (!deeds.some(({ cancelled }) => cancelled === true)) return ok;
      await take();
      isOpen = false;
      return [];
    },
    check: (context) => hooks.run('CheckingGitCommits', context),
    async commit(context, formatted) {
      const report = await hooks.run('CheckingGitCommits', context);
      await formatted?.();
      return hooks.run('AutoCommitting', { ...context, reports: [report] });
    },
    context: (done, { signal = new AbortController().signal, write = async () => null } = {}) => ({
      workspace,
      settings,
      calls: done,
      reports: [],
      interrupted: null,
      prepare: async () => undefined,
      files,
      signal,
      write,
    }),
  };
};

/** Until a change that follows has another time than those before: the clock of files goes in steps. */
export const rest = (): Promise<unknown> => sleep(40);
