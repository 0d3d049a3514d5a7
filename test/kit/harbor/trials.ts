import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ReplyPart, ServerReply, WireUsage } from '../../servers/anthropic.js';

/** Twenty small tasks, each with the replies of a scripted model and a check of the folder afterwards. */

export type TrialFolder = { readonly workspace: string; readonly home: string };

export type Trial = {
  readonly name: string;
  /** For bash, in the folder of the task. */
  readonly setup?: string;
  /** The answers to the requests in their order; the last one is repeated. */
  readonly replies: readonly ServerReply[];
  /** Those to the requests of a task that the model starts. */
  readonly taskReplies?: readonly ServerReply[];
  /** How Harbor sees the end of the installed agent; null: it went well. */
  readonly error: string | null;
  /** Options of the job. */
  readonly kwargs?: Readonly<Record<string, string | number | boolean>>;
  /** A second instruction to the same session. */
  readonly resume?: string;
  /** The time limit comes when the model has been asked this often. */
  readonly endsAfter?: number;
  /** The user's own config.toml. */
  readonly config?: string;
  /** Says what is wrong with the folder; empty for nothing. */
  check(folder: TrialFolder): string;
};

const usage: WireUsage = {
  input_tokens: 1_234,
  output_tokens: 56,
  cache_read_input_tokens: 789,
  cache_creation_input_tokens: 12,
};

const message = (...parts: readonly ReplyPart[]): ServerReply => ({
  type: 'message',
  parts,
  usage,
});
const says = (text: string): ServerReply => message({ type: 'text', text });
const done = says('Done.');

let calls = 0;
const call = (name: string, input: object): ReplyPart => {
  calls += 1;
  return { type: 'call', id: `toolu_${calls}`, name, input };
};
const bash = (command: string, more: object = {}): ServerReply =>
  message(call('bash', { command, ...more }));
const write = (file: string, content: string): ReplyPart => call('write', { path: file, content });

const fails = (status: number, errorType: string, text: string): ServerReply => ({
  type: 'error',
  status,
  errorType,
  message: text,
});

/** Checks that a file has this text. */
const holds =
  (file: string, expected: string | RegExp): Trial['check'] =>
  ({ workspace }) => {
    const whole = path.join(workspace, file);
    if (!existsSync(whole)) return `${file} is missing`;
    const content = readFileSync(whole, 'utf8');
    const fits = typeof expected === 'string' ? content === expected : expected.test(content);
    return fits ? '' : `${file} holds ${content}`;
  };

const nothing = (): string => '';

