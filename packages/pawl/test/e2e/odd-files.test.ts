import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeHeader, decodeRecord, encodeHeader, encodeRecord } from '@pawl/agent/journal/codec';
import { stateFolder } from '@pawl/agent/platform/environment';
import type { AgentTypes, Entry } from '@pawl/agent/ports/journal';
import { runInProcess } from './in-process.js';
import { bin, expectCode, makePlace, type Place, runPawl, sessionOf, start } from './pawl.js';

/** Pipes, devices and folders where files are expected: nothing waits for them, and the words say what is wrong. */

/** Who opens such a pipe waits for ever. */
const LIMIT_MS = 120_000;

const pipe = (file: string): void => {
  mkdirSync(join(file, '..'), { recursive: true });
  execFileSync('mkfifo', [file]);
};

const script = (place: Place): string => {
  writeFileSync(
    join(place.workspace, 'script.json'),
    JSON.stringify({ replies: [{ text: 'done' }, { text: 'done' }] }),
  );
  return 'scripted/script.json';
};

test('pipes among instructions, sessions, history and git’s files hold nothing up', async (t) => {
  const place = makePlace(t);
  const model = script(place);
  pipe(join(place.workspace, 'AGENTS.md'));
  pipe(join(place.state, 'pawl', 'sessions', 'aaaa.jsonl'));
  pipe(join(place.state, 'pawl', 'sessions', 'bbbb.lock'));
  execFileSync('git', ['init', '--quiet', place.workspace]);
  execFileSync('git', ['-C', place.workspace, 'config', 'include.path', '../pipe']);
  pipe(join(place.workspace, 'pipe'));
  const before = performance.now();
  const first = await runPawl(place, ['-p', 'go', '--model', model]);
  expectCode(first, 0);
  assert.match(first.stderr, /AGENTS\.md is not used: it is not a regular file/);
  const again = await runPawl(place, ['-p', 'go on', '--continue', '--model', model]);
  expectCode(again, 0);
  const listed = await runPawl(place, ['sessions']);
  expectCode(listed, 0);
  assert.ok(performance.now() - before < LIMIT_MS, 'nothing was waited for');
});

test('control: who opens such a pipe waits', (t) => {
  const file = join(makePlace(t).workspace, 'pipe');
  pipe(file);
  assert.equal(spawnSync('cat', [file], { timeout: 300 }).signal, 'SIGTERM');
});

type Row = readonly [
  given: string,
  make: (place: Place) => readonly string[],
  exit: number,
  says: RegExp,
];

const config = (place: Place): string => join(place.workspace, '.pawl', 'config.toml');

const rows: readonly Row[] = [
  [
    'a workspace that is a file',
    (place) => {
      writeFileSync(join(place.folder, 'file'), '');
      return ['--workspace', join(place.folder, 'file')];
    },
    2,
    /The workspace \S*file is not a folder\. Give the folder of your project: --workspace FOLDER/,
  ],
  [
    'settings of the project that are a folder',
    (place) => {
      mkdirSync(config(place), { recursive: true });
      return [];
    },
    78,
    /config\.toml: it can't be used: it is a folder/,
  ],
  [
    'settings of the project that are a device',
    (place) => {
      mkdirSync(join(place.workspace, '.pawl'));
      symlinkSync('/dev/zero', config(place));
      return [];
    },
    78,
    /config\.toml: it can't be used: it is not a regular file/,
  ],
  [
    'settings of the project of 10 MB',
    (place) => {
      mkdirSync(join(place.workspace, '.pawl'));
      writeFileSync(config(place), '#'.repeat(10_000_000));
      return [];
    },
    78,
    /config\.toml: it can't be used: it has 10000000 bytes, at most 16384 are read/,
  ],
  [
    'a key file that is a pipe',
    (place) => {
      const key = join(place.folder, 'key');
      pipe(key);
      mkdirSync(join(place.home, '.config', 'pawl'), { recursive: true });
      const text = `[providers.anthropic]\napi_key_file = "${key}"\n`;
      writeFileSync(join(place.home, '.config', 'pawl', 'config.toml'), text);
      return [];
    },
    78,
    /The key in \S*key can't be used: it is not a regular file/,
  ],
];

for (const [given, make, exit, says] of rows) {
  test(`${given}: exit ${exit}, and why`, async (t) => {
    const place = makePlace(t);
    const more = make(place);
    const ended = await runInProcess(place, ['-p', 'go', '--model', script(place), ...more]);
    expectCode(ended, exit);
    assert.match(ended.stderr, says);
  });
}

type WrongPlace = readonly [words: readonly string[], exit: number, says: RegExp];

const wrongPlaces: readonly WrongPlace[] = [
  [
    ['skills', '--workspace', '/nowhere'],
    65,
    /The workspace \/nowhere can't be opened: it does not exist\. Give the folder/,
  ],
  [['mcp', 'list'], 0, /\.mcp\.json is not used: it is not valid JSON: line 1, column 2\b/],
];

