import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed } from './pawl.js';
import { openReady, openWindow } from './window.js';
import { call, done, last, message, text } from './wire-words.js';

/** Each command of the terminal. */

const E = '\u001b';
const CONTROL_D = '\u0004';
/** At rest again. A reply shows before its step is in the journal. */
const READY = /ready[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/;
const write = (id: string, content: string) =>
  message(call(id, 'write', { path: 'x.txt', content }));

test('/model: a list to choose from, or a name; the next call goes to it', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  const window = await openReady(context, place);
  window.press('one\r');
  await window.sees('Done.');
  window.press('/model anthropic/claude-opus-5\r');
  await window.sees(/The next call goes to anthropic\/claude-opus-5\n.* \$5 in/);
  window.press('two\r');
  await window.sees(/two\n[\s\S]*Done\./);
  window.press('/model\r');
  await window.sees('Model (dollars per million tokens):');
  window.press('haiku-4-5');
  await window.sees(/› anthropic\/claude-haiku-4-5/);
  window.press('\r');
  await window.sees('The next call goes to anthropic/claude-haiku-4-5');
  window.press('three\r');
  await window.sees(/three\n[\s\S]*Done\./);
  assert.deepEqual(
    place.server.requests.map(({ body }) => body.model),
    ['claude-sonnet-5-5', 'claude-opus-5', 'claude-haiku-4-5'],
  );
  expectValid(place.server);
  window.press('/model nonsense/x\r');
  await window.sees(/nonsense/);
  window.press('/model\r');
  await window.sees('Escape closes');
  window.press(E);
  await window.sees('The model is anthropic/claude-haiku-4-5');
  window.press('/model opus-4-8\r');
  await window.sees(/› anthropic\/claude-opus-4-8 .*\n[^\n]*type to filter/);
  window.press('\r');
  await window.sees('The next call goes to anthropic/claude-opus-4-8');
});

test('/effort: a level, or a list to choose from; the next call asks for it', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  const window = await openReady(context, place);
  window.press('one\r');
  await window.sees('Done.');
  window.press('/effort high\r');
  await window.sees('effort high holds from the next call on');
  window.press('two\r');
  await window.sees(/two\n[\s\S]*Done\./);
  window.press('/effort\r');
  await window.sees('Effort:');
  window.press('auto');
  await window.sees(/› auto/);
  window.press('\r');
  await window.sees('effort auto holds from the next call on');
  window.press('three\r');
  await window.sees(/three\n[\s\S]*Done\./);
  assert.deepEqual(
    place.server.requests.map(({ body }) => body.output_config?.effort),
    [undefined, 'high', undefined],
  );
  expectValid(place.server);
  window.press('/effort most\r');
  await window.sees("There is no effort 'most'. There are auto, low, medium, high, xhigh, max.");
  window.press('/model sonnet-4-6\r');
  await window.sees(/› anthropic\/claude-sonnet-4-6/);
  window.press('\r');
  await window.sees('The next call goes to anthropic/claude-sonnet-4-6');
  window.press('/effort xhigh\r');
  await window.sees(
    'claude-sonnet-4-6 has no effort xhigh, so it gets high. It has low, medium, high, max.',
  );
});

test('/compact makes room, with a wish of what to keep', async (context) => {
  const place = await makeServed(context, [done, message(text('A summary about apples.')), done]);
  const window = await openReady(context, place);
  window.press('one\r');
  await window.sees('Done.');
  await window.sees(READY);
  window.press('/compact keep the apples\r');
  await window.sees(/summary|apples\./i);
  await window.sees(READY);
  assert.match(JSON.stringify(place.server.requests[1]?.body), /keep the apples/);
  window.press('two\r');
  await window.sees(/two\n[\s\S]*Done\./);
  assert.match(JSON.stringify(place.server.requests[2]?.body.messages), /A summary about apples/);
});

test('/help lists commands and keys; /cost and /budget show what is spent; a limit can be set, and what is no limit is refused', async (context) => {
  const place = await makeServed(context, [done]);
  const window = await openReady(context, place, { rows: 50 });
  window.press('/help\r');
  await window.sees(/\/model \[NAME\] +choose the model/);
  await window.sees(/Escape twice +on an empty line, when nothing runs: take back/);
  window.press('one\r');
  await window.sees('Done.');
  window.press('/cost\r');
  await window.sees(/input .*output .*\$/);
  window.press('/budget\r');
  await window.sees(/dollars .*no limit/);
  window.press('/budget 5\r');
  await window.sees(/dollars .*of \$5\.00/);
  window.press('/budget 200k tokens\r');
  await window.sees(/tokens .*of 200\.0k/);
  window.press('/budget much\r');
  await window.sees("'much' is not a limit");
  window.press('/budget 0\r');
  await window.sees(/of 200\.0k[\s\S]*dollars .*no limit[\s\S]*of 200\.0k/);
});

