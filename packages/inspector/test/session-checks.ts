import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openSession } from '@pawl/agent';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import type { Page } from 'playwright-core';
import { begun, roam } from '../../../test/kit/agent/random.js';
import { GO_TO, loaded, openParts, waitUntil } from '../../../test/kit/inspector/browser.js';
import { StoredSession } from '../../../test/kit/inspector/stored-session.js';
import { atEnd, temporaryFolder } from '../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../test/tier.js';
import { InspectedSessions } from '../src/server/inspected-sessions.js';
import { pageWithSession } from '../src/server/page-html.js';
import { type Inspected, inState, textOf } from './inspected-page.js';

/** Sessions that run, hostile sessions and random ones, in the page of the inspector. */

/** What the panels must show of a message, part by part. */
const expected = ({ parts }: Message): readonly string[] =>
  parts.map((part) =>
    part.type === 'call' ? `${part.tool} ${part.rawInput ?? String(part.input.path)}` : part.text,
  );

/** The tree of a value as the page writes it, all of it open; the conversation has a panel of its own. */
const treeLines = (name: string, given: unknown): readonly string[] => {
  const isObject = typeof given === 'object' && given !== null;
  const value: unknown =
    isObject && 'toJSON' in given && typeof given.toJSON === 'function' ? given.toJSON() : given;
  const children = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (children.length === 0) return [`${name}: ${JSON.stringify(value) ?? 'undefined'}`];
  const head = `${name} ${Array.isArray(value) ? `[${children.length}]` : `{${children.length}}`}`;
  if (name === 'conversation') return [head];
  const rest = children.length > 200 ? [`and ${children.length - 200} more`] : [];
  return [head, ...children.slice(0, 200).flatMap(([key, one]) => treeLines(key, one)), ...rest];
};

/** Opens the whole tree, and reads it at each of the entries. */
const shownTrees = (page: Page, seqs: readonly number[]): Promise<readonly string[]> =>
  page.evaluate(`(async () => {
    const closed = () => [...document.querySelectorAll('.state-panel details:not([open])')]
      .filter((one) => one.querySelector('.key').textContent !== 'conversation');
    const shown = [];
    ${GO_TO}
    for (const seq of ${JSON.stringify(seqs)}) {
      await goTo(seq);
      for (let shut = closed(); shut.length > 0; shut = closed()) {
        for (const one of shut) one.open = true;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      shown.push([...document.querySelectorAll('.state-panel :is(.json-row, .json-branch > summary, .json-branch > p)')]
        .map(({ textContent }) => textContent).join('\\n'));
    }
    return shown;
  })()`);

