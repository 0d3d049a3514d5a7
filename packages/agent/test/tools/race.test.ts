import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile, realpath, rename, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { countCases } from '../../../../test/tier.js';
import { createJobs, type ToolContext, type ToolOutcome } from '../../src/ports/tool.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';
import { createFileMemory } from '../../src/tools/file-change.js';

/**
 * File tools while another process exchanges a folder of the workspace with a symlink to a folder outside, as fast as
 * it can. PAWL_COUNT=10000 makes as many calls; the default is a sample.
 */

const CALLS = countCases(240);
const CONTROL_MS = 20_000;
const FILES = 8;
const SECRET = 'outside-secret';

/** Moves the folder away, the symlink to its place, and back; a folder that a tool has made there meanwhile goes. */
const EXCHANGER = `
const { renameSync, rmSync } = require('node:fs');
const [folder, link, aside] = process.argv.slice(1);
const move = (from, to) => {
  for (;;) {
    try { return renameSync(from, to); } catch {}
    try { rmSync(to, { recursive: true, force: true }); } catch {} // a tool is just filling it
  }
};
const rest = () => { for (let i = Math.random() * 3000; i > 0; i--); };
process.stdout.write('ready');
for (;;) {
  move(folder, aside); move(link, folder); rest();
  move(folder, link); move(aside, folder); rest();
}`;

type Stage = {
  readonly workspace: string;
  readonly outside: string;
  readonly exchanger: ChildProcess;
  stop(): Promise<void>;
};

const nameOf = (index: number): string => `file-${index % FILES}.txt`;

/** `workspace/folder` has files; `workspace/link` leads to files of the same names, and another, outside. */
const makeStage = async (t: TestContext): Promise<Stage> => {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-race-')));
  const [workspace, outside] = [path.join(root, 'work'), path.join(root, 'outside')];
  mkdirSync(path.join(workspace, 'folder/deeper'), { recursive: true });
  mkdirSync(path.join(outside, 'deeper'), { recursive: true });
  for (let index = 0; index < FILES; index++) {
    for (const place of ['', 'deeper']) {
      writeFileSync(
        path.join(workspace, 'folder', place, nameOf(index)),
        `inside ${index} needle\n`,
      );
      writeFileSync(path.join(outside, place, nameOf(index)), `${SECRET} ${index} needle\n`);
    }
  }
  writeFileSync(path.join(outside, `${SECRET}.txt`), `${SECRET} needle\n`);
  symlinkSync(outside, path.join(workspace, 'link'));
  const words = ['folder', 'link', 'aside'].map((name) => path.join(workspace, name));
  const exchanger = spawn(process.execPath, ['-e', EXCHANGER, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => exchanger.stdout?.once('data', resolve));
  const ended = new Promise<void>((resolve) => exchanger.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    assert.equal(exchanger.exitCode, null, 'the other process has exchanged until now');
    exchanger.kill('SIGKILL');
    await ended;
  };
  t.after(async () => {
    exchanger.kill('SIGKILL');
    await ended;
    removeFolderSync(root);
  });
  return { workspace, outside, exchanger, stop };
};

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();

/** Files outside that are new, or hold something else than at the beginning. */
const changesOutside = ({ outside }: Stage): readonly string[] =>
  filesBelow(outside).filter(
    (file) =>
      !(/^(deeper\/)?file-\d\.txt$/.test(file) || file === `${SECRET}.txt`) ||
      !readFileSync(path.join(outside, file), 'utf8').startsWith(SECRET),
  );

/** One call of each tool in turn; `folder` is what is exchanged. */
const callOf = (index: number): readonly [tool: string, input: JsonObject] => {
  const file = `folder/${index % 2 === 0 ? '' : 'deeper/'}${nameOf(index)}`;
  const edits = [{ oldText: 'inside', newText: 'inside inside' }];
  const kinds: readonly (readonly [string, JsonObject])[] = [
    ['read', { path: file }],
    ['edit', { path: file, edits }],
    ['read', { path: 'folder' }],
    ['write', { path: `folder/new-${index}/file.txt`, content: `written ${index}` }],
    ['write', { path: file, content: `inside ${index} needle\n` }],
    ['read', { path: file }],
    ['write', { path: `folder/made-${index}.txt`, content: `written ${index}` }],
    ['list', { path: 'folder', depth: 3 }],
    ['find', { glob: '**/*.txt', path: 'folder' }],
    ['search', { pattern: 'needle', path: 'folder' }],
    ['search', { pattern: 'needle' }],
    ['search', { pattern: SECRET, path: 'folder', filesOnly: true }],
  ];
  return kinds[index % kinds.length] ?? ['read', { path: file }];
};

type Caller = (tool: string, input: JsonObject) => Promise<ToolOutcome | null>;

/** Judges and runs as the runtime does, under a policy that allows the workspace only; null of what it denies. */
const createCaller = (workspace: string): Caller => {
  const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));
  const signal = new AbortController().signal;
  const shared = {
    workspace,
    batchId: 'batch',
    callId: 'race',
    hosts: [],
    sandbox: 'off' as const,
    signal,
    force: signal,
    files: createFileMemory(),
    jobs: createJobs(),
    left: () => ({ usd: { type: 'unlimited' as const }, tokens: { type: 'unlimited' as const } }),
    blobs: { get: async () => undefined, put: async () => '' },
    progress: () => undefined,
  };
  return async (name, input) => {
    const tool = tools.get(name);
    assert.ok(tool !== undefined);
    const judged = await tool.judge(input, workspace);
    if (judged.kind === 'invalid') return null;
    if (judged.facts.paths.some((file) => !file.startsWith(workspace))) return null;
    const context: ToolContext = { ...shared, paths: judged.facts.paths };
    await tool.before?.(judged.input, context).catch(() => undefined); // the call itself says what is wrong
    return tool.run(judged.input, context);
  };
};