test('/budget raises the limit that stopped the turn, /retry goes on', async (context) => {
  const place = await makeServed(context, [message(call('a', 'read', { path: 'x' })), done]);
  const window = await openReady(context, place, { words: ['--max-rounds', '1'] });
  window.press('go\r');
  await window.sees(/limit reached: 1 round · .*\/budget 2 and \/retry go on/);
  window.press('/budget 5\r');
  await window.sees('/retry goes on');
  window.press('/retry\r');
  await window.sees('Done.');
});

test('/resume goes on with another session of the folder, in the same window; /clear begins a new one', async (context) => {
  const place = await makeServed(context, [
    message(text('I am Pawl.')),
    done,
    message(text('Again.')),
  ]);
  expectCode(await runInProcess(place, ['-p', 'who are you?']), 0);
  const window = await openReady(context, place);
  window.press('/resume\r');
  await window.sees(/› .*who are you\?/);
  window.press('\r');
  await window.sees('I am Pawl.');
  window.press('go on\r');
  await window.sees('Done.');
  await window.sees(READY);
  assert.equal(place.server.requests[1]?.body.messages.length, 3);
  window.press('/clear\r');
  await window.sees(/a new session · the one before: \/resume \d+/);
  window.press('once more\r');
  await window.sees('Again.');
  assert.equal(place.server.requests[2]?.body.messages.length, 1);
  window.press('/resume nothing\r');
  await window.sees("No session 'nothing'");
  window.press(CONTROL_D);
  assert.equal(await window.ended, 0);
});

test('while a command of the user runs the session is not left; its output goes along', async (context) => {
  const place = await makeServed(context, [done]);
  const window = await openReady(context, place);
  window.press('!until [ -e go ]; do sleep 0.05; done; echo came\r');
  await window.sees(/^> !until/m);
  window.press('/clear\r');
  await window.sees('Your command still runs');
  writeFileSync(join(place.workspace, 'go'), '');
  await window.sees('the model gets it with your next message');
  window.press('/clear\r/clear\r');
  await window.sees('This window leaves the session already');
  await window.sees('a new session · the one before');
  window.press('what?\r');
  await window.sees('Done.');
  assert.match(JSON.stringify(place.server.requests[0]?.body.messages), /came[\s\S]*what\?/);
  window.press(CONTROL_D);
  assert.equal(await window.ended, 0);
  const journals = readdirSync(join(place.state, 'pawl', 'sessions')).filter((name) =>
    name.endsWith('.jsonl'),
  );
  assert.equal(journals.length, 2);
});

test('a session that is open elsewhere is not taken; this one goes on', async (context) => {
  const place = await makeServed(context, [done]);
  const other = await openReady(context, place);
  const id = /session\s+(\S+)/.exec(await other.text())?.[1] ?? '';
  const window = await openReady(context, place);
  window.press(`/resume ${id}\r`);
  await window.sees(/open|use|lock/i);
  window.press('here\r');
  await window.sees('Done.');
});

test('/fork goes on in a copy; the old session stays as it was', async (context) => {
  const place = await makeServed(context, [message(text('First.')), done]);
  const window = await openReady(context, place);
  window.press('one\r');
  await window.sees('First.');
  await window.sees(READY);
  window.press('draft');
  await window.seesLine('> draft');
  window.press('\u0015/fork\r');
  await window.sees(/a fork of (\S+) at \d+; .*\/resume/);
  window.press('two\r');
  await window.sees('Done.');
  await window.sees(READY);
  assert.equal(place.server.requests[1]?.body.messages.length, 3);
  window.press('/fork 9999\r');
  await window.sees('The journal ends at');
  window.press('/fork x\r');
  await window.sees(/\/fork needs a whole number/);
});

