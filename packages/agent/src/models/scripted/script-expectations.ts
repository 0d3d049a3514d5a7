import type { Message } from '../../machine/message.js';
import type { ModelRequest } from '../../ports/model.js';
import type { Expectation, ResultExpectation, TextExpectation } from './script.js';
import { textOf } from './script-rules.js';

const SHOWN = 300;

const listOf = (value: string | readonly string[] | undefined): readonly string[] => {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
};

const quote = (text: string): string =>
  JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

const findUnmetText = (what: string, expected: TextExpectation | undefined, text: string): string | null => {
  if (expected === undefined) return null;
  const missing = listOf(expected.contains).find((wanted) => !text.includes(wanted));
  if (missing !== undefined) return `${what} should contain ${quote(missing)}, but is ${quote(text)}`;
  const present = listOf(expected.lacks).find((unwanted) => text.includes(unwanted));
  if (present !== undefined) return `${what} should not contain ${quote(present)}, but is ${quote(text)}`;
  const { matches } = expected;
  if (matches === undefined || new RegExp(matches, 'u').test(text)) return null;
  return `${what} should match /${matches}/u, but is ${quote(text)}`;
};

const findUnmetResult = (expected: ResultExpectation, messages: readonly Message[]): string | null => {
  const { callId, failed } = expected;
  const results = messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'result'));
  const found = results.find((result) => result.callId === callId);
  if (found === undefined) {
    const ids = results.map((result) => result.callId).join(', ');
    return `there should be a result of ${callId}, but there are results of: ${ids || 'none'}`;
  }
  if (failed !== undefined && found.failed !== failed) {
    const wanted = failed ? 'failed' : 'succeeded';
    return `${callId} should have ${wanted}, but its result is ${quote(found.text)}`;
  }
  return findUnmetText(`the result of ${callId}`, expected, found.text);
};

/** The first unmet expectation, as a sentence with the expected and the actual value; null if all are met. */
export const findUnmet = (expected: Expectation | undefined, request: ModelRequest): string | null => {
  if (expected === undefined) return null;
  const { messages, instructions, tools } = request;
  if (expected.messages !== undefined && expected.messages !== messages.length) {
    return `the request should have ${expected.messages} messages, but has ${messages.length}`;
  }
  const names = tools.map(({ name }) => name);
  const absent = (expected.tools ?? []).find((name) => !names.includes(name));
  if (absent !== undefined)
    return `the tool ${absent} should be there, but there are: ${names.join(', ') || 'none'}`;
  for (const result of expected.results ?? []) {
    const unmet = findUnmetResult(result, messages);
    if (unmet !== null) return unmet;
  }
  return (
    findUnmetText('the last message', expected.last, textOf(messages.at(-1))) ??
    findUnmetText('the instructions', expected.instructions, instructions)
  );
};