const work: readonly Trial[] = [
  {
    name: 'write',
    replies: [message(write('hello.txt', 'hello\n')), done],
    error: null,
    check: holds('hello.txt', 'hello\n'),
  },
  {
    name: 'edit',
    setup: 'printf "one\\ntwo\\n" > list.txt',
    replies: [
      message(call('read', { path: 'list.txt' })),
      message(call('edit', { path: 'list.txt', edits: [{ oldText: 'two', newText: '2' }] })),
      done,
    ],
    error: null,
    check: holds('list.txt', 'one\n2\n'),
  },
  {
    name: 'repair-test',
    setup:
      'echo "export const add = (a, b) => a - b;" > add.mjs; ' +
      'echo "import { add } from \'./add.mjs\'; if (add(1, 2) !== 3) process.exit(1);" > test.mjs',
    replies: [
      bash('node test.mjs'),
      message(call('read', { path: 'add.mjs' })),
      message(call('edit', { path: 'add.mjs', edits: [{ oldText: 'a - b', newText: 'a + b' }] })),
      bash('node test.mjs && echo passed > result.txt'),
      done,
    ],
    error: null,
    check: holds('result.txt', 'passed\n'),
  },
  {
    name: 'commit',
    setup: 'git init -q . && git config user.email a@b.c && git config user.name A && touch a',
    replies: [
      bash("git add a && git commit -qm 'Add a'"),
      bash('git log --format=%s > log.txt'),
      done,
    ],
    error: null,
    check: holds('log.txt', 'Add a\n'),
  },
  {
    name: 'long-output',
    replies: [bash('seq 1 60000'), bash('seq 1 60000 | tail -n 1 > last.txt'), done],
    error: null,
    check: holds('last.txt', '60000\n'),
  },
  {
    name: 'search',
    setup: 'mkdir src; echo "const needle = 1;" > src/a.js; echo "other" > src/b.js',
    replies: [
      message(call('search', { pattern: 'needle' }), call('find', { glob: '**/*.js' })),
      message(write('answer.txt', 'src/a.js\n')),
      done,
    ],
    error: null,
    check: holds('answer.txt', 'src/a.js\n'),
  },
  {
    name: 'batch',
    replies: [message(...['a', 'b', 'c', 'd', 'e', 'f'].map((one) => write(one, one))), done],
    error: null,
    check: (folder) =>
      ['a', 'b', 'c', 'd', 'e', 'f'].map((one) => holds(one, one)(folder)).join(''),
  },
  {
    name: 'command-limit',
    replies: [bash('sleep 300', { timeoutMs: 200 }), message(write('after.txt', 'x')), done],
    error: null,
    check: holds('after.txt', 'x'),
  },
  {
    name: 'own-deny',
    setup: 'echo precious > keep.txt',
    config: '[rules]\ndeny = ["rm"]\n',
    replies: [bash('rm keep.txt'), message(write('after.txt', 'x')), done],
    error: null,
    check: (folder) => holds('keep.txt', 'precious\n')(folder) + holds('after.txt', 'x')(folder),
  },
  {
    name: 'server',
    setup:
      "echo \"require('http').createServer((_, out) => out.end('pong')).listen(process.env.PWD + '/socket')\" > server.js; " +
      "echo \"const ask = () => require('http').get({ socketPath: process.env.PWD + '/socket' }, (come) => come.pipe(require('fs').createWriteStream('pong.txt'))).on('error', () => setTimeout(ask, 20)); ask()\" > client.js",
    replies: [bash('node server.js', { background: true }), bash('node client.js'), done],
    error: null,
    check: holds('pong.txt', 'pong'),
  },
  {
    name: 'cut-once',
    replies: [
      { type: 'message', parts: [{ type: 'text', text: 'I beg' }], end: 'cut', usage },
      message(write('again.txt', 'x')),
      done,
    ],
    error: null,
    check: holds('again.txt', 'x'),
  },
  {
    name: 'task',
    kwargs: { tasks: true },
    setup: 'echo 42 > note.txt',
    replies: [
      message(call('task', { purpose: 'read', prompt: 'What is in note.txt? [[TASK]]' })),
      message(write('answer.txt', '42')),
      done,
    ],
    taskReplies: [message(call('read', { path: 'note.txt' })), says('42')],
    error: null,
    check: holds('answer.txt', '42'),
  },
  {
    name: 'resume',
    resume: 'and the second',
    replies: [message(write('one', '1')), done, message(write('two', '2')), done],
    error: null,
    check: (folder) => holds('one', '1')(folder) + holds('two', '2')(folder),
  },
];

const endings: readonly Trial[] = [
  {
    name: 'rate-limit',
    replies: [message(write('one', '1')), fails(429, 'rate_limit_error', 'Slow down')],
    error: 'ApiRateLimitError',
    check: holds('one', '1'),
  },
  {
    name: 'overloaded',
    replies: [fails(529, 'overloaded_error', 'Overloaded')],
    error: 'ApiOverloadedError',
    check: nothing,
  },
  {
    name: 'wrong-key',
    replies: [fails(401, 'authentication_error', 'invalid x-api-key')],
    error: 'AgentAuthenticationError',
    check: nothing,
  },
  {
    name: 'no-model',
    replies: [fails(404, 'not_found_error', 'model: claude-sonnet-5-5 not found')],
    error: 'ModelNotFoundError',
    check: nothing,
  },
  {
    name: 'too-long',
    replies: [fails(400, 'invalid_request_error', 'prompt is too long: 2000000 tokens > 1000000')],
    error: 'ContextWindowExceededError',
    check: nothing,
  },
  {
    name: 'refusal',
    replies: [
      { type: 'message', parts: [{ type: 'text', text: 'No.' }], stopReason: 'refusal', usage },
    ],
    error: 'AgentSafetyRefusalError',
    check: nothing,
  },
  {
    name: 'time-limit',
    replies: [message(write('one', '1')), { type: 'nothing' }],
    endsAfter: 2,
    error: 'AgentTimeoutError',
    check: holds('one', '1'),
  },
];

export const trials: readonly Trial[] = [...work, ...endings];
