import type { CallPart, Message } from '../../machine/message.js';
import type { Tool } from '../../ports/tool.js';
import { attemptNow } from '../attempt.js';
import { cutText } from '../tools/truncate-output.js';
import { keptSkills, withoutSkill } from './preserved-skills.js';

/**
 * Text that is kept verbatim when a summary replaces messages.
 *
 * 1. During a turn: the user's request. At any time: skills in use, and the text that tools want to keep (`Tool.keep`).
 * 2. It stands below the summary, each piece under its own heading line, so that the next summary finds it again.
 */

export type KeepingNeeds = {
  readonly tools: Iterable<Tool>;
  readonly turn: 'running' | 'over';
  /** Limit for the user's words. */
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

/** The text kept under this name by an earlier summary; undefined if the message has none. */
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

/** The user's words in the current turn. A message that answers no call starts a turn. */
const requestIn = (messages: readonly Message[], limitBytes: number): string => {
  const said: string[] = [];
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') continue;
    said.unshift(...message.parts.filter(isText('user')).map((part) => withoutSkill(textOf(part))));
    if (message.parts[0]?.type === 'result') continue;
    said.unshift(keptBefore(message, REQUEST) ?? '');
    break;
  }
  return cutWords(said.filter((text) => text !== '').join('\n\n'), limitBytes);
};

/** Ids of successful calls. */
const doneCalls = (messages: readonly Message[]): ReadonlySet<string> => {
  const done = new Set<string>();
  for (const { parts } of messages) {
    for (const part of parts) if (part.type === 'result' && !part.failed) done.add(part.callId);
  }
  return done;
};

/** The text that a tool wants to keep; empty if it throws or returns something else. */
const keptText = (keep: () => unknown): string => {
  const said = attemptNow(keep);
  return said.kind === 'done' && typeof said.value === 'string' ? said.value : '';
};

/** The text of the tool's last successful call, or of the last summary, whichever is newer. */
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

/** The summary, followed by the text to keep from the messages that it replaces. */
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
  const kept = [...request, ...keptSkills(messages, limitBytes), ...lists]
    .filter(({ text }) => text.trim() !== '')
    .map(({ name, text }) => `${headingOf(name)}\n${text.trim()}`);
  return [summary, ...kept].join('\n\n');
};
