/**
 * Ten jobs with real tools, done by scripted models that reply to what they see. A script takes
 * the short way where the results show what it needs, and more rounds where they don't. A round is
 * one request with the calls of its reply; `npm run bench -- model-side` compares the rounds with
 * the fewest possible.
 *
 * From top to bottom: what a job is; functions for scripts; the jobs; the model that plays one;
 * and the table of results.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { memoryJournals } from '../packages/agent/src/journal/memory-store.js';
import type { ResultPart } from '../packages/agent/src/machine/message.js';
import type { Model, ModelRequest } from '../packages/agent/src/ports/model.js';
import { compactionInstructions } from '../packages/agent/src/session/compaction.js';
import { openSession } from '../packages/agent/src/session/create-agent.js';

type Call = { readonly tool: string; readonly input: unknown };

/** The model's part of a job: yields calls, gets their results, returns the answer. */
type Script = Generator<readonly Call[], string, readonly ResultPart[]>;

/** A fact that the model learns from the result of `foundIn`, and can't use before. */
type ChainLink = { readonly fact: string; readonly foundIn: string };

/** The folder of a job, and what has to be undone after it. */
type Place = { readonly workspace: string; readonly cleanUp: (() => void)[] };

export type Job = {
  readonly name: string;
  /**
   * Each fact needs the one before it: its call could not be written earlier. So a model needs one
   * reply for each, and one for the answer: fewer rounds are impossible.
   */
  readonly chain: readonly ChainLink[];
  readonly prepare: (place: Place) => void | Promise<void>;
  readonly play: () => Script;
  /** Says what is wrong with the workspace or the answer; null: the job is done. */
  readonly check: (answer: string, workspace: string) => string | null;
  /**
   * A refusal that the job is about: the way out that its text must name. Any other refusal counts.
   */
  readonly refusal?: RegExp;
  readonly windowTokens?: number;
};

export type Measured = {
  readonly rounds: number;
  /** The fewest rounds that are possible. */
  readonly bound: number;
  readonly summaries: number;
  /** Bytes of all requests' messages, as JSON. */
  readonly sentBytes: number;
  readonly fault: string | null;
  /** Texts of calls that did not run, without the refusal that the job is about. */
  readonly refusals: readonly string[];
  readonly approvals: number;
};

const call = (tool: string, input: unknown): Call => ({ tool, input });
const bash = (command: string, more: object = {}): Call => call('bash', { command, ...more });
const text = (results: readonly ResultPart[], at = 0): string => results[at]?.text ?? '';

const write = ({ workspace }: Place, name: string, content: string | Buffer): void => {
  const file = path.join(workspace, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
};

const commitAll = ({ workspace }: Place): void => {
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@b.c', ...words], {
      cwd: workspace,
      stdio: 'ignore',
    });
  git('init', '-q');
  git('config', 'user.name', 'A');
  git('config', 'user.email', 'a@b.c');
  git('add', '-A');
  git('commit', '-qm', 'Begin');
};

const requireWords = (answer: string, ...words: readonly string[]): string | null => {
  const missing = words.filter((word) => !answer.includes(word));
  return missing.length === 0 ? null : `the answer lacks ${missing.join(', ')}: ${answer}`;
};

const TOKEN = 'tea-7731';
const SERVER = `require('node:http').createServer((_, reply) => reply.end('${TOKEN.slice(0, 4)}' + 7731)).listen(4567)`;

const devServer: Job = {
  name: 'a dev server in the background, and curl',
  chain: [{ fact: 'what the server answers', foundIn: 'curl, started together with the server' }],
  prepare: (place) => write(place, 'server.cjs', SERVER),
  *play() {
    const curl = bash('curl -sS --retry 9 --retry-connrefused http://localhost:4567/');
    let results = yield [bash('node server.cjs', { background: true }), curl];
    while (!text([...results].reverse()).includes('tea-')) results = yield [curl];
    return text([...results].reverse());
  },
  check: (answer) => requireWords(answer, TOKEN),
};

const TEST_PROGRAM = `
const { total } = require('./price.cjs');
for (let at = 1; at <= 5000; at++) {
  if (at !== 2711) console.log('ok ' + at + ' - a case that says nothing at all');
  else if (total(3, 4) === 7) console.log('ok 2711 - totals');
  else {
    console.log('not ok 2711 - totals\\n  AssertionError: expected 7, got ' + total(3, 4) + '\\n    at price.cjs:3');
    process.exitCode = 1;
  }
}`;

