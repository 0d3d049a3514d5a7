import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'valibot';
import { killProcessesWith } from '../../../../test/kit/tools/processes.js';
import {
  type AnthropicServer,
  type Replies,
  startAnthropicServer,
} from '../../../../test/servers/anthropic.js';
import { type TestScope, temporaryFolder } from '../../../../test/temporary-folder.js';
import { type JsonRecord, recordSchema } from '../../src/headless/record-schema.js';

/** Starts the program as a user does: the built bin, in a folder and a home of its own. */

export const root = fileURLToPath(new URL('../../../..', import.meta.url));
export const bin = join(root, 'packages/pawl/bin/pawl.js');

const LIMIT_MS = 300_000;

/** Compiled code of the program, shared by all places: to compile costs more than most runs. */
const CODE_CACHE = join(root, 'node_modules', '.cache', 'pawl-code');

export type Place = {
  readonly folder: string;
  readonly workspace: string;
  readonly home: string;
  readonly state: string;
  readonly environment: NodeJS.ProcessEnv;
};

/** An empty workspace and home, gone after the test. */
export const makePlace = (context: TestScope, more: NodeJS.ProcessEnv = {}): Place => {
  assert.ok(
    existsSync(join(root, 'packages/pawl/dist/cli.cjs')),
    'dist/cli.cjs is missing: npm run build',
  );
  const folder = temporaryFolder(context, 'e2e');
  const [workspace, home, state] = ['work', 'home', 'state'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]; // as many as there are names
  for (const made of [workspace, home, state]) mkdirSync(made);
  const environment = {
    PATH: process.env.PATH,
    HOME: home,
    GIT_CEILING_DIRECTORIES: process.env.GIT_CEILING_DIRECTORIES,
    XDG_STATE_HOME: state,
    XDG_CACHE_HOME: CODE_CACHE,
    TMPDIR: folder,
    LANG: 'C.UTF-8',
    ...more,
  };
  return { folder, workspace, home, state, environment };
};

/** A place whose provider is a strict local server. */
export const makeServed = async (
  context: TestScope,
  replies: Replies,
  more: NodeJS.ProcessEnv = {},
): Promise<Place & { readonly server: AnthropicServer }> => {
  const server = await startAnthropicServer({ replies });
  context.after(() => server.close());
  const place = makePlace(context, {
    ANTHROPIC_API_KEY: 'key',
    ANTHROPIC_BASE_URL: server.url,
    // What is tried again is not waited for.
    PAWL_RETRY_MS: '5',
    ...more,
  });
  return { ...place, server };
};

export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

export type Running = {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout(): string;
  stderr(): string;
};

/** Starts `pawl` with words. Stdin is `input`, or empty; null leaves it open. A program that does not end is killed, and the test fails. */
export const startPawl = (
  place: Place,
  words: readonly string[],
  input: string | Buffer | null = '',
): Running => start(place, process.execPath, [bin, ...words], input);

export const start = (
  place: Place,
  program: string,
  words: readonly string[],
  input: string | Buffer | null = '',
): Running => {
  const child = spawn(program, words, { cwd: place.workspace, env: place.environment });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined); // it may end before it has read
  if (input !== null) child.stdin.end(input);
  const ended = new Promise<Ended>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`pawl ${words.join(' ')} did not end\n${stdout}\n${stderr}`));
    }, LIMIT_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    });
  });
  return { child, ended, stdout: () => stdout, stderr: () => stderr };
};

export const runPawl = (
  place: Place,
  words: readonly string[],
  input: string | Buffer = '',
): Promise<Ended> => startPawl(place, words, input).ended;

/** Asserts the code, with everything that was printed where it is another. */
export const expectCode = (ended: Ended, code: number): void =>
  assert.equal(ended.code, code, `exit ${ended.code}\n${ended.stdout}\n${ended.stderr}`);

/** The records of a JSON stream; each must fit the published schema. */
export const readRecords = (stdout: string): readonly JsonRecord[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => parse(recordSchema, JSON.parse(line)));

let sleeps = 0;
/** Seconds for a long sleep that no other test of this or another run sleeps: it marks processes, gone after the test. */
export const uniqueSleep = (context: TestContext): string => {
  const seconds = `313.${process.pid}${String(++sleeps).padStart(3, '0')}`;
  context.after(() => killProcessesWith(seconds));
  return seconds;
};

/** The only session of a place. */
export const sessionOf = (place: Place): string => {
  const names = readdirSync(join(place.state, 'pawl', 'sessions')).filter((name) =>
    name.endsWith('.jsonl'),
  );
  assert.equal(names.length, 1, names.join(' '));
  return (names[0] ?? '').replace('.jsonl', '');
};

/** Every request was one that the provider would take. */
export const expectValid = (server: AnthropicServer): void =>
  assert.deepEqual(
    server.requests.flatMap(({ fault }) => (fault === null ? [] : [fault])),
    [],
  );
