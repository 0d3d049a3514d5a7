import { demandDataUrl, demandWeight } from './pictures.js';
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
 * What OpenAI's Responses API rejects when it keeps nothing, and a little more.
 *
 * 1. Nothing is stored, so nothing is referred to; what a model thinks is asked for, encrypted.
 * 2. Encrypted thoughts hold for the model that had them, and stand before what they led to.
 * 3. Each call has exactly one output, behind it and before anything that is said.
 * 4. Pictures are the user's, or stand in an output; no request has too many bytes.
 */

const BODY = [
  'model',
  'input',
  'tools',
  'tool_choice',
  'stream',
  'store',
  'include',
  'reasoning',
  'max_output_tokens',
];

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const REQUEST_BYTES_MAX = 50 * 1024 * 1024;

type Seen = {
  readonly open: Set<string>;
  readonly called: Set<string>;
  readonly secrets: Secrets;
  readonly habits: ResponsesHabits;
  thought: boolean;
};

/** By model: what the server gave, encrypted. */
export type Secrets = ReadonlySet<string>;

/** What the user says or shows; of an output, too. */
const checkGiven = (part: Loose, at: string): void => {
  if (part.type === 'input_image') {
    demandFields(part, ['type', 'image_url', 'detail'], at);
    demandDataUrl(part.image_url, IMAGE_TYPES, `${at}.image_url`);
    return;
  }
  demandFields(part, ['type', 'text'], at);
  demand(part.type === 'input_text', `${at}.type: ${part.type} of user`);
  demandText(part.text, `${at}.text`);
};

const checkSaid = (item: Loose, at: string): void => {
  const { role, content } = item;
  demandFields(item, ['role', 'content', 'id', 'phase'], at);
  demand(
    ['developer', 'system', 'user', 'assistant'].includes(String(role)),
    `${at}.role: ${role}`,
  );
  if (role === 'developer' || role === 'system') {
    demandText(content, `${at}.content`);
    return;
  }
  demandList(content, `${at}.content`);
  for (const [index, part] of content.entries()) {
    const here = `${at}.content.${index}`;
    if (role === 'user') {
      checkGiven(part, here);
      continue;
    }
    demandFields(part, ['type', 'text'], here);
    demand(part.type === 'output_text', `${here}.type: ${part.type} of ${role}`);
    demandText(part.text, `${here}.text`);
  }
  demand(
    item.id === undefined || /^msg_/.test(String(item.id)),
    `${at}.id: expected an id that begins with msg`,
  );
};

/** `words`: the thoughts of its model, in place of what is encrypted. */
export type ResponsesHabits = Habits & { readonly thoughts?: 'words' };

const checkThought = (item: Loose, { secrets, habits }: Seen, at: string): void => {
  if (habits.thoughts === 'words') {
    demandFields(item, ['type', 'id', 'summary', 'content'], at);
    demandList(item.content, `${at}.content`);
    const [{ type, text } = {}] = item.content;
    demand(type === 'reasoning_text' && secrets.has(String(text)), `${at}: not its thought`);
    return;
  }
  demandFields(item, ['type', 'id', 'encrypted_content', 'summary'], at);
  demand(Array.isArray(item.summary), `${at}.summary: is missing`);
  demand(
    typeof item.encrypted_content === 'string' && secrets.has(item.encrypted_content),
    `${at}: The encrypted content could not be verified.`,
  );
};

const checkCall = (item: Loose, seen: Seen, at: string): void => {
  demandFields(item, ['type', 'call_id', 'name', 'arguments', 'id'], at);
  demandText(item.call_id, `${at}.call_id`);
  demand(item.call_id.length <= 64, `${at}.call_id: string too long`);
  demand(
    !seen.called.has(item.call_id),
    `${at}.call_id: ${item.call_id} is the id of another call, too`,
  );
  seen.called.add(item.call_id);
  seen.open.add(item.call_id);
  demandText(item.name, `${at}.name`);
  demandArguments(item.arguments, `${at}.arguments`);
};

const checkOutput = (item: Loose, seen: Seen, at: string): void => {
  demandFields(item, ['type', 'call_id', 'output'], at);
  const id = String(item.call_id);
  demand(seen.open.delete(id), `No tool call found for function call output with call_id ${id}.`);
  if (typeof item.output === 'string') {
    demandText(item.output, `${at}.output`);
    return;
  }
  demandList(item.output, `${at}.output`);
  for (const [index, part] of item.output.entries()) checkGiven(part, `${at}.output.${index}`);
};

const checkItem = (item: Loose, seen: Seen, at: string): void => {
  const ofModel =
    item.type === 'function_call' || item.type === 'reasoning' || item.role === 'assistant';
  demand(!seen.thought || ofModel, `${at}: a 'reasoning' item without what it led to`);
  seen.thought = item.type === 'reasoning';
  if (item.type === 'reasoning') checkThought(item, seen, at);
  else if (item.type === 'function_call') checkCall(item, seen, at);
  else if (item.type === 'function_call_output') checkOutput(item, seen, at);
  else {
    demand(
      item.type === undefined || item.type === 'message',
      `${at}.type: ${item.type} (nothing is stored)`,
    );
    demand(
      seen.open.size === 0,
      `No tool output found for function call ${[...seen.open].join(', ')}.`,
    );
    checkSaid(item, at);
  }
};

const checkTools = ({ tools, tool_choice: choice }: Loose): void => {
  demand(tools !== undefined || choice === undefined, 'tool_choice: there are no tools');
  if (tools === undefined) return;
  demandList(tools, 'tools');
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}`;
    demandFields(tool, ['type', 'name', 'description', 'parameters', 'strict'], at);
    demand(tool.type === 'function', `${at}.type: should be function`);
    demandText(tool.name, `${at}.name`);
    demandObject(tool.parameters, `${at}.parameters`);
    demand(
      tool.strict === false,
      `${at}.strict: Invalid schema for function: strict wants every field required`,
    );
  }
  demand(choice === undefined || choice === 'auto' || choice === 'none', `tool_choice: ${choice}`);
};

/** What is wrong with a request body, or null. */
export const findFault = (
  body: unknown,
  secrets: Secrets = new Set(),
  habits: ResponsesHabits = {},
): string | null =>
  faultOf(() => {
    demandObject(body, 'body');
    checkHabits(body, habits);
    demandFields(body, BODY, 'body');
    demandWeight(body, REQUEST_BYTES_MAX);
    demandText(body.model, 'model');
    demand(body.stream === true, 'stream: this server only streams');
    demand(body.store === false, 'store: this server keeps nothing');
    demand(Number.isInteger(body.max_output_tokens), 'max_output_tokens: should be a whole number');
    const include = Array.isArray(body.include) ? body.include : [];
    demand(
      include.includes('reasoning.encrypted_content'),
      'include: encrypted thoughts are not asked for',
    );
    checkTools(body);
    demandList(body.input, 'input');
    const seen: Seen = { open: new Set(), called: new Set(), secrets, habits, thought: false };
    for (const [index, item] of body.input.entries()) checkItem(item, seen, `input.${index}`);
    demand(
      seen.open.size === 0,
      `No tool output found for function call ${[...seen.open].join(', ')}.`,
    );
    const last = body.input.at(-1);
    demand(
      last?.role === 'user' || last?.type === 'function_call_output',
      'input: the last word is the user’s',
    );
  });
