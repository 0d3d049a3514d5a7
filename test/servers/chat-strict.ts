import { demandDataUrl } from './pictures.js';
import {
  checkHabits,
  demand,
  demandArguments,
  demandFields,
  demandList,
  demandObject,
  demandText,
  faultOf,
  type Habits,
  type Loose,
} from './strict.js';

/**
 * What Chat Completions servers reject, taken together: the strictest of them decides.
 *
 * 1. The system message first, then user and assistant in turn; the last is the user's, or a result.
 * 2. Each call is answered once, by tool messages right behind it; no tool message answers anything else.
 * 3. Thoughts go back only to the model that had them, word for word.
 * 4. Pictures are the user's alone: no result holds one.
 * 5. The user does not speak right behind a result (Mistral, and templates of vLLM).
 *
 * What only some of them reject is a habit.
 */

/** Where a server has the thoughts of its model: in a field, in the content, or as a signature of calls. */
export type ThoughtForm =
  | 'reasoning_content'
  | 'reasoning'
  | 'reasoning_details'
  | 'content'
  | 'extra_content';

export type ChatHabits = Habits & {
  /** Default: `reasoning_content`. */
  readonly thoughts?: ThoughtForm;
  /** `demanded`: they must come back, and be empty where there are none. `refused`: they must not. */
  readonly back?: 'demanded' | 'refused';
};

/** What a server has said as a model: the texts of its thoughts, and with which secret, by call. */
export type Said = {
  readonly thoughts: Set<string>;
  readonly secrets: Map<string, { readonly text: string; readonly secret: string }>;
};

export const saidNothing = (): Said => ({ thoughts: new Set(), secrets: new Map() });

const BODY = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'stream',
  'stream_options',
  'max_tokens',
  'reasoning_effort',
];

/** Ollama takes no GIF. */
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/webp'];

const checkContent = (content: unknown, at: string): void => {
  if (typeof content === 'string') {
    demandText(content, at);
    return;
  }
  demandList(content, at);
  for (const [index, part] of content.entries()) {
    const here = `${at}.${index}`;
    if (part.type === 'image_url') {
      demandFields(part, ['type', 'image_url'], here);
      demandObject(part.image_url, `${here}.image_url`);
      demandFields(part.image_url, ['url', 'detail'], `${here}.image_url`);
      demandDataUrl(part.image_url.url, IMAGE_TYPES, `${here}.image_url.url`);
      continue;
    }
    demandFields(part, ['type', 'text'], here);
    demand(part.type === 'text', `${here}.type: ${part.type}`);
    demandText(part.text, `${here}.text`);
  }
};

type Seen = { readonly ids: Set<string>; readonly said: Said; readonly habits: ChatHabits };

const checkCalls = (calls: unknown, { ids, habits }: Seen, at: string): readonly string[] => {
  if (calls === undefined) return [];
  demandList(calls, at);
  return calls.map((call, index) => {
    const here = `${at}.${index}`;
    const signature = habits.thoughts === 'extra_content' ? ['extra_content'] : [];
    demandFields(call, ['id', 'type', 'function', ...signature], here);
    demandText(call.id, `${here}.id`);
    demand(!ids.has(call.id), `${here}.id: ${call.id} is the id of another call, too`);
    ids.add(call.id);
    demand(call.type === 'function', `${here}.type: should be function`);
    demandObject(call.function, `${here}.function`);
    demandFields(call.function, ['name', 'arguments'], `${here}.function`);
    demandText(call.function.name, `${here}.function.name`);
    demandArguments(call.function.arguments, `${here}.function.arguments`);
    return call.id;
  });
};

/** The thought in a message, and the secret with it, as far as the form has them. */
const thoughtIn = (
  message: Loose,
  form: ThoughtForm,
): { readonly text?: unknown; readonly secret?: unknown } => {
  const [first] = Array.isArray(message.content) ? message.content : [];
  const [call] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const [detail] = Array.isArray(message.reasoning_details) ? message.reasoning_details : [];
  switch (form) {
    case 'content':
      return first?.type === 'thinking' ? { text: first.thinking?.[0]?.text } : {};
    case 'extra_content':
      return { secret: call?.extra_content?.google?.thought_signature };
    case 'reasoning_details':
      return { text: detail?.text, secret: detail?.signature };
    case 'reasoning':
    case 'reasoning_content':
      return message[form] === undefined ? {} : { text: message[form] };
    default:
      return form satisfies never;
  }
};