const longLog: Job = {
  name: 'a test log of 5,000 lines',
  chain: [
    { fact: 'which test fails, and where', foundIn: 'the log' },
    { fact: 'the text to change', foundIn: 'the file that the log names' },
    { fact: 'whether the tests pass now', foundIn: 'the log after the edit' },
  ],
  prepare(place) {
    write(
      place,
      'price.cjs',
      '// Prices\nconst total = (one, two) =>\n  one - two;\nmodule.exports = { total };\n',
    );
    write(place, 'test.cjs', TEST_PROGRAM);
  },
  *play() {
    let results = yield [bash('node test.cjs')];
    let place = /at (price\.cjs):3/.exec(text(results));
    const blob = /blob:\w+/.exec(text(results))?.[0] ?? '';
    while (place === null) {
      results = yield [call('search', { pattern: '^not ok', path: blob, context: 3 })];
      place = /at (price\.cjs):3/.exec(text(results));
    }
    results = yield [call('read', { path: place[1] })];
    const [line = ''] = /one - two;/.exec(text(results)) ?? [];
    const edits = [{ oldText: line, newText: 'one + two;' }];
    results = yield [call('edit', { path: place[1], edits }), bash('node test.cjs')];
    return text(results, 1).includes('exit code 0') ? 'passes' : text(results, 1);
  },
  check: (answer) => requireWords(answer, 'passes'),
};

const SUBJECT = 'Rename `autoStart` to `start`';

const backticks: Job = {
  name: 'a commit message with backticks in double quotes',
  chain: [
    { fact: 'that the quotes would run a command', foundIn: 'the refusal of the commit' },
    { fact: 'that the commit is made', foundIn: 'the second commit' },
  ],
  refusal: /single quotes/,
  prepare(place) {
    write(place, 'a.txt', 'one\n');
    commitAll(place);
    write(place, 'a.txt', 'two\n');
  },
  *play() {
    let results = yield [bash(`git commit -qam "${SUBJECT}" && git log -1 --format=%s`)];
    while (!text(results).startsWith(SUBJECT)) {
      const quote = text(results).includes('single quotes') ? "'" : '"';
      results = yield [
        bash(`git commit -qam ${quote}${SUBJECT}${quote} && git log -1 --format=%s`),
      ];
    }
    return 'committed';
  },
  check: (_, workspace) => {
    const subject = execFileSync('git', ['log', '-1', '--format=%s'], { cwd: workspace });
    return String(subject).trim() === SUBJECT ? null : String(subject);
  },
};

const undo: Job = {
  name: '`rm -rf src`, and back',
  chain: [
    { fact: 'that the build needs src', foundIn: 'the build without it' },
    { fact: 'that the build works again', foundIn: 'the build after it is back' },
  ],
  prepare(place) {
    for (let at = 0; at < 20; at++) write(place, `src/part-${at}.cjs`, `module.exports = ${at};\n`);
    write(place, 'build.cjs', "require('./src/part-7.cjs'); console.log('built');\n");
    commitAll(place);
  },
  *play() {
    let results = yield [bash('rm -rf src'), bash('node build.cjs')];
    if (text(results, 1).startsWith('built')) return 'built without';
    for (const command of ['git restore src', 'git checkout HEAD -- src', 'git stash -u'])
      if (!text(results, 1).startsWith('built'))
        results = yield [bash(command), bash('node build.cjs')];
    return text(results, 1);
  },
  check: (answer) => requireWords(answer, 'built\n'),
};

/**
 * A registry of npm with one package, on the loopback of the machine: out of the sandbox's reach.
 */
