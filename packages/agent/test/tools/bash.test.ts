import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createCommandOutput } from '../../src/command/output.js';
import { makePlace } from './context.js';

type Row = {
  readonly title: string;
  readonly command: string;
  readonly status: 'ok' | 'failed';
  readonly text: RegExp;
};

const rows: readonly Row[] = [
  {
    title: 'output comes first, the exit code last',
    command: 'echo hi',
    status: 'ok',
    text: /^hi\n\[exit code 0, \d+\.\d s\]$/,
  },
  {
    title: 'a command without output says so',
    command: 'true',
    status: 'ok',
    text: /^\(no output\)\n\[exit code 0/,
  },
  {
    title: 'an exit code other than 0 is a failure with its output',
    command: 'echo hi; exit 3',
    status: 'failed',
    text: /^hi\n\[exit code 3/,
  },
  {
    title: 'a signal is named',
    command: 'kill -9 $$',
    status: 'failed',
    text: /\[ended by SIGKILL/,
  },
  {
    title: 'both outputs keep their order',
    command: 'for i in 1 2 3; do echo out$i; echo err$i >&2; done',
    status: 'ok',
    text: /^out1\nerr1\nout2\nerr2\nout3\nerr3\n/,
  },
  {
    title: 'a syntax error shows the command and nothing of ours',
    command: 'if then',
    status: 'failed',
    text: /line 1: `if then'\n\[exit code 2/,
  },
  {
    title: 'the first line has number 1',
    command: 'echo $LINENO\necho $LINENO',
    status: 'ok',
    text: /^1\n2\n/,
  },
  { title: 'stdin is empty', command: 'cat; echo end', status: 'ok', text: /^end\n/ },
  {
    title: 'there is no terminal',
    command: '[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || ! : 2>/dev/null </dev/tty && echo none',
    status: 'ok',
    text: /^none\n/,
  },
  {
    title: 'escapes of a terminal are taken out',
    command: "printf '\\033[31mred\\033[0m\\n'",
    status: 'ok',
    text: /^red\n/,
  },
  {
    title: 'bytes that are no UTF-8 do no harm',
    command: "printf 'a\\377b\\n'",
    status: 'ok',
    text: /^a\ufffdb\n/,
  },
  {
    title: 'a binary is counted, not shown, and text around it stays',
    command: 'echo start; head -c 20000 "$(command -v bash)"; echo; echo stop',
    status: 'ok',
    text: /^start\n\[20,000 bytes that are no UTF-8 text are not shown; file, [^\n]*\]\nstop\n/,
  },
  {
    title: 'text of another encoding is shown',
    command: "for i in $(seq 100); do printf 'stra\\337e und \\344hnliche Dinge\n'; done",
    status: 'ok',
    text: /^stra\ufffde und \ufffdhnliche Dinge\n(?:[^\n]*\n){98}stra\ufffde/,
  },
  {
    title: 'names that NUL separates are shown',
    command: 'for i in $(seq 100); do printf "./$i\\0"; done',
    status: 'ok',
    text: /^\.\/1\0\.\/2\0[^[]*\.\/100\0\n\[exit code 0/,
  },
  {
    title: 'it runs in the workspace',
    command: '[ "$PWD" = "$(pwd -P)" ] && ls',
    status: 'ok',
    text: /^here\n/,
  },
  {
    title: 'nothing asks and nothing pages',
    command:
      'echo $CI $TERM $NO_COLOR $PAGER $GIT_PAGER $EDITOR $VISUAL $GIT_EDITOR $GIT_TERMINAL_PROMPT',
    status: 'ok',
    text: /^1 dumb 1 cat cat true true true 0\n/,
  },
];

for (const row of rows) {
  test(`bash: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('here'), '');
    const outcome = await place.run('bash', { command: row.command });
    assert.match(outcome.text, row.text);
    assert.equal(outcome.status, row.status);
  });
}

test('bash: keys of providers and the marks of a test runner are not passed on, the rest is', async (t) => {
  const place = await makePlace(t, {
    ...process.env,
    ANTHROPIC_API_KEY: 'secret-1',
    ANTHROPIC_AUTH_TOKEN: 'secret-2',
    OPENAI_API_KEY: 'secret-3',
    GOOGLE_GENERATIVE_AI_API_KEY: 'secret-4',
    FORCE_COLOR: '1',
    NODE_TEST_CONTEXT: 'child-v8',
    KEPT: 'kept',
  });
  const { text } = await place.run('bash', { command: 'env' });
  assert.doesNotMatch(text, /secret-|FORCE_COLOR|NODE_TEST_CONTEXT/);
  assert.match(text, /^KEPT=kept$/m);
});

test('bash: output is told while the command runs', async (t) => {
  const place = await makePlace(t);
  let told = '';
  const progress = (text: string): void => {
    told += text;
    if (told.includes('one')) void writeFile(place.path('go'), '');
  };
  const outcome = await place.run(
    'bash',
    { command: 'echo one; until [ -e go ]; do sleep 0.02; done; echo two' },
    { progress },
  );
  assert.match(outcome.text, /^one\ntwo\n/);
  assert.match(told, /^one\ntwo\n$/);
});

test('bash: huge output keeps its beginning and its end and counts the rest', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', {
    command: 'echo first; yes | head -c 100000000; echo last',
  });
  assert.equal(outcome.status, 'ok');
  assert.ok(outcome.text.length < 3_300_000, `${outcome.text.length}`);
  assert.match(outcome.text, /^first\ny\n/);
  assert.match(outcome.text, /\ny\nlast\n\[exit code 0/);
  const dropped = Number(/\[(\d+) bytes of output were dropped here\]/.exec(outcome.text)?.[1]);
  assert.ok(dropped > 96_700_000, `${dropped}`);
  assert.equal(outcome.droppedBytes, dropped);
  assert.ok(place.progress.every((text) => text.length < 10_000));
});