test('/permissions shows rules and what was allowed; what is revoked is asked for again', async (context) => {
  const place = await makeServed(context, [
    write('a', '1\n'),
    done,
    write('b', '2\n'),
    done,
    write('c', '3\n'),
    done,
  ]);
  const window = await openReady(context, place);
  window.press('one\r');
  await window.sees(/y a (p )?s n · /);
  window.press('s\r');
  await window.sees(/allowed \(\/permissions revokes it\): every edit in this folder/);
  await window.sees('Done.');
  window.press('two\r');
  await window.sees(/Done\.[\s\S]*Done\./);
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), '2\n');
  window.press('/permissions\r');
  await window.sees(/ask +commands that lose work: [\s\S]*allow +other commands: nothing leaves/);
  await window.sees(/ask +changes in the folder: [\s\S]*1 {2}every edit in this folder/);
  window.press('/permissions revoke 2\r');
  await window.sees('You have no permission 2');
  window.press('/permissions revoke 1\r');
  await window.sees('asks again for: every edit in this folder');
  window.press('three\r');
  await window.sees(/y a (p )?s n · /);
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), '2\n');
});

test('/preset changes what is asked, from then on', async (context) => {
  const place = await makeServed(context, [write('a', '1\n'), done, write('b', '2\n'), done]);
  const window = await openReady(context, place);
  window.press('/preset auto\r');
  await window.sees(/The preset is now auto/);
  window.press('one\r');
  await window.sees('Done.');
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), '1\n');
  window.press('/preset plan\r');
  await window.sees(/The preset is now plan/);
  window.press('two\r');
  await window.sees(/the preset plan only reads/);
  window.press('/preset loose\r');
  await window.sees("There is no preset 'loose'");
  assert.equal(readFileSync(join(place.workspace, 'x.txt'), 'utf8'), '1\n');
});

test('/export writes the conversation, and never over a file without being told', async (context) => {
  const place = await makeServed(context, [message(text('An *answer*.'))]);
  const file = join(place.workspace, 'talk.md');
  const window = await openReady(context, place);
  window.press('a question\r');
  await window.sees('answer');
  await window.sees(/ready[^\n]*\n─+\n>(?: Give a task[^\n]*)?\n/);
  window.press('/export talk.md\r');
  await window.sees(/2 messages in .*talk\.md/);
  assert.match(readFileSync(file, 'utf8'), /## You\n\na question\n\n## Pawl\n\nAn \*answer\*\.\n$/);
  writeFileSync(file, 'mine');
  window.press('/export talk.md\r');
  await window.sees('already exists and was not changed');
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  window.press('/export\r');
  await window.sees('/export needs an argument: /export FILE');
  window.press('/export no/such/folder.md\r');
  await window.sees('ENOENT');
  assert.ok(!existsSync(join(place.workspace, 'no')));
});

test('/later waits for the end of the turn; /quit ends', async (context) => {
  const place = await makeServed(context, [
    { type: 'message', parts: [text('One. '.repeat(10))], delayMs: 40 },
    done,
  ]);
  const window = await openReady(context, place);
  window.press('go\r');
  await window.sees('One.');
  window.press('/later then this\r');
  await window.sees('Done.');
  assert.match(JSON.stringify(last(place.server.requests[1]?.body)), /then this/);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
});

const plain = [
  { words: ['--plain'] },
  { environment: { TERM: 'dumb' } },
  { environment: { PAWL_PLAIN: '1' } },
];
for (const options of chooseRows(plain))
  test(`${JSON.stringify(options)}: whole lines, no escapes; commands and answers work`, async (context) => {
    const place = await makeServed(context, [write('a', 'hello\n'), done]);
    const window = openWindow(context, place, options);
    await window.sees('/help');
    window.press('write it\r');
    await window.sees(/\? Pawl asks: create [\s\S]*\+ hello[\s\S]*Answer with y/);
    window.press('hm\r'); // what is no answer does not spoil the next line
    await window.sees(/hm[\s\S]*Answer with y/);
    window.press('y\r');
    await window.sees('Done.');
    window.press('/model\r');
    await window.sees(/Model [\s\S]*claude-opus-5/);
    window.press('/quit\r');
    assert.equal(await window.ended, 0);
    assert.ok(!window.raw().includes(E), JSON.stringify(window.raw()));
  });

/** The table of ten jobs in docs/use/terminal.md: its keys are pressed, and do what it says. */

const page = readFileSync(join(import.meta.dirname, '../../../../docs/use/terminal.md'), 'utf8');
const [, table = ''] = /\n## Ten jobs and their keys\n([\s\S]*?)\nThe same jobs /.exec(page) ?? [];
const rows = [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \| (\d+) \|/gm)].map(
  ([, job = '', keys = '', count = '']) => ({ job, keys, count: Number(count) }),
);

