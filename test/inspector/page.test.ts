import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BrowserContext } from 'playwright-core';
import { inspectorPage } from '../../scripts/inspector-page.js';
import { messagesOf } from '../../src/agent/conversation.js';
import type { Message } from '../../src/agent/message.js';
import { fileJournals, openSession } from '../../src/index.js';
import { InspectedSessions } from '../../src/inspector/server/inspected-sessions.js';
import { type Inspector, startInspector } from '../../src/inspector/server/inspector-server.js';
import { pageWith } from '../../src/inspector/server/page-text.js';
import { createRedactor } from '../../src/secrets/redactor.js';
import { scriptedModel } from '../../src/testing/index.js';
import { begun, roam } from '../agent/random.js';
import { atEnd, temporaryFolder } from '../temporary-folder.js';
import { loaded, openPage, startBrowser, type Watched, waitUntil } from './browser.js';
import { STORY, StoredSession, storeTrace } from './stored-session.js';

/** The page in a real browser. With PAWL_PICTURES=FOLDER its pictures are kept there. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PICTURES = process.env.PAWL_PICTURES;
const STORY_SEQ = 36;

const keepPicture = async ({ page }: Watched, name: string): Promise<void> => {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: path.join(PICTURES, `${name}.png`) });
};

/** What axe finds serious, as `rule: element`. */
const seriousFindings = async ({ page }: Watched, rules: 'all' | 'contrast'): Promise<readonly string[]> => {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(AXE);
  const only = rules === 'all' ? {} : { runOnly: { type: 'rule', values: ['color-contrast'] } };
  return page.evaluate(`axe.run(document, { resultTypes: ['violations'], ...${JSON.stringify(only)} }).then(({ violations }) =>
    violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html.slice(0, 160) + ' ' + (any[0]?.message ?? ''))))`);
};

const at = ({ page }: Watched, seq: number): Promise<void> =>
  waitUntil(page, `document.body.dataset.seq === '${seq}'`);
const inState = ({ page }: Watched, state: string): Promise<void> =>
  waitUntil(page, `document.body.dataset.state === '${state}'`);
// biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen, from a locator
const textOf = ({ page }: Watched, selector: string): Promise<string> => page.locator(selector).innerText();

