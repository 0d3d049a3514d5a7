import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ok, tool } from '../../../../test/kit/runtime/stage.js';
import type { Message } from '../../src/machine/message.js';
import type { Tool } from '../../src/ports/tool.js';
import { appendPreserved } from '../../src/session/compaction.js';

const list: Tool = { ...tool('list', () => ok('')), keep: ({ items }) => `items: ${items}` };

const user = (text: string): Message => ({
  role: 'user',
  parts: [{ type: 'text', origin: 'user', text }],
});
const said = (text: string): Message => ({
  role: 'assistant',
  model: 'm',
  cut: false,
  parts: [{ type: 'text', text }],
});
const summary = (text: string, next = ''): Message => ({
  role: 'user',
  parts: [
    { type: 'text', origin: 'summary', text },
    ...(next === '' ? [] : [{ type: 'text', origin: 'user', text: next } as const]),
  ],
});
const listed = (items: string, failed = false, steer = ''): readonly Message[] => [
  {
    role: 'assistant',
    model: 'm',
    cut: false,
    parts: [{ type: 'call', callId: items, tool: 'list', input: { items } }],
  },
  {
    role: 'user',
    parts: [
      { type: 'result', callId: items, tool: 'list', failed, text: 'ok' },
      ...(steer === '' ? [] : [{ type: 'text', origin: 'user', text: steer } as const]),
    ],
  },
];

const skill = (name: string, body: string): string =>
  `<skill name="${name}">\nFolder of the skill: /s/${name}\n\n${body}\n</skill>`;

const loaded = (name: string, body: string, failed = false): Message => ({
  role: 'user',
  parts: [{ type: 'result', callId: name + body, tool: 'skill', failed, text: skill(name, body) }],
});

const REQUEST = '[kept: what the user asked for, word for word]';

const rows: readonly {
  readonly title: string;
  readonly given: readonly Message[];
  readonly turn?: 'running';
  readonly limitBytes?: number;
  readonly then: string;
}[] = [
  { title: 'a list that was never made is not kept', given: [user('a'), said('b')], then: 'S' },
  {
    title: 'the last list is kept, not one before it',
    given: [user('a'), ...listed('one'), ...listed('two'), said('b')],
    then: 'S\n\n[kept: list]\nitems: two',
  },
  {
    title: 'a list that was refused is not the last one',
    given: [user('a'), ...listed('one'), ...listed('two', true)],
    then: 'S\n\n[kept: list]\nitems: one',
  },
  {
    title: 'a list that an earlier summary has kept is kept again',
    given: [summary('old\n\n[kept: list]\nitems: one\n\n[kept: other]\nx'), said('b')],
    then: 'S\n\n[kept: list]\nitems: one',
  },
  {
    title: 'a newer list replaces the one of the earlier summary',
    given: [summary('old\n\n[kept: list]\nitems: one'), said('b'), user('c'), ...listed('two')],
    then: 'S\n\n[kept: list]\nitems: two',
  },
  {
    title: 'within a turn the request stays word for word, with what was said to steer it',
    given: [
      user('done'),
      said('b'),
      user('now this'),
      ...listed('one', false, 'and that'),
      said('c'),
    ],
    turn: 'running',
    then: `S\n\n${REQUEST}\nnow this\n\nand that\n\n[kept: list]\nitems: one`,
  },
  {
    title: 'a request that an earlier summary of the turn has kept is kept again',
    given: [
      summary(`old\n\n${REQUEST}\nnow this\n\n[kept: list]\nitems: one`),
      ...listed('two', false, 'more'),
    ],
    turn: 'running',
    then: `S\n\n${REQUEST}\nnow this\n\nmore\n\n[kept: list]\nitems: two`,
  },
  {
    title: 'a request that came after a summary is kept',
    given: [summary('old', 'now this'), ...listed('one')],
    turn: 'running',
    then: `S\n\n${REQUEST}\nnow this\n\n[kept: list]\nitems: one`,
  },
  {
    title: 'a request that is over is not kept',
    given: [summary(`old\n\n${REQUEST}\nnow this`), said('done')],
    then: 'S',
  },
  {
    title: 'a request that is very long keeps its head and its tail',
    given: [user(`head ${'x'.repeat(500)} tail`), said('b')],
    turn: 'running',
    limitBytes: 20,
    then: `S\n\n${REQUEST}\nhead xxxxx\n… 490 bytes left out …\nxxxxx tail`,
  },
  {
    title: 'skills that the model loaded stay, the newest text of each',
    given: [
      user('a'),
      loaded('one', 'old'),
      loaded('two', '2'),
      loaded('one', 'new'),
      loaded('three', '3', true),
    ],
    then: `S\n\n[kept: skill two]\n${skill('two', '2')}\n\n[kept: skill one]\n${skill('one', 'new')}`,
  },
  {
    title: 'a skill that the user named stays, once',
    given: [user(`/one please\n\n${skill('one', 'body')}`), said('b')],
    turn: 'running',
    then: `S\n\n${REQUEST}\n/one please\n\n(the skill one stands below)\n\n[kept: skill one]\n${skill('one', 'body')}`,
  },
  {
    title: 'skills that an earlier summary has kept are kept again, also beside other kept texts',
    given: [
      summary(
        `old\n\n[kept: skill one]\n${skill('one', 'a </skill> in it')}\n\n[kept: skill two]\n${skill('two', '2')}\n\n[kept: list]\nitems: one`,
      ),
      loaded('three', '3'),
    ],
    then: `S\n\n[kept: skill one]\n${skill('one', 'a </skill> in it')}\n\n[kept: skill two]\n${skill('two', '2')}\n\n[kept: skill three]\n${skill('three', '3')}\n\n[kept: list]\nitems: one`,
  },
  {
    title: 'a file that looks like a skill is not kept',
    given: [
      {
        role: 'user',
        parts: [
          { type: 'result', callId: 'r', tool: 'read', failed: false, text: skill('one', 'x') },
        ],
      },
    ],
    then: 'S',
  },
  {
    title: 'of skills that are too long together the newest stay',
    given: [loaded('one', 'x'.repeat(900)), loaded('two', 'y'.repeat(800))],
    then: `S\n\n[kept: skill two]\n${skill('two', 'y'.repeat(800))}`,
  },
];

for (const { title, given, turn = 'over', limitBytes = 1_000, then } of rows) {
  test(title, () => {
    assert.equal(
      appendPreserved('S', given, { tools: [list, tool('other', () => ok(''))], turn, limitBytes }),
      then,
    );
  });
}
