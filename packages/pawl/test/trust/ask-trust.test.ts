import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Executable, openTrust } from '@pawl/agent/extensions/trust';
import type { Pressed } from '@pawl/terminal/keys';
import { createLiveArea, createPlainArea } from '@pawl/terminal/live-area';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { createEmulator } from '../../../../test/kit/terminal/screen.js';
import { keyOf } from '../../../../test/kit/terminal/typing.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { startPatience } from '../../../../test/until.js';
import { askTrust } from '../../src/interactive/ask-trust.js';
import { judgeExecutables, notRunText, trustQuestion } from '../../src/sessions/project-trust.js';
import { fakeClock } from '../../src/testing.js';

/** The questions at the start of a session, on an emulated terminal, with the real store. */

const server = (name: string, content: string): Executable => ({
  kind: 'mcp-server',
  name,
  content,
});

/** Lets everything run that waits for a file or a promise. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

const makeStage = (t: TestContext, plain: 'yes' | 'no' = 'no', rows = 12, columns = 60) => {
  const folder = temporaryFolder(t, 'ask-trust');
  const trust = openTrust(`${folder}/state`, () => undefined);
  const screen = createEmulator(columns, rows);
  const clock = fakeClock();
  const listeners = new Set<(pressed: Pressed) => void>();
  const terminal = {
    area:
      plain === 'yes'
        ? createPlainArea(screen.write)
        : createLiveArea({ write: screen.write, size: screen.size, clock, reflow: 'all' }),
    clock,
    look: () => ({ colour: 'no', plain, columns }) as const,
    size: screen.size,
    listen(take: (pressed: Pressed) => void) {
      listeners.add(take);
      return () => void listeners.delete(take);
    },
  };
  const press = (pressed: Pressed): void => {
    for (const take of [...listeners]) take(pressed);
    clock.advance(40);
  };
  const ask = async (...executables: readonly Executable[]) => {
    const { open } = await judgeExecutables(trust, folder, [async () => executables]);
    let over = false;
    const asking = askTrust(trust, folder, open, terminal).finally(() => {
      over = true;
    });
    return { asking, isOver: () => over };
  };
  /** Waits until the question with this text takes keys. */
  const shown = async (text: RegExp): Promise<void> => {
    const isOver = startPatience();
    while (!text.test(await screen.text())) {
      assert.ok(!isOver(), `never shown: ${text}\n${await screen.text()}`);
      await settled();
      clock.advance(1_000);
    }
    clock.advance(1_000);
  };
  return {
    folder,
    trust,
    screen,
    clock,
    ask,
    shown,
    listeners,
    key: (short: string) => press({ kind: 'key', key: keyOf(short) }),
    line: (text: string) => press({ kind: 'paste', text }),
    judge: async (executable: Executable) => (await trust.judge(folder, executable)).kind,
  };
};

