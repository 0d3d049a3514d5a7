import assert from 'node:assert/strict';
import { nth, type Row } from './conformance.js';

/** The answer record. */

const answersOf = (reports: Parameters<Row['then']>[0]): readonly (string | null)[] =>
  reports.map(({ answer }) => answer);

export const answerRows: readonly Row[] = [
  {
    title: 'the answer is what the record holds when it is made ready, in that cell only',
    javascript: [
      'answer.content = "draft"',
      'answer.content = "forty-two"; answer.ready = true; answer.content = "too late"',
      'print(1)',
    ],
    python: [
      'answer["content"] = "draft"',
      'answer["content"] = "forty-two"\nanswer["ready"] = True\nanswer["content"] = "too late"',
      'print(1)',
    ],
    then(reports) {
      assert.deepEqual(answersOf(reports), [null, 'forty-two', null]);
    },
  },
  {
    title: 'content of an earlier cell is the answer when a later one makes it ready',
    javascript: ['answer.content = "from before"', 'answer.ready = true'],
    python: ['answer["content"] = "from before"', 'answer["ready"] = True'],
    then(reports) {
      assert.deepEqual(answersOf(reports), [null, 'from before']);
    },
  },
  {
    title: '#211 an answer bound to a plain object of its own is found after the cell',
    javascript: [
      'answer = { content: "mine", ready: true }',
      'let answer = { content: "draft", ready: false }',
      'answer.ready = true',
      'answer = "no record"',
      'answer = { ready: true, content: [1, 2] }',
    ],
    python: [
      'answer = {"content": "mine", "ready": True}',
      'answer = {"content": "draft", "ready": False}',
      'answer["ready"] = True',
      'answer = "no record"',
      'answer = {"ready": True, "content": [1, 2]}',
    ],
    then(reports) {
      assert.deepEqual(answersOf(reports).slice(0, 4), ['mine', null, 'draft', null]);
      assert.match(nth(reports, 4).answer ?? '', /^\[1, ?2\]$/);
    },
  },
  {
    title: 'an empty text is an answer, and what is no text becomes one',
    javascript: [
      'answer.content = ""; answer.ready = true',
      'answer.content = 42; answer.ready = true',
      'answer.content = { a: [1, "b"] }; answer.ready = 1',
      'answer.content = null; answer.ready = true',
      'answer.content = ["\\ud83d"]; answer.ready = true',
    ],
    python: [
      'answer["content"] = ""\nanswer["ready"] = True',
      'answer["content"] = 42\nanswer["ready"] = True',
      'answer["content"] = {"a": [1, "b"]}\nanswer["ready"] = 1',
      'answer["content"] = None\nanswer["ready"] = True',
      'answer["content"] = ["\\ud83d"]\nanswer["ready"] = True',
    ],
    then(reports) {
      const [empty, number, object, nothing, half] = answersOf(reports);
      assert.deepEqual([empty, number], ['', '42']);
      assert.match(object ?? '', /^\{["']a["']: ?\[1, ?["']b["']\]\}$/);
      assert.match(nothing ?? '', /^(null|None)$/);
      assert.doesNotMatch(half ?? '\ud83d', /\p{Surrogate}/u);
    },
  },
  {
    title: 'an answer given before the cell failed is an answer',
    javascript: [
      'answer.content = "done"; answer.ready = true; throw new Error("afterwards")',
      'answer = { content: "done", ready: true }; throw new Error("afterwards")',
    ],
    python: [
      'answer["content"] = "done"\nanswer["ready"] = True\nraise Exception("afterwards")',
      'answer = {"content": "done", "ready": True}\nraise Exception("afterwards")',
    ],
    then(reports) {
      assert.deepEqual(answersOf(reports), ['done', 'done']);
      assert.deepEqual(
        reports.map(({ status }) => status),
        ['raised', 'raised'],
      );
    },
  },
  {
    title: 'ready that is made true once more takes nothing new; made false and true again it does',
    javascript: [
      'answer.content = 1; answer.ready = true; answer.content = 2; answer.ready = true',
      'answer.content = 1; answer.ready = true; answer.content = 2; answer.ready = false; answer.ready = true',
      'answer.content = 1; answer.ready = true; answer.ready = false',
    ],
    python: [
      'answer["content"] = 1\nanswer["ready"] = True\nanswer["content"] = 2\nanswer["ready"] = True',
      'answer["content"] = 1\nanswer["ready"] = True\nanswer["content"] = 2\nanswer["ready"] = False\nanswer["ready"] = True',
      'answer["content"] = 1\nanswer["ready"] = True\nanswer["ready"] = False',
    ],
    then(reports) {
      assert.deepEqual(answersOf(reports), ['1', '2', '1']);
    },
  },
  {
    title: 'an answer of half a million characters is not cut',
    javascript: ['answer.content = "x".repeat(500000); answer.ready = true'],
    python: ['answer["content"] = "x" * 500000\nanswer["ready"] = True'],
    then(reports) {
      assert.equal(nth(reports, 0).answer?.length, 500_000);
    },
  },
];