const BYTES: Readonly<Record<string, string>> = {
  'Shift+Tab': '\u001b[Z',
  'Alt+P': '\u001bp',
  'Alt+R': '\u001br',
  Enter: '\r',
  Escape: '\u001b',
  Tab: '\t',
};

/** The keys of a row as the terminal sends them, and how many they are. */
const keysOf = (job: string): readonly string[] => {
  const row = rows.find((one) => one.job.startsWith(job));
  assert.ok(row !== undefined, job);
  const keys = [...row.keys.matchAll(/`([^`]+)`/g)].flatMap(([, key = '']) =>
    BYTES[key] === undefined ? key.split('') : [BYTES[key]],
  );
  assert.equal(keys.length, row.count, `${job}: ${row.keys}`);
  return keys;
};

test('each key of the ten jobs does what the table says', async (context) => {
  assert.equal(rows.length, 10);
  const edit = call('b', 'write', { path: 'new.txt', content: 'fresh\n' });
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'wc notes.txt' })),
    done,
    message(edit),
    done,
    message(call('c', 'bash', { command: 'sleep 600' })),
  ]);
  writeFileSync(join(place.workspace, 'notes.txt'), 'one\n');
  execFileSync('git', ['init', '-q'], { cwd: place.workspace });
  const words = ['--sandbox', 'off', '--preset', 'careful'];
  const window = await openReady(context, place, { words, rows: 50 });
  const press = (job: string): void => {
    for (const key of keysOf(job)) window.press(key);
  };
  window.press('count\r');
  await window.sees('y a p s P n · ');
  press('a rule for ever');
  await window.sees(/config\.toml:\d+: allow = \["wc"\]/);
  await window.sees('Done.');
  press('change the mode');
  await window.sees(/^ *auto\b/m);
  window.press('write it\r');
  await window.sees(/1 \+ fresh[\s\S]*Done\.[\s\S]*ready · /);
  press('see a diff');
  await window.sees(/new\.txt new · \+1 −0/);
  press('see the cost');
  await window.sees(/cache read/);
  press('switch the model');
  await window.sees(/› /);
  window.press('\u001b');
  await window.sees(/To change it: \/model/);
  const [at = '', letter = '', tab = ''] = keysOf('attach a file');
  window.press(at + letter);
  await window.sees(/^› new\.txt/m);
  window.press(tab);
  await window.seesLine('> @new.txt');
  window.press('\u0015');
  await window.seesLine('>');
  const [once = '', twice = '', both = ''] = keysOf('undo');
  window.press(once + twice);
  await window.sees(/^› .*write it/m);
  window.press(both);
  await window.sees(/taken back: [\s\S]*new\.txt/);
  window.press('\u0015wait\r');
  await window.sees(/running bash/);
  window.press('and then');
  press('queue');
  await window.sees(/queued: and then/);
  press('interrupt');
  await window.sees(/\nstopped\n─/);
  window.press('\u0015/quit\r');
  assert.equal(await window.ended, 0);
  const [list = '', first = ''] = keysOf('resume').slice('pawl\r'.length);
  const next = await openReady(context, place, {});
  await next.sees(/last here: "count", .* Alt\+R or \/resume/);
  next.press(list);
  await next.sees(/Go on with:\s+› .*count/);
  next.press(first);
  await next.sees(/> count/);
  const sessions = openWindow(context, place, { words: ['sessions'], columns: 150 });
  await sessions.sees(/^\S+ {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}\w+ +<\$0\.01 {2}.*count$/m);
});

/** What `/diff` shows, and whose changes it says these are. */

test('/diff shows what has changed since HEAD, new files too', async (context) => {
  const place = await makeServed(context, []);
  const git = (...words: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
      cwd: place.workspace,
      env: { ...place.environment, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  git('init', '-q');
  writeFileSync(join(place.workspace, 'old.txt'), 'before\n');
  git('add', '.');
  git('commit', '-qm', 'one');
  const window = await openReady(context, place);
  window.press('/diff\r');
  await window.sees(/Nothing differs from HEAD \([0-9a-f]{7}\)\./);
  writeFileSync(join(place.workspace, 'old.txt'), 'after\n');
  writeFileSync(join(place.workspace, 'new.txt'), 'fresh\n');
  window.press('/diff\r');
  await window.sees(
    /2 files differ from HEAD \([0-9a-f]{7}\), whoever changed them\n {2}old\.txt \+1 −1\n {4}1 - before\n {4}1 \+ after\n {2}new\.txt new · \+1 −0\n {4}1 \+ fresh/,
  );
});

test('/diff session shows what edits and writes of this session wrote, and which of it was changed since', async (context) => {
  const place = await makeServed(context, [
    message(
      call('a', 'write', { path: 'kept.txt', content: 'mine\n' }),
      call('b', 'write', { path: 'changed.txt', content: 'first\n' }),
      call('c', 'bash', { command: 'echo made > by-command.txt' }),
    ),
    message(call('d', 'edit', { path: 'kept.txt', edits: [{ oldText: 'mine', newText: 'ours' }] })),
    done,
  ]);
  execFileSync('git', ['init', '-q'], { cwd: place.workspace });
  const window = await openReady(context, place, { words: ['--preset', 'auto'], rows: 60 });
  window.press('/diff session\r');
  await window.sees(/no edit of this session has changed a file/);
  window.press('one\r');
  await window.sees('Done.');
  writeFileSync(join(place.workspace, 'changed.txt'), 'second\n');
  writeFileSync(join(place.workspace, 'by-hand.txt'), 'hand\n');
  window.press('/diff session\r');
  await window.sees(
    /edits of this session in order, without changes by commands\n[\s\S]*has changed since this session wrote it/,
  );
  const shown = (await window.text()).split('without changes by commands').at(-1) ?? '';
  assert.match(shown, /1 \+ mine\n[\s\S]*1 \+ first\n[\s\S]*1 - mine\n {4}1 \+ ours\n/);
  assert.match(shown, /changed\.txt has changed since this session wrote it/);
  assert.doesNotMatch(shown, /kept\.txt is not|second|by-hand|by-command/);
  window.press('/diff yesterday\r');
  await window.sees('only /diff and /diff session.');
});

test('/diff without a repository shows what the session wrote', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'write', { path: 'x.txt', content: 'hello\n' })),
    done,
  ]);
  const window = await openReady(context, place, { words: ['--preset', 'auto'] });
  window.press('one\r');
  await window.sees('Done.');
  window.press('/diff\r');
  await window.sees(/There is no git repository here: edits of this session[\s\S]*1 \+ hello/);
});

test('/copy sends the last answer, or a block of its code, to the clipboard', async (context) => {
  const code = '\tfirst "ü"\n\nend  ';
  const answer = `Two:\n\n\`\`\`sh\n${code}\n\`\`\`\n\n- one\n\n  \`\`\`\n  second\n  \`\`\``;
  const place = await makeServed(context, [message(text(answer))]);
  const window = await openReady(context, place, {});
  window.press('/copy\r');
  await window.sees('There is no answer to copy.');
  window.press('go\r');
  await window.sees(/^second$[\s\S]*\nready/m);
  const copied = (): readonly string[] =>
    [...window.raw().matchAll(/\u001b\]52;c;([^\u0007]*)\u0007/g)].map(([, data = '']) =>
      Buffer.from(data, 'base64').toString(),
    );
  for (const [command, said] of [
    ['/copy', /the last answer, 13 lines/],
    ['/copy 1', /code block 1 of 2, 3 lines/],
    ['/copy 2', /code block 2 of 2, 1 line/],
    ['/copy 3', /The last answer has 2 code blocks: \/copy 1/],
  ] as const) {
    window.press(`${command}\r`);
    await window.sees(said);
  }
  assert.deepEqual(copied(), [answer, code, 'second']);
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

test('a message of a command line breaks between words in a narrow window', async (context) => {
  const place = await makeServed(context, []);
  const window = openWindow(context, place, {
    columns: 30,
    words: ['-p', '--resume', 'none', 'go'],
  });
  assert.notEqual(await window.ended, 0);
  const shown = (await window.text()).split('\n');
  assert.ok(shown.length > 1, shown.join('\n'));
  const { stderr } = await runInProcess(place, ['-p', '--resume', 'none', 'go']);
  assert.equal(shown.join(' ').replace(/\s+/g, ' '), stderr.trim().replace(/\s+/g, ' '));
});