test('wrong places and files are named in plain words', async (t) => {
  const place = makePlace(t);
  writeFileSync(join(place.workspace, '.mcp.json'), '{');
  for (const [words, exit, says] of wrongPlaces) {
    const ended = await runInProcess(place, words);
    expectCode(ended, exit);
    assert.match(ended.stderr, says);
    assert.doesNotMatch(ended.stderr, /ENOENT|realpath|lstat/);
  }
});

test('a relative HOME is not used: it would put files of Pawl into the project', async (t) => {
  const state = join(homedir(), '.local/state/pawl');
  assert.equal(stateFolder({ HOME: 'odd-home' }), state);
  assert.equal(stateFolder({ HOME: 'odd-home', XDG_STATE_HOME: 'odd' }), state);
  const place = makePlace(t);
  const environment = {
    ...place.environment,
    HOME: 'odd-home',
    XDG_CONFIG_HOME: join(place.home, '.config'),
  };
  const ended = await runInProcess({ ...place, environment }, ['sessions']);
  expectCode(ended, 0);
  assert.match(
    ended.stderr,
    /^pawl: HOME is not an absolute path \(odd-home\): \/\S+ is used instead\./,
  );
  const usual = await runInProcess(place, ['sessions']);
  assert.doesNotMatch(usual.stderr, /HOME/);
});

test('a folder that was removed meanwhile is no fault of Pawl', (t) => {
  const place = makePlace(t);
  const start = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"';
  const words = [process.execPath, bin, '-p', 'go'];
  const { status, stderr } = spawnSync('sh', ['-c', start, ...words], {
    cwd: place.folder,
    encoding: 'utf8',
  });
  assert.equal(status, 65, stderr);
  assert.match(
    stderr,
    /^pawl: The current folder was removed or replaced\. Go to another one \(cd\)/,
  );
  assert.doesNotMatch(stderr, /internal fault|\n {4}at /);
});

/** A named pipe that nobody writes to would be waited for without end, if it were opened as a file. */

test('named pipes among the session files hold nobody up, and are not gone on with', async (t) => {
  const place = makePlace(t);
  const replies = ['one', 'two', 'three'].map((text) => ({ text }));
  writeFileSync(join(place.workspace, 'script.json'), JSON.stringify({ replies }));
  const words = ['--model', 'scripted/script.json'];
  expectCode(await runInProcess(place, [...words, '-p', 'first']), 0);
  const good = sessionOf(place);
  const newest = '20991231-000000-aaaaaaaa';
  for (const name of [`${newest}.jsonl`, `${good}.lock`, `${newest}.lock`, 'pipe'])
    execFileSync('mkfifo', [join(place.state, 'pawl', 'sessions', name)]);
  const resumed = await runInProcess(place, [...words, '--continue', '-p', 'second']);
  expectCode(resumed, 0);
  assert.match(resumed.stdout, /two/);
  const listed = await runInProcess(place, ['sessions']);
  expectCode(listed, 0);
  assert.match(listed.stdout, new RegExp(`${good}[\\s\\S]*${newest}.*cannot be read`));
  for (const way of [
    ['show', newest],
    ['--resume', newest, '-p', 'x'],
    ['fork', newest, '--at', '1', 'x'],
  ]) {
    const { code, stderr } = await runInProcess(place, way);
    assert.deepEqual(
      [code, /is not a regular file/.test(stderr)],
      [65, true],
      `${way.join(' ')}: ${stderr}`,
    );
  }
});

/** A user id without an entry in /etc/passwd, and without HOME: containers with `--user`. */

const UID = '54321';

const run = (
  context: Parameters<typeof makePlace>[0],
  words: readonly string[],
  variables: readonly string[],
) => {
  const place = makePlace(context);
  const script = join(place.workspace, 'script.json');
  writeFileSync(script, JSON.stringify({ replies: [{ text: 'It works.' }] }));
  const named = variables.map((name) => `${name}=${join(place.folder, name)}`);
  const account = [
    '--unshare-user',
    '--uid',
    UID,
    '--gid',
    UID,
    '--bind',
    '/',
    '/',
    '--dev-bind',
    '/dev',
    '/dev',
  ];
  const environment = ['env', '-i', `PATH=${process.env.PATH}`, `TMPDIR=${place.folder}`, ...named];
  return start(place, 'bwrap', [...account, '--', ...environment, process.execPath, bin, ...words])
    .ended;
};

const PROMPT = ['-p', 'hello', '--model', 'scripted/script.json'];
const ENOUGH = ['XDG_STATE_HOME', 'XDG_CONFIG_HOME'];

for (const words of [PROMPT, ['doctor'], ['sessions']]) {
  test(`without an account and HOME, "${words[0]}" ends with 74 and names the variable to set`, async (context) => {
    const { code, stdout, stderr } = await run(context, words, ['XDG_STATE_HOME']);
    assert.deepEqual({ code, stdout }, { code: 74, stdout: '' }, stderr);
    assert.match(
      stderr,
      /^pawl: There is no home folder: .* 54321 .*Set HOME to a folder of yours, or XDG_CONFIG_HOME\.\n$/,
    );
  });
}

