import { demandDataUrl } from './pictures.js';
import {
  demand,
  demandArguments,
  demandFields,
  demandList,
  demandObject,
  demandText,
  faultOf,
  type Loose,
} from './strict.js';

/**
 * What Chat Completions servers reject, taken together: the strictest of them decides.
 *
 * 1. The system message first, then user and assistant in turn; the last is the user's, or a result.
 * 2. Each call is answered once, by tool messages right behind it; no tool message answers anything else.
 * 3. Thoughts go back only to the model that had them, word for word.
 * 4. Pictures are the user's alone: no result holds one.
 */

const BODY = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'stream',
  'stream_options',
  'max_tokens',
];

/** Ollama takes no GIF. */
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/webp'];

type Thoughts = ReadonlySet<string>;

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

const checkCalls = (calls: unknown, seen: Set<string>, at: string): readonly string[] => {
  if (calls === undefined) return [];
  demandList(calls, at);
  return calls.map((call, index) => {
    const here = `${at}.${index}`;
    demandFields(call, ['id', 'type', 'function'], here);
    demandText(call.id, `${here}.id`);
    demand(!seen.has(call.id), `${here}.id: ${call.id} is the id of another call, too`);
    seen.add(call.id);
    demand(call.type === 'function', `${here}.type: should be function`);
    demandObject(call.function, `${here}.function`);
    demandFields(call.function, ['name', 'arguments'], `${here}.function`);
    demandText(call.function.name, `${here}.function.name`);
    demandArguments(call.function.arguments, `${here}.function.arguments`);
    return call.id;
  });
};

const checkAssistant = (message: Loose, seen: Set<string>, thoughts: Thoughts, at: string) => {
  demandFields(message, ['role', 'content', 'tool_calls', 'reasoning_content'], at);
  const calls = checkCalls(message.tool_calls, seen, `${at}.tool_calls`);
  if (message.content !== null || calls.length === 0) demandText(message.content, `${at}.content`);
  const thought = message.reasoning_content;
  demand(
    thought === undefined || (typeof thought === 'string' && thoughts.has(thought)),
    `${at}.reasoning_content: not a thought of this model`,
  );
  return calls;
};

const checkMessages = (messages: readonly Loose[], thoughts: Thoughts): void => {
  const seen = new Set<string>();
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
      demandFields(message, ['role', 'content'], at);
      checkContent(message.content, `${at}.content`);
    } else {
      demand(role === 'assistant', `${at}.role: ${role}`);
      demand(
        before === 'user' || before === 'tool',
        `${at}: an assistant message without a question`,
      );
      open = [...checkAssistant(message, seen, thoughts, at)];
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

/** What is wrong with a request body, or null. `thoughts` are those that the server gave as this model. */
export const findFault = (body: unknown, thoughts: Thoughts = new Set()): string | null =>
  faultOf(() => {
    demandObject(body, 'body');
    demandFields(body, BODY, 'body');
    demandText(body.model, 'model');
    demand(body.stream === true, 'stream: this server only streams');
    demandObject(body.stream_options, 'stream_options');
    demand(
      body.stream_options.include_usage === true,
      'stream_options.include_usage: nobody counts tokens',
    );
    demand(Number.isInteger(body.max_tokens), 'max_tokens: should be a whole number');
    checkTools(body);
    demandList(body.messages, 'messages');
    checkMessages(body.messages, thoughts);
  });