test(`${CALLS} calls of file tools while a folder and a symlink are exchanged: nothing outside is read or written`, async (t) => {
  const stage = await makeStage(t);
  const call = createCaller(stage.workspace);
  const counts = { done: 0, refused: 0, denied: 0 };
  const leaks: string[] = [];
  for (let index = 0; index < CALLS; index++) {
    const [tool, input] = callOf(index);
    const outcome = await call(tool, input);
    if (outcome === null) counts.denied += 1;
    else if (outcome.status === 'ok') counts.done += 1;
    else counts.refused += 1;
    const shown = `${outcome?.text ?? ''}${outcome?.diff ?? ''}`;
    if (shown.includes(SECRET))
      leaks.push(`${tool} ${JSON.stringify(input)}: ${shown.slice(0, 200)}`);
  }
  await stage.stop();
  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual(leaks, []);
  assert.deepEqual(changesOutside(stage), []);
  assert.deepEqual(
    filesBelow(stage.workspace).filter((file) => file.endsWith('.tmp')),
    [],
    'stray temporary files',
  );
  assert.ok(
    counts.done > CALLS / 20 && counts.refused > 0,
    `it was a race: ${JSON.stringify(counts)}`,
  );
});

/** As it was done before: the path is checked, and then used. */
const checkedPath = async (file: string, workspace: string): Promise<string | null> => {
  const real = await realpath(file).catch(() => null);
  return real?.startsWith(workspace) ? real : null;
};

test('control: the same race against paths that are checked and then used leaks', async (t) => {
  const stage = await makeStage(t);
  const { workspace } = stage;
  let reads = 0;
  const end = performance.now() + CONTROL_MS;
  for (
    let index = 0;
    performance.now() < end && (reads === 0 || changesOutside(stage).length === 0);
    index++
  ) {
    const real = await checkedPath(path.join(workspace, 'folder', nameOf(index)), workspace);
    if (real === null) continue;
    const text = await readFile(real, 'utf8').catch(() => '');
    if (text.includes(SECRET)) reads += 1;
    const temporary = path.join(path.dirname(real), `.${index}.tmp`);
    await writeFile(temporary, 'written').catch(() => undefined);
    if ((await checkedPath(real, workspace)) === real)
      await rename(temporary, path.join(path.dirname(real), `made-${index}.txt`)).catch(
        () => undefined,
      );
    else await unlink(temporary).catch(() => undefined);
  }
  await stage.stop();
  const writes = changesOutside(stage).length;
  t.diagnostic(JSON.stringify({ reads, writes }));
  assert.ok(reads > 0 && writes > 0, 'the race is one');
});