test('without an account and HOME a prompt is answered where the XDG variables say enough', async (context) => {
  const { code, stdout, stderr } = await run(context, PROMPT, ENOUGH);
  assert.deepEqual({ code, stdout }, { code: 0, stdout: 'It works.\n' }, stderr);
});

test('without an account and HOME doctor checks everything where the XDG variables say enough', async (context) => {
  const { code, stdout, stderr } = await run(context, ['doctor'], ENOUGH);
  assert.equal(code, 1, `${stdout}${stderr}`); // there is no key
  assert.match(stdout, /noKey/);
  assert.doesNotMatch(stdout, /check itself failed|homeMissing/);
});

/** Arguments of a tool that nest thousands of levels deep: no recursion over them may end the process. */

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const scriptOf = (place: Place, replies: readonly object[]): string => {
  const file = join(place.folder, 'script.json');
  writeFileSync(file, JSON.stringify({ replies }));
  return `scripted/${file}`;
};

test('a call whose arguments nest too deep is answered, live and when the session goes on', async (context) => {
  const place = makePlace(context);
  const rawInput = (depth: number): string => `{"path":"a.txt","deep":${nested(depth)}}`;
  const told = { contains: ['nested deeper than 100 levels'] };
  const model = scriptOf(place, [
    { calls: [3_000, 100_000].map((depth) => ({ tool: 'read', rawInput: rawInput(depth) })) },
    {
      expect: {
        results: ['call-1-1', 'call-1-2'].map((callId) => ({ callId, failed: true, ...told })),
      },
      text: 'I see.',
    },
    { text: 'Still here.' },
  ]);
  const live = await runInProcess(place, ['-p', 'read it', '--model', model]);
  expectCode(live, 0);
  assert.equal(live.stdout.trim(), 'I see.');
  const resumed = await runInProcess(place, ['-p', 'and now?', '--continue', '--model', model]);
  expectCode(resumed, 0);
  assert.equal(resumed.stdout.trim(), 'Still here.');
});

test('control: whatever walks over such a value by recursion fails', () => {
  assert.throws(() => JSON.stringify(JSON.parse(nested(100_000))), RangeError);
});

/** The journal as a version without the limit wrote it: cut after the reply, the input of its call as deep as that. */
const deepen = (file: string, input: unknown): void => {
  const lines = readFileSync(file).toString().trimEnd().split('\n');
  const [first = '', ...rest] = lines;
  const opened = decodeHeader<AgentTypes>(Buffer.from(first));
  assert.ok(opened.kind === 'header');
  const header = encodeHeader(opened.header);
  const written = [header.bytes];
  let { crc } = opened;
  let sum = header.crc;
  for (const [index, line] of rest.entries()) {
    const read = decodeRecord<AgentTypes>(Buffer.from(line), crc, index + 1);
    assert.ok(read.kind === 'record');
    crc = read.crc;
    const { seq, event } = read.recorded.entry;
    const isReply = event.type === 'LlmCompleted' && event.message !== null;
    // The same event with another input, which is JSON.
    const entry = (
      isReply
        ? {
            seq,
            event: {
              ...event,
              calls: event.calls.map((call) => ({ ...call, input })),
              message: {
                ...event.message,
                parts: event.message.parts.map((part) => ({ ...part, input })),
              },
            },
          }
        : { seq, event }
    ) as Entry;
    const encoded = encodeRecord({ entry, check: null }, sum);
    written.push(encoded.bytes);
    sum = encoded.crc;
    if (isReply) break;
  }
  writeFileSync(file, Buffer.concat(written));
  rmSync(file.replace('.jsonl', '.mark')); // older versions wrote none
};

test('a session of a version without that limit goes on, and can be looked at', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.workspace, 'a.txt'), 'a\n');
  const model = scriptOf(place, [
    { calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    { text: 'Read.' },
    { text: 'Going on.' },
  ]);
  expectCode(await runInProcess(place, ['-p', 'read it', '--model', model]), 0);
  const session = sessionOf(place);
  const deep: unknown = JSON.parse(nested(3_000));
  deepen(join(place.state, 'pawl', 'sessions', `${session}.jsonl`), { path: 'a.txt', deep });
  for (const words of [
    ['replay', session],
    ['show', session],
    ['-p', 'go on', '--continue', '--model', model],
  ]) {
    const ended = await runInProcess(place, words);
    expectCode(ended, 0);
  }
});

test('a message of an editor that is nested too deep ends pawl acp with words, and not with 0', async (context) => {
  const place = makePlace(context);
  const { code, stderr } = await runPawl(
    place,
    ['acp'],
    `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}\n`,
  );
  assert.equal(code, 65, stderr);
  assert.match(stderr, /the editor sent a message that is nested too deep/);
  assert.equal((await runPawl(place, ['acp'])).code, 0);
});