test('a yes counts only after all of the text was on the screen, control characters and all', async (t) => {
  const stage = makeStage(t);
  const lines = Array.from({ length: 40 }, (_, at) => `argument ${at}`);
  const long = server('files', ['npx \u001b[2Kserver\u202e', ...lines, 'last line'].join('\n'));
  const { asking, isOver } = await stage.ask(long);
  await stage.shown(/This project wants to run: MCP server files/);
  assert.match(await stage.screen.text(), /name: files\n.*npx ␛\[2Kserver⟨U\+202E⟩/);
  let presses = 0;
  let seen = '';
  for (; !isOver() && presses < 50; presses++) {
    seen += await stage.screen.text();
    stage.key("'y'");
    for (let wait = 0; wait < 20; wait++) await settled();
  }
  await asking;
  assert.ok(presses > 3, `it took ${presses} presses`);
  for (const text of [...lines, 'last line']) assert.ok(seen.includes(text), text);
  assert.equal(await stage.judge(long), 'trusted');
  assert.equal(stage.listeners.size, 0);
});

test('keys that were pressed before the question was there do not answer it', async (t) => {
  const stage = makeStage(t);
  const { asking, isOver } = await stage.ask(server('one', 'x'));
  for (let wait = 0; wait < 20; wait++) await settled();
  for (let presses = 0; presses < 20; presses++) stage.key("'y'");
  for (let wait = 0; wait < 20; wait++) await settled();
  assert.equal(isOver(), false);
  stage.line('y');
  assert.equal(isOver(), false);
  await stage.shown(/wants to run/);
  stage.key('escape');
  await asking;
  assert.equal(await stage.judge(server('one', 'x')), 'unknown');
});

test('each thing has one question; no is remembered, and a change shows what changed', async (t) => {
  const stage = makeStage(t, 'no', 30);
  const { asking } = await stage.ask(server('one', 'npx one'), server('two', 'npx two'));
  await stage.shown(/MCP server one/);
  stage.key("'n'");
  await stage.shown(/MCP server two/);
  stage.key("'y'");
  await asking;
  const again = await judgeExecutables(stage.trust, stage.folder, [
    async () => [server('one', 'npx one'), server('two', 'npx two --all')],
  ]);
  assert.deepEqual(again.allowed, []);
  assert.deepEqual(again.open, [{ executable: server('two', 'npx two --all'), before: 'npx two' }]);
  const next = await stage.ask(server('one', 'npx one'), server('two', 'npx two --all'));
  await stage.shown(/Changed since you allowed it: MCP server two/);
  assert.match(await stage.screen.text(), /- npx two\n.*\+ npx two --all/);
  stage.key('C-c');
  await next.asking;
  assert.equal(await stage.judge(server('two', 'npx two --all')), 'changed');
  assert.equal(await stage.judge(server('two', 'npx two')), 'trusted');
});

const LEVELS = ['read-only', 'read-only+net', 'off'] as const;

test('what can run in the sandbox gets the level that was chosen', async (t) => {
  const stage = makeStage(t, 'no', 30);
  const fenced = (name: string): Executable => ({ ...server(name, 'x'), levels: LEVELS });
  const { asking } = await stage.ask(fenced('one'), fenced('two'), fenced('three'));
  for (const [name, key] of [
    ['one', "'y'"],
    ['two', "'W'"],
    ['three', "'o'"],
  ] as const) {
    await stage.shown(new RegExp(`MCP server ${name}.*y sandboxed`, 's'));
    stage.key(key);
  }
  await asking;
  const settled = await judgeExecutables(stage.trust, stage.folder, [
    async () => ['one', 'two', 'three'].map(fenced),
  ]);
  assert.deepEqual(
    settled.allowed.map(({ level }) => level),
    LEVELS,
  );
  // what knows no sandbox has no such keys
  const other = await stage.ask(server('four', 'x'));
  await stage.shown(/MCP server four/);
  stage.key("'o'");
  assert.equal(other.isOver(), false);
  stage.key("'y'");
  await other.asking;
  assert.deepEqual(await stage.trust.judge(stage.folder, server('four', 'x')), { kind: 'trusted' });
});

test('a plain terminal prints the whole text and takes a line', async (t) => {
  const stage = makeStage(t, 'yes');
  const { asking } = await stage.ask(server('one', 'npx \u001b[2Kone'));
  await stage.shown(/Answer with y, n, or an empty line/);
  assert.match(stage.screen.written(), /\| npx ␛\[2Kone\n/);
  stage.line('perhaps');
  stage.line('y');
  await asking;
  assert.equal(await stage.judge(server('one', 'npx \u001b[2Kone')), 'trusted');
});

test('what nobody was asked about is said in one line', () => {
  assert.equal(notRunText([]), null);
  const many = Array.from({ length: 7 }, (_, at) => ({
    executable: server(`s${at}`, 'x'),
    before: null,
  }));
  assert.match(
    notRunText(many) ?? '',
    /^not run, .*MCP server s0, .*MCP server s4, and 2 more\. pawl trust/,
  );
});

test('texts that have little in common are compared at once', async () => {
  const content = (word: string): string => `${`  "${word}",\n`.repeat(11_000)}the end`;
  const spentMs = watchCpu();
  const { content: shown, kind } = await trustQuestion({
    executable: server('docs', content('now')),
    before: content('before'),
  });
  assert.ok(spentMs() < 5_000);
  assert.equal(kind, 'diff');
  assert.equal(shown.match(/^- {2}"before",$/gm)?.length, 11_000);
  assert.equal(shown.match(/^\+ {2}"now",$/gm)?.length, 11_000);
});

test('a server on another computer does not run here, and the question does not say so', async () => {
  const asked = (executable: Executable) => trustQuestion({ executable, before: null });
  const remote = await asked({ ...server('web', 'x'), isRemote: true });
  assert.equal(remote.title, 'This project wants to use: MCP server web');
  assert.match(
    remote.meaning,
    /^Its address gets what the model sends it, now and in later sessions/,
  );
  const local = await asked(server('files', 'x'));
  assert.equal(local.title, 'This project wants to run: MCP server files');
  assert.match(local.meaning, /^It runs on your machine, now and in later sessions/);
});

test('in a narrow window all keys are on the screen, and the text can still be read to its end', async (t) => {
  const stage = makeStage(t, 'no', 14, 30);
  const asked = { ...server('files', 'a\n'.repeat(20)), levels: ['read-only', 'off'] } as const;
  const { asking, isOver } = await stage.ask(asked);
  await stage.shown(/wants to run/);
  assert.match(
    (await stage.screen.text()).replace(/\s+/g, ' '),
    /↓ \d+ more rows \(PgDn\); then y sandboxed( ·)? w with network( ·)? o as you( ·)? n never( ·)? Escape later/,
  );
  for (let presses = 0; !isOver() && presses < 50; presses++) {
    stage.key("'o'");
    for (let wait = 0; wait < 20; wait++) await settled();
  }
  await asking;
  assert.equal(await stage.judge(asked), 'trusted');
});