describe('the page of the inspector', () => {
  const hooks: (() => Promise<void>)[] = [];
  const scope = { after: (hook: () => Promise<void>): void => void hooks.push(hook) };
  let folder = '';
  let built = '';
  let inspector: Inspector;
  let browser: BrowserContext;

  before(async () => {
    folder = temporaryFolder(scope, 'inspected');
    built = Buffer.from((await inspectorPage(root))[0]?.contents ?? []).toString();
    inspector = await startInspector({ folder, version: '1', redactor: createRedactor([]), page: built });
    atEnd(scope, () => inspector.close());
    await storeTrace(folder, 'story', STORY);
    browser = await startBrowser(scope);
  });
  after(async () => {
    for (const hook of hooks) await hook();
  });

  const openSessionPage = async (id: string, seq: number): Promise<Watched> => {
    const watched = await openPage(browser);
    await watched.page.goto(inspector.addressOf(id));
    await loaded(watched, seq);
    return watched;
  };

  it('tells a stranger why it retried, what was dear, which approval delayed it and where it crashed', async () => {
    const watched = await openSessionPage('story', STORY_SEQ);
    const { page } = watched;
    await page.locator('[data-tab=time]').click();
    const told = await textOf(watched, '.highlights');
    assert.match(told, /Crashed #27 in ExecutingTools, doing bash npm; opened again at #28/);
    assert.match(told, /Failed and tried again #3 1 request: overloaded: the provider is overloaded \(529\)/);
    assert.match(told, /most expensive request #\d+ \$0\.129: 41,000 tokens in/);
    assert.match(told, /longest wait for an approval #\d+ 47 s: bash npm/);
    await page.locator('.highlights button', { hasText: '#27' }).click();
    await at(watched, 27);
    assert.match(await textOf(watched, '.where'), /27 of 36 · ToolStarted/);
    await page.close();
    assert.deepEqual(watched.faults, []);
  });

  it('is used by keys alone', async () => {
    const watched = await openSessionPage('story', STORY_SEQ);
    const { page } = watched;
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('Home');
    await at(watched, 0);
    await press('ArrowRight', 'ArrowRight', 'ArrowRight');
    await at(watched, 3);
    await inState(watched, 'Error');
    await press('3');
    assert.match(await textOf(watched, '.step'), /\[\w+\][\s\S]*DisplayWarning[\s\S]*pawl fork story --at 3/);
    await press('Shift+ArrowRight', 'p');
    await at(watched, 11);
    await press('d', 'End');
    await at(watched, STORY_SEQ);
    assert.match(await textOf(watched, '.changes'), /From\s+#11\s+to\s+#36[\s\S]*session\.usage\.costUsd/);
    await press('/');
    await page.keyboard.type('19.99');
    await waitUntil(page, `/1 hit/.test(document.querySelector('.events')?.innerText)`);
    await press('Enter');
    await at(watched, 16);
    await press('Tab', 'Escape');
    await page.locator('.event-list').focus();
    await press('1', '2', '?');
    assert.equal(await page.locator('dialog[open]').count(), 1);
    await press('Escape');
    await page.locator('#tab-conversation').focus();
    await press('ArrowRight', 'ArrowRight');
    assert.equal(await page.locator('[role=tab][aria-selected=true]').textContent(), 'State');
    await page.close();
    assert.deepEqual(watched.faults, []);
  });

  it('shows the chart with the arrows that were taken, for each projection', async () => {
    const watched = await openSessionPage('story', STORY_SEQ);
    const { page } = watched;
    await page.evaluate(`location.hash = '#5'`);
    await at(watched, 5);
    const last = await page
      .locator('.arrow.last')
      .evaluateAll((all) => all.map((one) => one.getAttribute('data-arrow')));
    assert.deepEqual(last.toSorted(), [
      'CallingLlm ProcessingLlmResponse',
      'CheckingForCancellation ExecutingTools',
      'ProcessingLlmResponse ToolUseRequested',
      'ToolUseRequested CheckingForCancellation',
    ]);
    assert.equal(await page.locator('[data-arrow="Error CallingLlm"] .count').textContent(), '1');
    assert.match(await textOf(watched, '.explained'), /ExecutingTools[\s\S]*a batch of tool calls runs/);
    await page.locator('[data-arrow="CallingLlm Error"] .hit').hover({ force: true });
    assert.match(
      await textOf(watched, '.explained'),
      /CallingLlm → Error[\s\S]*Taken 1 time[\s\S]*LlmFailed \[\w+\]/,
    );
    for (const chart of ['resting', 'minimal', 'minimal-head', 'loom', 'sketch', 'tools']) {
      await page.locator('#chart-choice').selectOption(chart);
      await waitUntil(page, `document.querySelectorAll('.state.current').length === 1`);
      assert.ok((await page.locator('.arrow.taken').count()) > 0, chart);
    }
    await page.close();
    assert.deepEqual(watched.faults, []);
  });

  it('has no serious finding of axe, wide and narrow, dark and light', async () => {
    const watched = await openSessionPage('story', STORY_SEQ);
    const { page } = watched;
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1400, 420]) {
        await page.setViewportSize({ width, height: 900 });
        for (const key of ['1', '2', '3', '4', '5', '6', '7', '8']) {
          await page.keyboard.press('p');
          await page.keyboard.press(key);
          const name = await page.locator('[role=tab][aria-selected=true]').textContent();
          const wide = await page.evaluate('document.documentElement.scrollWidth');
          assert.ok(Number(wide) <= width, `${name} is ${wide} wide in a window of ${width}`);
          await keepPicture(watched, `${colorScheme}-${width}-${key}`);
          // Each check takes a second: in light only colours differ, in a narrow window only the machine.
          const isNew = width > 1_000 ? colorScheme === 'dark' || '2578'.includes(key) : key === '1';
          if (!isNew) continue;
          const findings = await seriousFindings(watched, colorScheme === 'dark' ? 'all' : 'contrast');
          assert.deepEqual(findings, [], `${name}, ${colorScheme}, ${width}`);
        }
      }
    }
    await page.setViewportSize({ width: 1000, height: 700 });
    await page.goto(inspector.address);
    await waitUntil(page, `document.body.dataset.loaded === 'yes'`);
    assert.match(await textOf(watched, '.sessions'), /The totals on the invoice[\s\S]*ShuttingDown\s+36/);
    await keepPicture(watched, 'sessions');
    assert.deepEqual(await seriousFindings(watched, 'all'), []);
    await page.close();
    assert.deepEqual(watched.faults, []);
  });

  it('follows a session that runs, through an approval and a cancel', async (context) => {
    const workspace = temporaryFolder(context, 'workspace');
    let allow = (): void => undefined;
    const allowed = new Promise<'allow'>((resolve) => {
      allow = () => resolve('allow');
    });
    const session = await openSession({
      model: scriptedModel({
        replies: [
          { calls: [{ tool: 'write', input: { path: 'note.txt', content: 'milk' } }] },
          { calls: [{ tool: 'bash', input: { command: 'sleep 60' } }] },
        ],
      }),
      journals: fileJournals({ folder }),
      preset: 'careful',
      workspace,
      onApproval: ({ tool }) => (tool === 'write' ? allowed : 'allow'),
    });
    atEnd(context, () => session.close());
    const watched = await openSessionPage(session.id, 0);
    const { page } = watched;
    const ended = session.prompt('Note: buy milk.');
    await inState(watched, 'ExecutingTools');
    await page.keyboard.press('4');
    await waitUntil(
      page,
      `/write[\\s\\S]*awaitingApproval/.test(document.querySelector('.state-panel')?.innerText)`,
    );
    allow();
    await waitUntil(page, `/bash[\\s\\S]*running/.test(document.querySelector('.state-panel')?.innerText)`);
    await session.send({ type: 'CancelTurn' });
    await ended;
    await inState(watched, 'WaitingForUserInput');
    assert.match(await textOf(watched, '.state-panel'), /WaitingForUserInput cancelled/);
    await page.locator('#jump').selectOption('cancel');
    await page.locator('button', { hasText: 'Previous' }).last().click();
    await waitUntil(page, `document.body.dataset.following === 'no'`);
    assert.match(await textOf(watched, '.where'), /CancelTurn/);
    await page.close();
    assert.deepEqual(watched.faults, []);
  });

  it('does nothing that a hostile conversation says, on the server and in a file', async (context) => {
    const evil = [
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script>',
      '</script><script>window.hit=1</script><svg onload="window.hit=1"><style>body{display:none}</style>',
      '<!--<script> javascript:window.hit=1 <a href="javascript:window.hit=1">x</a> \u2028\u2029\u0000\ud800',
      '{policy} null</script> $& $1',
    ];
    const stored = await StoredSession.create(folder, 'evil', {
      ...begun({}).session.settings,
      workspace: evil[0] ?? '',
    });
    const of = (index: number): string => evil[index % evil.length] ?? '';
    const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: null };
    const reply = {
      role: 'assistant',
      model: of(1),
      cut: false,
      parts: [{ type: 'text', text: evil.join('\n') }],
    } as const;
    await stored.add([
      { type: 'Start', at: 1 },
      { type: 'UserInput', at: 2, text: evil.join('\n'), mode: 'steer' },
      {
        type: 'LlmFailed',
        at: 3,
        requestId: 'req-1',
        error: { kind: 'overloaded', message: of(1), retryable: true, retryAfterMs: null },
        usage: null,
        jitter: 0,
      },
      { type: 'TimerFired', at: 4, timerId: 'timer-1' },
      {
        type: 'LlmCompleted',
        at: 5,
        requestId: 'req-2',
        message: reply,
        calls: [],
        stopReason: 'end',
        usage,
      },
    ]);
    await stored.journal.close();
    const sessions = new InspectedSessions({ folder, version: '1', redactor: createRedactor([]) });
    const file = path.join(temporaryFolder(context, 'exported'), 'evil <b>.html');
    writeFileSync(file, pageWith(built, await sessions.exported('evil')));
    for (const address of [inspector.addressOf('evil'), pathToFileURL(file).href]) {
      const watched = await openPage(browser);
      const { page } = watched;
      await page.goto(address);
      await loaded(watched, 5);
      for (const key of ['2', '3', '4', '5', '6', '7', '8']) {
        await page.keyboard.press('p');
        await page.keyboard.press(key);
      }
      await page.keyboard.press('2');
      await page.keyboard.press('End');
      await page.locator('.message.model').waitFor();
      assert.match(await textOf(watched, '.messages'), /onerror="window.hit=1"[\s\S]*<\/script>/);
      assert.equal(await page.evaluate('window.hit'), undefined);
      assert.equal(
        await page.locator('.messages img, .messages script, .messages svg, .messages a').count(),
        0,
      );
      assert.equal(await page.locator('body script').count(), 0);
      if (address.startsWith('file:')) assert.deepEqual(watched.requests, [address]);
      await page.goto(inspector.address);
      await waitUntil(page, `document.body.dataset.loaded === 'yes'`);
      await page.close();
      assert.deepEqual(watched.faults, []);
    }
  });

  /** What the panels must show of a state. */
  const expected = (message: Message): string =>
    message.parts
      .map((part) => {
        if (part.type === 'call') return part.rawInput ?? JSON.stringify(part.input, null, 2);
        return part.text;
      })
      .join('\n');

  it('shows at 200 random events what a replay says', async (context) => {
    const seed = Number(process.env.PAWL_SEED ?? Math.floor(Math.random() * 2 ** 31));
    context.diagnostic(`PAWL_SEED=${seed}`);
    let roll = seed >>> 0;
    const random = (): number => {
      roll = (Math.imul(roll, 1_664_525) + 1_013_904_223) >>> 0;
      return roll / 2 ** 32;
    };
    const rolls = Array.from({ length: 150 }, random);
    const journaled = roam({ settings: {}, rolls })
      .events()
      .filter(({ type }) => !['TextDelta', 'ReasoningDelta', 'ToolCallDelta', 'ToolProgress'].includes(type));
    const stored = await StoredSession.create(folder, 'random', begun({}).session.settings);
    await stored.add(journaled);
    await stored.journal.close();
    const count = journaled.length;
    const seqs = Array.from({ length: 200 }, () => Math.floor(random() * (count + 1)));
    const watched = await openSessionPage('random', count);
    const { page } = watched;
    await page.setViewportSize({ width: 600, height: 700 });
    const shown = await page.evaluate(`(async () => {
      const shown = [];
      for (const seq of ${JSON.stringify(seqs)}) {
        location.hash = '#' + seq;
        while (document.body.dataset.seq !== String(seq)) await new Promise((resolve) => setTimeout(resolve, 1));
        shown.push({
          state: document.body.dataset.state,
          facts: document.querySelector('.facts').textContent,
          said: [...document.querySelectorAll('.messages .message')]
            .map((one) => [...one.querySelectorAll('pre')].map(({ textContent }) => textContent).join('\\n')),
        });
      }
      return shown;
    })()`);
    assert.ok(Array.isArray(shown));
    const store = fileJournals({ folder });
    const states = new Map<number, Awaited<ReturnType<typeof store.replay>>['state']>();
    states.set(0, (await store.replay('random', { at: 0 })).state);
    await store.replay('random', { visit: ({ seq, state }) => states.set(seq, state) });
    for (const [index, seq] of seqs.entries()) {
      const state = states.get(seq);
      assert.ok(state !== undefined);
      const { usage, conversation } = state.session;
      assert.equal(shown[index].state, state.name, `state at ${seq}`);
      assert.deepEqual(
        shown[index].said,
        messagesOf(conversation).slice(-40).map(expected),
        `conversation at ${seq}`,
      );
      const tokens = usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
      const short = tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(tokens < 10_000 ? 1 : 0)}k`;
      assert.ok(
        shown[index].facts.endsWith(` · ${short} tokens`),
        `${shown[index].facts} at ${seq}: ${tokens}`,
      );
      assert.equal(shown[index].facts.includes('+?'), usage.unpriced > 0);
    }
    await page.close();
    assert.deepEqual(watched.faults, []);
  });
});
