import { relative } from 'node:path';
import type { JudgedCall } from '../agent/call.js';
import { messagesOf } from '../agent/conversation.js';
import type { JsonObject } from '../agent/message.js';
import type { State } from '../agent/state.js';
import type { Stepped } from '../needs.js';

const wordsIn = (input: JsonObject): readonly string[] =>
  Object.values(input).filter((value) => typeof value === 'string');

/** What a call is about, in a few words: the command, or the files, or what it said itself. */
export const titleOf = (call: JudgedCall, workspace: string): string => {
  const { argv, paths, shape } = call.facts;
  if (argv.length > 0) return argv.join(' ');
  const near = paths.map((path) => relative(workspace, path)).filter((path) => path !== '');
  const wanted = wordsIn(call.input).filter((word) => !near.includes(word) && !paths.includes(word));
  const said = call.traits.mutating && near.length > 0 ? near : [...wanted.slice(0, 1), ...near];
  return said.length > 0 ? said.join(' ') : shape;
};

/** The words of a call in the conversation: all there is of one that ended in the step that opened the session again. */
const titleInConversation = (state: State, callId: string): string => {
  for (const message of messagesOf(state.session.conversation).toReversed()) {
    for (const part of message.parts) {
      if (part.type === 'call' && part.callId === callId) return wordsIn(part.input).slice(0, 1).join(' ');
    }
  }
  return '';
};

/** The calls of a session as they are asked for, so that later words about them can say what they are about. */
export type Calls = {
  see(stepped: Stepped): void;
  get(callId: string): JudgedCall | undefined;
  title(callId: string, state: State): string;
};

export const createCalls = (workspace: string): Calls => {
  const calls = new Map<string, JudgedCall>();
  return {
    see({ event, state }) {
      if (event.type === 'LlmCompleted') for (const call of event.calls) calls.set(call.callId, call);
      if (event.type === 'Resumed' && state.name === 'ExecutingTools') {
        for (const { judged } of state.calls) calls.set(judged.callId, judged);
      }
    },
    get: (callId) => calls.get(callId),
    title(callId, state) {
      const call = calls.get(callId);
      return call === undefined ? titleInConversation(state, callId) : titleOf(call, workspace);
    },
  };
};
