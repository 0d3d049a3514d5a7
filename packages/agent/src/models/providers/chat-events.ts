import type { EditEvent } from '../http/edit-event-lines.js';
import { asText, isObject, type Loose, listIn, objectIn } from '../untyped-json.js';

/**
 * Events of Chat Completions as some servers send them, in the form that the package reads.
 *
 * 1. Arguments of a call that are a JSON object become text.
 * 2. A call without a name belongs to a tool of the gateway, which ran it: it is left out, with all its pieces.
 * 3. Thoughts that stand as `<think>…</think>` at the beginning of the content become reasoning. They are not sent back.
 */

const THINK = '<think>';
const END = '</think>';

/** Length of the longest beginning of `mark` with which the text ends. */
const heldLength = (text: string, mark: string): number => {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (mark.startsWith(text.slice(-length))) return length;
  return 0;
};

type Split = { readonly thought: string; readonly text: string };

/** Divides the content of a stream, piece by piece. Characters that may be half of a mark wait for the next piece. */
const divideThoughts = (): ((piece: string, isLast: boolean) => Split) => {
  let place: 'start' | 'thought' | 'gap' | 'text' = 'start';
  let held = '';
  return (piece, isLast) => {
    let rest = held + piece;
    let thought = '';
    held = '';
    if (place === 'start') {
      const begun = rest.trimStart();
      if (begun.startsWith(THINK)) {
        place = 'thought';
        rest = begun.slice(THINK.length);
      } else if (!isLast && THINK.startsWith(begun)) {
        held = rest;
        return { thought, text: '' };
      } else place = 'text';
    }
    if (place === 'thought') {
      const end = rest.indexOf(END);
      const length = end === -1 ? rest.length - (isLast ? 0 : heldLength(rest, END)) : end;
      thought = rest.slice(0, length);
      if (end === -1) held = rest.slice(length);
      else place = 'gap';
      rest = end === -1 ? '' : rest.slice(end + END.length);
    }
    if (place === 'gap') {
      rest = rest.trimStart();
      if (rest !== '') place = 'text';
    }
    return { thought, text: rest };
  };
};

/** Rule 1. */
const withText = (call: Loose): Loose => {
  const called = objectIn(call, 'function');
  return isObject(called.arguments)
    ? { ...call, function: { ...called, arguments: JSON.stringify(called.arguments) } }
    : call;
};

/** Rule 2. A call is known by its index. Where no name was sent at all, it may still come. */
const leaveOutNameless = (): ((call: Loose) => boolean) => {
  const nameless = new Set<unknown>();
  const named = new Set<unknown>();
  return (call) => {
    const { name } = objectIn(call, 'function');
    if (asText(name) !== null) named.add(call.index);
    else if (name === '' && !named.has(call.index)) nameless.add(call.index);
    return named.has(call.index) || !nameless.has(call.index);
  };
};

/** For the events of one reply. */
export const editChatEvents = (): EditEvent => {
  const divide = divideThoughts();
  const isNamed = leaveOutNameless();
  return (event) => {
    const [choice] = listIn(event.choices);
    if (choice === undefined) return event;
    const delta = objectIn(choice, 'delta');
    const { content, reasoning, tool_calls: calls } = delta;
    const isLast = asText(choice.finish_reason) !== null || listIn(calls).length > 0;
    const { thought, text } =
      typeof content === 'string' || isLast
        ? divide(typeof content === 'string' ? content : '', isLast)
        : { thought: '', text: '' };
    const isSame = (content ?? '') === text || (content !== null && typeof content === 'object');
    const edited = {
      ...delta,
      ...(isSame ? {} : { content: text }),
      ...(thought === '' ? {} : { reasoning: `${asText(reasoning) ?? ''}${thought}` }),
      ...(Array.isArray(calls) ? { tool_calls: listIn(calls).filter(isNamed).map(withText) } : {}),
    };
    return isSame && thought === '' && !Array.isArray(calls)
      ? event
      : { ...event, choices: [{ ...choice, delta: edited }] };
  };
};
