import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { toolCall } from '../../src/machine/event.js';
import type { Checkpoints, Restored, TakenCheckpoint } from '../../src/ports/checkpoints.js';
import type { WorkspaceObserver } from '../../src/workspace/checkpoints/own-changes.js';
import {
  type CheckpointsPlace,
  createCheckpoints,
} from '../../src/workspace/checkpoints/session-checkpoints.js';

/** A workspace with sessions in it, whose calls run as the runtime runs them, beside a rival. */

export type Folder = {
  readonly workspace: string;
  readonly stateFolder: string;
  write(name: string, text: string): void;
  read(name: string): string | null;
  remove(name: string): void;
  git(...words: readonly string[]): void;
  /** A session in the folder. */
  session(sessionId: string, more?: SessionPlace): WatchedSession;
  /** Until a change that follows has another time than those before. */
  rest(): Promise<void>;
};

type SessionPlace = Pick<CheckpointsPlace, 'parent' | 'hasHooks'>;

export type WatchedSession = {
  readonly checkpoints: Checkpoints & WorkspaceObserver;
  /** The checkpoints so far. */
  readonly taken: string[];
  /** A tool for files writes the file. `then`: somebody else works before the next call. */
  edit(name: string, text: string, then?: () => void): Promise<void>;
  /** A command runs, and meanwhile whatever `work` does. What the model hears of the user's text. */
  bash(text: string, work: () => void | Promise<void>): Promise<string>;
  /** The batch ends. `jobs`: commands ran in the background when the last one ended. */
  end(alsoRan?: 'jobs'): Promise<TakenCheckpoint | null>;
  /** Takes checkpoints back, by default all. */
  rewind(more?: { readonly ids?: readonly string[]; readonly force?: boolean }): Promise<Restored>;
};

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

const openSession = (
  test: TestContext,
  { workspace, stateFolder, write }: Pick<Folder, 'workspace' | 'stateFolder' | 'write'>,
  sessionId: string,
  more: SessionPlace,
): WatchedSession => {
  const hashes = new Map<string, string>();
  const written = (file: string): string | undefined => hashes.get(file);
  const place = { workspace, sessionId, stateFolder, environment: process.env, written };
  const checkpoints = createCheckpoints({ ...place, ...more });
  test.after(() => checkpoints.close());
  const taken: string[] = [];
  return {
    checkpoints,
    taken,
    async edit(name, text, then) {
      const file = path.join(workspace, name);
      const traits = { group: 'fileChanges', mutating: true } as const;
      const facts = { paths: [file] };
      await checkpoints.before(toolCall({ callId: '1', tool: 'write', traits, facts }));
      write(name, text);
      hashes.set(file, hash(text));
      then?.();
    },
    async bash(text, work) {
      const call = toolCall({ callId: '2', tool: 'bash', input: { command: text }, title: text });
      await checkpoints.before(call);
      await work();
      return checkpoints.after(call);
    },
    async end(alsoRan) {
      const also = alsoRan === undefined ? {} : { alsoRan };
      const ended = await checkpoints.take({ by: 'agent', ...also });
      if (ended !== null) taken.push(ended.checkpoint);
      return ended;
    },
    async rewind({ ids = taken, force = false } = {}) {
      const takeBack = ids.map((id) => ({ id, isForeign: false }));
      const { plan, ...planned } = await checkpoints.plan({ takeBack, force });
      if (plan === null) return { checkpoint: null, ...planned };
      const restored = await checkpoints.restore(plan);
      if (restored.checkpoint !== null) taken.push(restored.checkpoint);
      return restored;
    },
  };
};

const writeAll = (folder: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
};

const runGit = (folder: string, ...words: readonly string[]): void => {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
  execFileSync('git', [...who, ...words], { cwd: folder, stdio: 'ignore' });
};

const makeCommit = (folder: string, files: Readonly<Record<string, string>>): void => {
  writeAll(folder, files);
  runGit(folder, 'init', '-q');
  runGit(folder, 'add', '-A');
  runGit(folder, 'commit', '-qm', 'begin');
};

export const makeFolder = (
  test: TestContext,
  files: Readonly<Record<string, string>>,
  { isRepository = true }: { readonly isRepository?: boolean } = {},
): Folder => {
  const root = realpathSync(temporaryFolder(test, 'whose'));
  const [workspace, stateFolder] = [path.join(root, 'work'), path.join(root, 'state')];
  const write = (name: string, text: string): void => writeAll(workspace, { [name]: text });
  const git = (...words: readonly string[]): void => runGit(workspace, ...words);
  mkdirSync(workspace);
  if (isRepository) fillFolder(workspace, JSON.stringify(files), (made) => makeCommit(made, files));
  else writeAll(workspace, files);
  return {
    workspace,
    stateFolder,
    write,
    git,
    read: (name) => {
      const file = path.join(workspace, name);
      return statSync(file, { throwIfNoEntry: false })?.isFile()
        ? readFileSync(file, 'utf8')
        : null;
    },
    remove: (name) => rmSync(path.join(workspace, name), { recursive: true }),
    session: (sessionId, more = {}) =>
      openSession(test, { workspace, stateFolder, write }, sessionId, more),
    // the clock of the file system goes in steps of some milliseconds
    rest: () => sleep(40).then(() => undefined),
  };
};
