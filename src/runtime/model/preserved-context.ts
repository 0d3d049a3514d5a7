import type { CallPart, Message } from '../../agent/message.js';
import type { Tool } from '../../ports/tool.js';
import { attemptNow } from '../attempt.js';
import { cutText } from '../tools/truncate-output.js';

/**
 * Text that is kept verbatim when a summary replaces messages.
 *
 * 1. In the middle of a turn: what the user asked for in it. At any time: what tools want kept (`Tool.keep`).
 * 2. It stands below the summary, each piece under a line of its own, so that the next summary finds it again.
 */

export type KeepingNeeds = {
  readonly tools: Iterable<Tool>;
  readonly turn: 'running' | 'over';
  /** Of the user's words. */
  readonly limitBytes: number;
};

type Part = Message['parts'][number];

const headingOf = (name: string): string => `[kept: ${name}]`;
const NEXT = /\n+\[kept: [^\]\n]+\]\n/;
const REQUEST = 'what the user asked for, word for word';

const isText =
  (origin: 'user' | 'summary') =>
  (part: Part): boolean =>
    part.type === 'text' && 'origin' in part && part.origin === origin;

const textOf = (part: Part): string => (part.type === 'call' ? '' : part.text);

/** What was kept under that name in an earlier summary; undefined of a message without. */
const keptBefore = ({ parts }: Message, name: string): string | undefined => {
  const heading = `${headingOf(name)}\n`;
  for (const text of parts.filter(isText('summary')).map(textOf)) {
    const at = text.lastIndexOf(heading);
    if (at >= 0) return text.slice(at + heading.length).split(NEXT, 1)[0];
  }
  return undefined;
};

const cutWords = (text: string, limitBytes: number): string => {
  const cut = cutText(text, limitBytes);
  return cut === null ? text : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

/** The user's words since the turn began: a message that answers no call begins one. */
const requestIn = (messages: readonly Message[], limitBytes: number): string => {
  const said: string[] = [];
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') continue;
    said.unshift(...message.parts.filter(isText('user')).map(textOf));
    if (message.parts[0]?.type === 'result') continue;
    said.unshift(keptBefore(message, REQUEST) ?? '');
    break;
  }
  return cutWords(said.filter((text) => text !== '').join('\n\n'), limitBytes);
};

/** Ids of calls that ended well. */
const doneCalls = (messages: readonly Message[]): ReadonlySet<string> => {
  const done = new Set<string>();
  for (const { parts } of messages) {
    for (const part of parts) if (part.type === 'result' && !part.failed) done.add(part.callId);
  }
  return done;
};

/** What a tool wants kept is a text; one that throws, or says something else, wants nothing. */
const keptText = (keep: () => unknown): string => {
  const said = attemptNow(keep);
  return said.kind === 'done' && typeof said.value === 'string' ? said.value : '';
};

/** Of the tool's last call that ended well, or of the last summary, whichever is newer. */
const keptOf = (messages: readonly Message[], { name, keep }: Tool, done: ReadonlySet<string>): string => {
  const isCall = (part: Part): part is CallPart =>
    part.type === 'call' && part.tool === name && done.has(part.callId);
  for (const message of messages.toReversed()) {
    const call = message.parts.filter(isCall).at(-1);
    if (call !== undefined) return keptText(() => keep?.(call.input));
    const before = keptBefore(message, name);
    if (before !== undefined) return before;
  }
  return '';
};

/** The summary with what is kept of the messages that it replaces. */
export const withKept = (
  summary: string,
  messages: readonly Message[],
  { tools, turn, limitBytes }: KeepingNeeds,
): string => {
  const done = doneCalls(messages);
  const request = turn === 'running' ? [{ name: REQUEST, text: requestIn(messages, limitBytes) }] : [];
  const lists = [...tools]
    .filter(({ keep }) => keep !== undefined)
    .map((tool) => ({ name: tool.name, text: keptOf(messages, tool, done) }));
  const kept = [...request, ...lists]
    .filter(({ text }) => text.trim() !== '')
    .map(({ name, text }) => `${headingOf(name)}\n${text.trim()}`);
  return [summary, ...kept].join('\n\n');
};