export const checkSessions = (inspected: () => Inspected): void => {
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
      journals: fileJournals({ folder: inspected().folder }),
      preset: 'careful',
      workspace,
      onApproval: ({ tool }) => (tool === 'write' ? allowed : 'allow'),
    });
    atEnd(context, () => session.close());
    const watched = await inspected().open(session.id, 0);
    const { page } = watched;
    const ended = session.prompt('Note: buy milk.');
    await inState(watched, 'ExecutingTools');
    await openParts(watched);
    await waitUntil(
      page,
      `/write[\\s\\S]*awaitingApproval/.test(document.querySelector('.state-panel')?.innerText)`,
    );
    allow();
    await waitUntil(
      page,
      `/bash[\\s\\S]*running/.test(document.querySelector('.state-panel')?.innerText)`,
    );
    await session.send({ type: 'CancelTurn' });
    await ended;
    await inState(watched, 'WaitingForUserInput');
    assert.match(await textOf(watched, '.state-panel'), /WaitingForUserInput cancelled/);
    await page.locator('#jump').selectOption('cancel');
    await page.locator('button', { hasText: 'Previous' }).last().click();
    await waitUntil(page, `document.body.dataset.following === 'no'`);
    assert.match(await textOf(watched, '.where'), /CancelTurn/);
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', {
      value: { writeText: async () => void (window.copies = (window.copies ?? 0) + 1) },
    })`);
    await page.locator('.command button').first().dblclick();
    await waitUntil(page, `window.copies === 2`);
    assert.equal(await textOf(watched, '.command:first-child [role=status]'), 'copied');
    assert.deepEqual(watched.faults, []);
  });

  it('does nothing that a hostile conversation says, on the server and in a file', async (context) => {
    const evil = [
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script>',
      '</script><script>window.hit=1</script><svg onload="window.hit=1"><style>body{display:none}</style>',
      '<!--<script> javascript:window.hit=1 <a href="javascript:window.hit=1">x</a> \u2028\u2029\u0000\ud800',
      '{policy} null</script> $& $1',
      '\u001b[31mred\u001b[0m \u202egnp.exe [link](javascript:window.hit=1) **bold** <b>b</b>',
    ];
    const stored = await StoredSession.create(inspected().folder, 'evil', {
      ...begun({}).session.settings,
      workspace: evil[0] ?? '',
    });
    const of = (index: number): string => evil[index % evil.length] ?? '';
    const usage = {
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: null,
    };
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
    const sessions = new InspectedSessions({
      folder: inspected().folder,
      version: '1',
      redactor: createRedactor([]),
    });
    const file = path.join(temporaryFolder(context, 'exported'), 'evil <b>.html');
    writeFileSync(file, pageWithSession(inspected().built, await sessions.exported('evil')));
    for (const address of [inspected().inspector.addressOf('evil'), pathToFileURL(file).href]) {
      const watched = await inspected().visit(address);
      const { page } = watched;
      await loaded(watched, 5);
      await openParts(watched);
      for (const key of ['1', '2', '3', '4', '5']) {
        await page.keyboard.press('p');
        await page.keyboard.press(key);
      }
      await page.keyboard.press('2');
      await page.keyboard.press('End');
      await page.locator('.message.model').waitFor();
      assert.match(await textOf(watched, '.messages'), /onerror="window.hit=1"[\s\S]*<\/script>/);
      const drawn = await page.evaluate<string>(`document.body.innerText`);
      assert.match(drawn, /␛\[31mred␛\[0m ⟨U\+202E⟩gnp\.exe/);
      assert.doesNotMatch(drawn, /[\u001b\u202e]/);
      assert.equal(await page.evaluate('window.hit'), undefined);
      assert.equal(await page.locator('main img, main script, .messages svg, main a').count(), 0);
      assert.equal(await page.locator('body script').count(), 0);
      if (address.startsWith('file:')) assert.deepEqual(watched.requests, [address]);
      await page.goto(inspected().inspector.address);
      await waitUntil(page, `document.body.dataset.loaded === 'yes'`);
      assert.deepEqual(watched.faults, []);
    }
  });

  it('shows at random events what a replay says', async (context) => {
    context.diagnostic(`PAWL_SEED=${SEED}`);
    let roll = SEED >>> 0;
    const random = (): number => {
      roll = (Math.imul(roll, 1_664_525) + 1_013_904_223) >>> 0;
      return roll / 2 ** 32;
    };
    const rolls = Array.from({ length: 150 }, random);
    const journaled = roam({ settings: {}, rolls })
      .events()
      .filter(
        ({ type }) =>
          !['TextDelta', 'ReasoningDelta', 'ToolCallDelta', 'ToolProgress'].includes(type),
      );
    const stored = await StoredSession.create(
      inspected().folder,
      'random',
      begun({}).session.settings,
    );
    await stored.add(journaled);
    await stored.journal.close();
    const count = journaled.length;
    const seqs = Array.from({ length: countCases(150) }, () => Math.floor(random() * (count + 1)));
    const watched = await inspected().open('random', count);
    const { page } = watched;
    await page.setViewportSize({ width: 600, height: 700 });
    await page.keyboard.press('2');
    await page.locator('.messages').waitFor();
    const shown = await page.evaluate(`(async () => {
      const shown = [];
      ${GO_TO}
      for (const seq of ${JSON.stringify(seqs)}) {
        await goTo(seq);
        shown.push({
          state: document.body.dataset.state,
          facts: document.querySelector('.facts').textContent,
          said: [...document.querySelectorAll('.messages .message')]
            .map((one) => [...one.querySelectorAll('.part:not(.changes)')].map((part) => {
              const said = part.querySelector('pre, .markdown')?.textContent;
              if (!part.matches('.call')) return said;
              return part.querySelector('.tool').textContent + ' ' + (said ?? part.querySelector('.title').textContent.trim());
            })),
        });
      }
      return shown;
    })()`);
    assert.ok(Array.isArray(shown));
    await openParts(watched);
    await page.locator('.state-panel .json-branch').first().waitFor();
    const trees = await shownTrees(page, seqs);
    const store = fileJournals({ folder: inspected().folder });
    const states = new Map<number, Awaited<ReturnType<typeof store.replay>>['state']>();
    states.set(0, (await store.replay('random', { at: 0 })).state);
    await store.replay('random', { visit: ({ seq, state }) => states.set(seq, state) });
    for (const [index, seq] of seqs.entries()) {
      const state = states.get(seq);
      assert.ok(state !== undefined);
      const { usage, conversation } = state.session;
      const { session, ...own } = state;
      const tree = [
        ...Object.entries(own).flatMap(([key, one]) => treeLines(key, one)),
        ...treeLines('session', session),
      ];
      assert.equal(trees[index], tree.join('\n'), `the whole state at ${seq}`);
      assert.equal(shown[index].state, state.name, `state at ${seq}`);
      assert.deepEqual(
        shown[index].said,
        messagesOf(conversation).slice(-40).map(expected),
        `conversation at ${seq}`,
      );
      const tokens =
        usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
      const short = tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`;
      assert.ok(
        shown[index].facts.endsWith(` · ${short} tokens`),
        `${shown[index].facts} at ${seq}: ${tokens}`,
      );
      assert.equal(shown[index].facts.includes('+?'), usage.unpriced > 0);
    }
    assert.deepEqual(watched.faults, []);
  });
};
