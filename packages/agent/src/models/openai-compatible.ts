/** Chat Completions, as OpenAI once defined it and as Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and others speak it. */

import type { LanguageModelV3StreamPart, LanguageModelV3Usage } from '@ai-sdk/provider';
import type { StopReason } from '../machine/event.js';
import type { Model } from '../ports/model.js';
import type { EditEvent } from './http.js';
import { asCount, asText, isObject, type Loose, listIn, objectIn } from './untyped-json.js';
import {
  type AdapterOptions,
  brokenOff,
  errorSourceOf,
  type FromEvent,
  fetchOf,
  overloaded,
  type Wire,
  windowFull,
  wireModel,
} from './wire-model.js';

const stopReasons: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  eos: 'end',
  length: 'maxTokens',
  tool_calls: 'toolUse',
  function_call: 'toolUse',
  content_filter: 'contentFilter',
  /** Mistral: the end of the window. */
  model_length: 'maxTokens',
  /** z.ai. */
  sensitive: 'contentFilter',
};

const stopReasonOf = (raw: string | undefined): StopReason | Error | null => {
  switch (raw) {
    // A gateway (z.ai: `network_error`) lost the provider behind it in the middle of the reply.
    case 'error':
    case 'network_error':
      return brokenOff();
    // DeepSeek.
    case 'insufficient_system_resource':
      return overloaded(raw);
    // z.ai.
    case 'model_context_window_exceeded':
      return windowFull();
    default:
      return raw === undefined ? null : (stopReasons[raw] ?? 'other');
  }
};

/** Marks thoughts that go back; the package reads it under this key. */
const METADATA = { openaiCompatible: { sentAs: 'reasoning_content' } };

/** A server that calls thoughts `reasoning_content` wants them back under that name; others would refuse the field. */
const fromEvent = (event: Loose): FromEvent => {
  const delta = objectIn(objectIn(objectIn(event, 'choices'), 0), 'delta');
  const refusal = asText(delta.refusal);
  if (refusal !== null) return { refusal };
  const details = listIn(delta.reasoning_details);
  if (details.length > 0) return { details };
  return asText(delta.reasoning_content) === null ? {} : { thoughtMetadata: METADATA };
};

/** xAI leaves thoughts out of `completion_tokens`, but not out of `total_tokens`. */
const outputTokens = ({ raw }: LanguageModelV3Usage): number =>
  asCount(objectIn({ raw }, 'raw').total_tokens) - asCount(objectIn({ raw }, 'raw').prompt_tokens);

/** The package reports an error if a stream ends without a reason; gather-reply.ts decides whether it broke off. */
const isMissingReason = (part: LanguageModelV3StreamPart): boolean =>
  part.type === 'error' &&
  /ended without a finish reason/.test(asText(objectIn(part, 'error').message) ?? '');

export const compatibleModel = (options: AdapterOptions): Model => {
  const { name, modelId, baseUrl, apiKey } = options;
  const wire: Wire = {
    provider: errorSourceOf(options, baseUrl),
    open: async () => {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const open = createOpenAICompatible({
        name: 'compatible',
        baseURL: baseUrl,
        ...(apiKey === undefined ? {} : { apiKey }),
        includeUsage: true,
        fetch: fetchOf(options),
      });
      return open(name);
    },
    // Ollama takes PNG, JPEG and WebP only.
    dialect: { modelId, marksCache: false, keepsCut: false, refusesGif: true },
    options: ({ effort }) =>
      effort === undefined || options.facts.effort === 'none'
        ? {}
        : { providerOptions: { openaiCompatible: { reasoningEffort: effort } } },
    stopReason: ({ raw }) => stopReasonOf(raw),
    fromEvent,
    editEvents: editChatEvents,
    outputTokens,
    passOver: () => isMissingReason,
  };
  return wireModel(wire, options);
};

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
const editChatEvents = (): EditEvent => {
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