test('of a line that a program wrote over, the model reads what a terminal would show', () => {
  const shown = (written: string): string => {
    const output = createCommandOutput(() => undefined);
    output.add(Buffer.from(written));
    return output.text();
  };
  const bar = Array.from({ length: 3_000 }, (_, at) => `\r\u001b[K${at / 30}% building`).join('');
  const rows: readonly (readonly [written: string, read: string])[] = [
    [`start\n${bar}\rdone\u001b[K\nend\n`, 'start\ndone\nend\n'],
    ['100% ready\r 20%\n', ' 20% ready\n'],
    ['one\b\b\u001b[32mX\u001b[0m\n', 'oXe\n'],
    ['one two\u001b[3D\u001b[1K\rA\n', 'A\n'],
    ['a\u001b]0;title\u0007b\rc\n', 'cb\n'],
    ['\u{1f980} crab\r\u{1f41d}\n', '\u{1f41d} crab\n'],
    ['windows\r\nlines\r\n', 'windows\r\nlines\r\n'],
    ['half a line\r', 'half a line\r'],
    ['10%\u001b[2K\u001b[1G20%\u001b[2K\u001b[Gdone\n', 'done\n'],
  ];
  for (const [written, read] of rows) assert.equal(shown(written), read);
});

test('a gap in a short output is marked where it is, and the end stays whole', () => {
  const output = createCommandOutput(() => undefined);
  output.add(Buffer.from('first\nhalf'));
  output.skip(7);
  output.add(Buffer.from('way\nlast word'));
  assert.equal(output.text(), 'first\n\n[7 bytes of output were dropped here]\n\nlast word');
  assert.equal(output.totalBytes(), 30);
});

test('the beginning of a huge output ends with a whole character, and with each that is whole', () => {
  const beginning = (text: string): string => {
    const output = createCommandOutput(() => undefined);
    output.add(Buffer.alloc(1024 * 1024 - 4, 'x'));
    output.add(Buffer.from(`${text}${'y'.repeat(3 * 1024 * 1024)}`));
    return /x([^x]*)\n\[\d+ bytes/.exec(output.text())?.[1] ?? '';
  };
  for (const whole of ['😀', 'a漢', 'abé', 'abcd']) assert.equal(beginning(whole), whole);
  for (const [cut, kept] of [
    ['a😀', 'a'],
    ['ab漢', 'ab'],
    ['abcé', 'abc'],
  ] as const)
    assert.equal(beginning(cut), kept);
});

test('bash: one command is one process', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('bash', { command: 'cat /proc/self/stat' });
  const [pid, , , parent, group, session] = outcome.text.split(' ');
  assert.equal(Number(parent), process.pid, 'the shell became the command');
  assert.deepEqual([group, session], [pid, pid]);
});

test('bash: a workspace that is gone is a failure that says so', async (t) => {
  const place = await makePlace(t);
  const gone = { ...place, workspace: place.path('gone') };
  const controller = new AbortController();
  const outcome = await place.tool('bash').run(
    { command: 'true' },
    {
      workspace: gone.workspace,
      batchId: 'batch',
      callId: place.callId,
      paths: [],
      hosts: [],
      sandbox: 'off',
      signal: controller.signal,
      force: controller.signal,
      files: place.files,
      jobs: place.jobs,
      blobs: { get: async () => undefined, put: async () => '' },
      left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
      progress: () => undefined,
    },
  );
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /not started: bash or the workspace is missing/);
});
