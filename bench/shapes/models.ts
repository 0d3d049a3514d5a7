/**
 * The scripted models of the benchmark `shapes`. They do their work: they know the words of their
 * request, and nothing of the answer. The root writes programs for the question of a task
 * (tasks.ts); the reader answers the prompts that these programs send.
 */

import { messageText, scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import type { Model, ModelRequest } from '../../packages/agent/src/ports/model.js';
import { programsFor } from './programs.js';
import type { TaskName } from './tasks.js';

/** Size of the requests and number of calls. */
export type Sent = { calls: number; characters: number; longest: number };

const joinTexts = (request: ModelRequest): string =>
  [request.instructions, ...request.messages.map((message) => messageText(message))].join('\n');

/**
 * A model that replies with what a function makes of the request, and adds what it was sent to
 * `sent`.
 */
const createModel = (id: string, sent: Sent, reply: (request: ModelRequest) => string): Model => {
  const { facts } = scriptedModel({ replies: [] });
  const stream: Model['stream'] = async function* (request) {
    const { length } = joinTexts(request);
    sent.calls += 1;
    sent.characters += length;
    sent.longest = Math.max(sent.longest, length);
    const text = reply(request);
    const usage = { inputTokens: Math.ceil(length / 4), outputTokens: Math.ceil(text.length / 4) };
    yield { type: 'text', text };
    yield {
      type: 'completed',
      parts: [{ type: 'text', text }],
      stopReason: 'end',
      usage: { ...usage, cacheReadTokens: 0, cacheWriteTokens: 0 },
    };
  };
  return { id, facts, canAbort: 'yes', stream };
};

const recognizeTask = (question: string): TaskName => {
  if (question.includes('secret number')) return 'find';
  return question.includes('pairs of users') ? 'pairs' : 'aggregate';
};

/** Writes the next program for the question that its first message holds. */
export const rootModel = (sent: Sent): Model =>
  createModel('scripted/root', sent, ({ instructions, messages }) => {
    const question = messageText(messages[0]);
    const language = instructions.includes('Python environment') ? 'python' : 'javascript';
    const harbour = /harbour of (\w+)/.exec(question)?.[1] ?? '';
    const programs = programsFor(recognizeTask(question), language, harbour);
    const program = programs[messages.filter(({ role }) => role === 'assistant').length];
    return program === undefined ? 'My last program failed.' : `\`\`\`repl\n${program}\n\`\`\``;
  });

/** Patterns that classify a question; the first match counts. */
const signs: readonly (readonly [RegExp, string])[] = [
  [/\bwhere\b|\bwhich (town|country)\b/i, 'location'],
  [/\bwho\b|\bwhich person\b/i, 'person'],
  [/\bhow many\b|\bweight\b/i, 'number'],
  [/\bwhen\b|\byear\b/i, 'time'],
  [/\bwhy\b|\breason\b/i, 'reason'],
  [/\bhow\b|\bmeans\b/i, 'manner'],
];

const classify = (text: string): string =>
  signs.find(([sign]) => sign.test(text))?.[1] ?? 'unknown';

const answerPrompt = (prompt: string): string => {
  const harbour = /for the harbour of (\w+)\?/.exec(prompt)?.[1];
  if (harbour !== undefined) {
    const line = new RegExp(`harbour of ${harbour} is (\\d+)`).exec(prompt);
    return line?.[1] ?? 'none of them';
  }
  return [...prompt.matchAll(/^(\d+)\. (.*)$/gm)]
    .map(([, number, text = '']) => `${number} ${classify(text)}`)
    .join('\n');
};

/** Reads what it is given: classifies numbered questions, or finds a number among lines. */
export const readerModel = (sent: Sent): Model =>
  createModel('scripted/reader', sent, ({ messages }) =>
    answerPrompt(messageText(messages.at(-1))),
  );