const openRegistry = async (place: Place): Promise<void> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-registry-'));
  mkdirSync(path.join(folder, 'package'));
  writeFileSync(path.join(folder, 'package/package.json'), '{"name":"left","version":"1.0.0"}');
  const tarball = execFileSync('tar', ['cz', 'package'], { cwd: folder });
  rmSync(folder, { recursive: true });
  const server = createServer((request, reply) => {
    if (request.url?.endsWith('.tgz')) return void reply.end(tarball);
    const dist = { tarball: `http://${request.headers.host}/left.tgz` };
    const version = { name: 'left', version: '1.0.0', dist };
    reply.setHeader('content-type', 'application/json');
    reply.end(
      JSON.stringify({
        name: 'left',
        'dist-tags': { latest: '1.0.0' },
        versions: { '1.0.0': version },
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the registry has no port');
  write(place, '.npmrc', `registry=http://127.0.0.1:${address.port}/\naudit=false\nfund=false\n`);
  place.cleanUp.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
};

const install: Job = {
  name: '`npm install` from inside the sandbox, which has no network',
  chain: [{ fact: 'that the package is there', foundIn: 'npm install, which the user allows' }],
  prepare(place) {
    write(place, 'package.json', '{"name":"here","version":"1.0.0","private":true}');
    return openRegistry(place);
  },
  *play() {
    let results = yield [bash('npm install left && ls node_modules')];
    if (!/^left$/m.test(text(results)))
      results = yield [bash('npm install left && ls node_modules', { needs: 'network' })];
    return text(results);
  },
  check: (answer) => requireWords(answer, '\nleft\n'),
};

const ONE = { oldText: 'one', newText: 'two' };
const nested = JSON.stringify;

/** Calls as Claude Code, codex, opencode, pi, Gemini CLI and others write them. */
const foreignCalls: readonly Call[] = [
  call('read', { file_path: 'a.txt' }),
  call('read', { filePath: 'a.txt', offset: '1', limit: '5' }),
  call('read', { absolute_path: 'a.txt' }),
  call('read', { target_file: 'a.txt' }),
  call('read', { path: 'a.txt', offset: 0 }),
  call('read', { path: 'a.txt', start_line: '1', end_line: 2 }),
  call('read', { path: 'a.txt', view_range: [1, -1] }),
  call('read', { filename: 'a.txt', limit: null }),
  call('bash', { command: 'echo a', timeout: 120_000, description: 'Says a' }),
  call('bash', { cmd: 'echo a' }),
  call('bash', { command: ['bash', '-lc', 'echo a'] }),
  call('bash', { command: ['echo', 'a'], workdir: '.' }),
  call('bash', { command: 'echo a', run_in_background: false }),
  call('bash', { command: 'echo a', timeout_ms: '5000' }),
  call('find', { pattern: '**/*.txt' }),
  call('find', { glob: '*.txt', path: '.' }),
  call('search', { query: 'one' }),
  call('search', { pattern: 'one', '-i': true, '-n': true, '-C': '2' }),
  call('search', { pattern: 'one', output_mode: 'files_with_matches' }),
  call('search', { pattern: 'one', include: '*.txt' }),
  call('search', { pattern: 'one', case_sensitive: false }),
  call('search', { regex: 'one', dir_path: '.' }),
  call('list', { dir_path: '.' }),
  call('list', { path: '.', ignore: [] }),
  call('write', { file_path: 'b1.txt', content: 'x' }),
  call('write', { filePath: 'b2.txt', content: 'x' }),
  call('write', { path: 'b3.txt', contents: 'x' }),
  call('write', { path: 'b4.txt', file_text: 'x', command: 'create' }),
  call('edit', { file_path: 'e1.txt', old_string: 'one', new_string: 'two' }),
  call('edit', { filePath: 'e2.txt', oldString: 'one', newString: 'two' }),
  call('edit', { path: 'e3.txt', old_str: 'one', new_str: 'two', command: 'str_replace' }),
  call('edit', { path: 'e4.txt', ...ONE }),
  call('edit', { path: 'e5.txt', edits: nested([ONE]) }),
  call('edit', { path: 'e6.txt', edits: nested(ONE) }),
  call('edit', { path: 'e7.txt', edits: [nested(ONE)] }),
  call('edit', { file_path: 'e8.txt', edits: [{ old_string: 'one', new_string: 'two' }] }),
  call('edit', { file_path: 'e9.txt', old_string: 'one', new_string: 'two', replace_all: 'true' }),
  call('edit', {
    file_path: 'e10.txt',
    old_string: 'one',
    new_string: 'two',
    expected_replacements: 1,
  }),
  call('todo', {
    todos: [{ content: 'a', status: 'in_progress', activeForm: 'Doing a', id: '1' }],
  }),
  call('todo', { plan: [{ step: 'a', status: 'completed' }] }),
];

const shapes: Job = {
  name: '40 calls in other agents’ shapes',
  chain: [
    { fact: 'the results', foundIn: 'the 40 calls, none of which needs another one’s result' },
  ],
  prepare(place) {
    for (const name of ['a', ...Array.from({ length: 10 }, (_, at) => `e${at + 1}`)])
      write(place, `${name}.txt`, 'one\n');
  },
  *play() {
    const results = yield foreignCalls;
    const failed = results.filter((one) => one.failed);
    return failed.length === 0
      ? `${results.length} worked`
      : failed.map((one) => one.text).join('\n');
  },
  check: (answer, workspace) => {
    const edited = foreignCalls.flatMap(({ tool, input }) =>
      tool === 'edit' ? (/e\d+\.txt/.exec(nested(input)) ?? []) : [],
    );
    const wrong = edited.filter(
      (name) => readFileSync(path.join(workspace, name), 'utf8') !== 'two\n',
    );
    return wrong.length > 0 ? `not edited: ${wrong.join(', ')}` : requireWords(answer, '40 worked');
  },
};

const afterSed: Job = {
  name: 'edits after the model’s own sed',
  chain: [
    { fact: 'the text to change', foundIn: 'read' },
    { fact: 'that all is changed', foundIn: 'sed and the edit after it' },
  ],
  prepare: (place) =>
    write(
      place,
      'list.ts',
      Array.from({ length: 40 }, (_, at) => `const name${at} = ${at};\n`).join(''),
    ),
  *play() {
    let results = yield [call('read', { path: 'list.ts' })];
    const edit = (): Call =>
      call('edit', {
        path: 'list.ts',
        edits: [{ oldText: 'name30 = 30', newText: 'name30 = 31' }],
      });
    results = yield [bash("sed -i 's/name3 = 3/name3 = 4/' list.ts"), edit()];
    while (results.at(-1)?.failed) results = yield [call('read', { path: 'list.ts' }), edit()];
    return 'changed';
  },
  check: (_, workspace) =>
    requireWords(
      readFileSync(path.join(workspace, 'list.ts'), 'utf8'),
      'name3 = 4;',
      'name30 = 31;',
    ),
};

const manyHits: Job = {
  name: 'a search with 10,000 hits',
  chain: [{ fact: 'how many lines and files there are', foundIn: 'one search' }],
  prepare(place) {
    for (let at = 0; at < 50; at++)
      write(place, `src/file-${at}.js`, 'await fetch(address); // a call\n'.repeat(200));
  },
  *play() {
    let results = yield [call('search', { pattern: 'fetch(' })];
    if (!/10[,  ]?000/.test(text(results)))
      results = yield [bash("grep -rc 'fetch(' src | awk -F: '{ n += $2 } END { print n, NR }'")];
    return text(results).replace(/(\d)[,  ](?=\d{3})/g, '$1');
  },
  check: (answer) => requireWords(answer, '10000', '50'),
};

const codes = Array.from({ length: 25 }, (_, at) => `code-${(at * 7919 + 13) % 10_007}`);

const largeBatch: Job = {
  name: 'a batch of 25 large results, over a compaction',
  chain: [
    { fact: 'which files there are', foundIn: 'the notes' },
    { fact: 'codes of the files that fit into the window', foundIn: 'the 25 reads' },
    {
      fact: 'the other codes: 25 texts of 30 kB are 190,000 tokens, the window has 40,000',
      foundIn: 'a second look',
    },
  ],
  windowTokens: 40_000,
  prepare(place) {
    write(place, 'notes.md', `${'All codes are in parts/0.txt to parts/24.txt.\n'.repeat(900)}`);
    const filler = `${'nothing of interest stands in this line of the file\n'.repeat(290)}`;
    for (const [at, code] of codes.entries())
      write(place, `parts/${at}.txt`, `${filler}${code}\n${filler}`);
  },
  *play() {
    const seen = new Set<string>();
    const note = (results: readonly ResultPart[]): void => {
      for (const one of results)
        for (const [code] of one.text.matchAll(/code-\d+/g)) seen.add(code);
    };
    yield [call('read', { path: 'notes.md' })];
    note(yield codes.map((_, at) => call('read', { path: `parts/${at}.txt` })));
    while (seen.size < codes.length)
      note(yield [call('search', { pattern: 'code-\\d+', path: 'parts' })]);
    return [...seen].join(' ');
  },
  check: (answer) => requireWords(answer, ...codes),
};

const binary: Job = {
  name: 'a binary',
  chain: [
    { fact: 'that it is no text', foundIn: 'cat' },
    { fact: 'its first bytes', foundIn: 'a program for bytes' },
  ],
  prepare: (place) =>
    write(place, 'app.bin', Buffer.concat([Buffer.from('\u007fELF'), Buffer.alloc(60_000, 0xf7)])),
  *play() {
    const results = yield [bash('cat app.bin')];
    if (text(results).length > 4_000) yield [bash('ls -l app.bin')];
    return text(yield [bash('od -A n -t x1 -N 4 app.bin')]);
  },
  check: (answer) => requireWords(answer, '7f 45 4c 46'),
};

export const jobs: readonly Job[] = [
  devServer,
  longLog,
  backticks,
  undo,
  install,
  shapes,
  afterSed,
  manyHits,
  largeBatch,
  binary,
];

const SUMMARY = compactionInstructions(null).slice(0, 60);
const isSummary = ({ messages }: ModelRequest): boolean =>
  messages.at(-1)?.parts.some((part) => part.type === 'text' && part.text.includes(SUMMARY)) ??
  false;

/** A model that plays the job, and counts. */
const createPlayer = (job: Job) => {
  const play = job.play();
  const count = { rounds: 0, summaries: 0, sentBytes: 0 };
  const results: ResultPart[] = [];
  const known = new Set<string>();
  let open: readonly string[] = [];
  const model: Model = {
    id: 'scripted/model-side',
    facts: {
      windowTokens: job.windowTokens ?? 200_000,
      outputTokensMax: 4_000,
      thinking: 'no',
      tools: 'yes',
      prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      source: 'a script',
    },
    canAbort: 'yes',
    async *stream(request) {
      const sent = Buffer.byteLength(JSON.stringify(request.messages));
      count.sentBytes += sent;
      const usage = {
        inputTokens: Math.ceil(sent / 4),
        outputTokens: 50,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      };
      for (const part of request.messages.flatMap(({ parts }) => [...parts]))
        if (part.type === 'result' && !known.has(part.callId)) {
          known.add(part.callId);
          results.push(part);
        }
      if (isSummary(request)) {
        count.summaries++;
        const parts = [{ type: 'text', text: '## Next\nGo on with the codes.' }] as const;
        return yield { type: 'completed', parts, stopReason: 'end', usage };
      }
      count.rounds++;
      const last = open.flatMap((callId) => results.filter((one) => one.callId === callId));
      const { done, value } = play.next(last);
      if (done) {
        const parts = [{ type: 'text', text: value }] as const;
        return yield { type: 'completed', parts, stopReason: 'end', usage };
      }
      const parts = value.map(({ tool, input }, at) => ({
        type: 'call' as const,
        callId: `call-${count.rounds}-${at}`,
        tool,
        rawInput: JSON.stringify(input),
      }));
      open = parts.map(({ callId }) => callId);
      yield { type: 'completed', parts, stopReason: 'toolUse', usage };
    },
  };
  return { model, count, results };
};

/** Whether the call did not run, or its command did not. */
const isRefusal = ({ failed, text: told }: ResultPart): boolean =>
  failed && !/\[exit code \d+,/.test(told);

export const playJob = async (job: Job): Promise<Measured> => {
  const workspace = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-model-side-')));
  const place: Place = { workspace, cleanUp: [] };
  try {
    await job.prepare(place);
    const { model, count, results } = createPlayer(job);
    let approvals = 0;
    const session = await openSession({
      workspace,
      model,
      journals: memoryJournals(),
      onApproval: () => {
        approvals++;
        return 'allow';
      },
    });
    try {
      const { ok, text: answer, reason } = await session.prompt(job.name);
      const fault = ok ? job.check(answer, workspace) : JSON.stringify(reason);
      const refusals = results
        .filter(isRefusal)
        .filter(({ text: told }) => !job.refusal?.test(told));
      const bound = job.chain.length + 1;
      return { ...count, bound, fault, approvals, refusals: refusals.map((one) => one.text) };
    } finally {
      await session.close();
    }
  } finally {
    for (const cleanUp of place.cleanUp) cleanUp();
    rmSync(workspace, { recursive: true, force: true });
  }
};

/** `npm run bench -- model-side`: rounds of ten jobs against the least that they need. */
export const benchModelSide = async (): Promise<string> => {
  const rows: string[] = [];
  for (const job of jobs) {
    const { rounds, bound, summaries, sentBytes, approvals, fault, refusals } = await playJob(job);
    const cells = [rounds, bound, summaries, approvals, (sentBytes / 1000).toFixed(1)];
    rows.push(`| ${job.name} | ${cells.join(' | ')} | ${fault ?? refusals[0] ?? 'done'} |`);
  }
  return [
    '| job | rounds | least | summaries | questions | kB sent | |',
    '|---|--:|--:|--:|--:|--:|---|',
    ...rows,
  ].join('\n');
};