const checkThought = (message: Loose, calls: readonly string[], seen: Seen, at: string): void => {
  const { said, habits } = seen;
  const form = habits.thoughts ?? 'reasoning_content';
  const { text, secret } = thoughtIn(message, form);
  const isKnown = text === undefined || text === '' || said.thoughts.has(String(text));
  demand(isKnown, `${at}.${form}: not a thought of this model`);
  const given = said.secrets.get(calls[0] ?? '');
  if (habits.back !== 'demanded') return;
  const missing = `Missing \`${form}\` field in the assistant message at ${at}`;
  if (given === undefined) {
    if (form === 'reasoning' || form === 'reasoning_content') demand(text !== undefined, missing);
    return;
  }
  if (form !== 'extra_content') demand(text === given.text, missing);
  if (form === 'extra_content' || form === 'reasoning_details')
    demand(secret === given.secret, missing);
};

const FIELDS_OF: Readonly<Record<ThoughtForm, readonly string[]>> = {
  reasoning_content: ['reasoning_content'],
  reasoning: ['reasoning'],
  reasoning_details: ['reasoning', 'reasoning_details'],
  content: [],
  extra_content: [],
};

const checkAssistant = (message: Loose, seen: Seen, at: string) => {
  const { thoughts = 'reasoning_content', back } = seen.habits;
  const own = back === 'refused' ? [] : FIELDS_OF[thoughts];
  demandFields(message, ['role', 'content', 'tool_calls', ...own], at);
  const calls = checkCalls(message.tool_calls, seen, `${at}.tool_calls`);
  const isList = thoughts === 'content' && Array.isArray(message.content);
  if (!isList && (message.content !== null || calls.length === 0))
    demandText(message.content, `${at}.content`);
  checkThought(message, calls, seen, at);
  return calls;
};

const checkMessages = (messages: readonly Loose[], seen: Seen): void => {
  let open: string[] = [];
  let before = 'system';
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}`;
    const { role } = message;
    if (role === 'tool') {
      demandFields(message, ['role', 'tool_call_id', 'content'], at);
      demand(
        open.includes(String(message.tool_call_id)),
        `${at}: answers no call: ${message.tool_call_id}`,
      );
      demand(
        typeof message.content === 'string' && message.content !== '',
        `${at}.content: is missing`,
      );
      open = open.filter((id) => id !== message.tool_call_id);
      before = 'tool';
      continue;
    }
    demand(
      open.length === 0,
      `${at}: calls without an answer right behind them: ${open.join(', ')}`,
    );
    if (role === 'system') {
      demand(index === 0, `${at}: the system message comes first`);
      demandText(message.content, `${at}.content`);
    } else if (role === 'user') {
      demand(before !== 'user', `${at}: two user messages in a row`);
      demand(before !== 'tool', `${at}: Unexpected role 'user' after role 'tool'`);
      demandFields(message, ['role', 'content'], at);
      checkContent(message.content, `${at}.content`);
    } else {
      demand(role === 'assistant', `${at}.role: ${role}`);
      demand(
        before === 'user' || before === 'tool',
        `${at}: an assistant message without a question`,
      );
      open = [...checkAssistant(message, seen, at)];
    }
    before = String(role);
  }
  demand(open.length === 0, `calls without an answer: ${open.join(', ')}`);
  demand(before === 'user' || before === 'tool', 'the last message is the user’s, or a result');
};

const checkTools = ({ tools, tool_choice: choice }: Loose): void => {
  demand(tools !== undefined || choice === undefined, 'tool_choice: there are no tools');
  if (tools === undefined) return;
  demandList(tools, 'tools');
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}`;
    demandFields(tool, ['type', 'function'], at);
    demand(tool.type === 'function', `${at}.type: should be function`);
    demandObject(tool.function, `${at}.function`);
    demandFields(tool.function, ['name', 'description', 'parameters'], `${at}.function`);
    demandText(tool.function.name, `${at}.function.name`);
    demandObject(tool.function.parameters, `${at}.function.parameters`);
  }
  demand(choice === undefined || choice === 'auto' || choice === 'none', `tool_choice: ${choice}`);
};

const checkOptions = (body: Loose, refuses: readonly string[]): void => {
  const length = refuses.includes('max_tokens') ? 'max_completion_tokens' : 'max_tokens';
  demandFields(body, [...BODY, length], 'body');
  demand(Number.isInteger(body[length]), `${length}: should be a whole number`);
  if (refuses.includes('stream_options')) return;
  demandObject(body.stream_options, 'stream_options');
  demand(
    body.stream_options.include_usage === true,
    'stream_options.include_usage: nobody counts tokens',
  );
};

/** What is wrong with a request body, or null. `said`: as this model. */
export const findFault = (
  body: unknown,
  said: Said = saidNothing(),
  habits: ChatHabits = {},
): string | null =>
  faultOf(() => {
    demandObject(body, 'body');
    demandText(body.model, 'model');
    demand(body.stream === true, 'stream: this server only streams');
    checkHabits(body, habits);
    checkOptions(body, habits.refuses ?? []);
    checkTools(body);
    demandList(body.messages, 'messages');
    checkMessages(body.messages, { ids: new Set(), said, habits });
  });
