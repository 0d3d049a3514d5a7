import { demandPicture, demandWeight } from './pictures.js';
import { checkHabits, demand, faultOf, type Habits, isObject, type Loose } from './strict.js';

/**
 * What Anthropic's Messages API rejects, and a little more: everything that a well-behaved client never sends.
 *
 * 1. Roles alternate from a user message to a user message; no content is empty.
 * 2. Each call of an assistant message has exactly one result in the next message, before any text.
 * 3. Calls, results and a choice of tools only with tools.
 * 4. No field that the wire does not know.
 * 5. Pictures are the user's, or stand in a result that is no error; no request has too many bytes.
 */

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  body: [
    'model',
    'max_tokens',
    'messages',
    'system',
    'tools',
    'tool_choice',
    'stream',
    'thinking',
    'output_config',
    'temperature',
    'top_p',
    'top_k',
    'stop_sequences',
    'metadata',
  ],
  message: ['role', 'content'],
  tool: ['name', 'description', 'input_schema', 'cache_control', 'eager_input_streaming', 'strict'],
  text: ['type', 'text', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  image: ['type', 'source', 'cache_control'],
};

const TYPES_BY_ROLE: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'tool_result'],
  assistant: ['text', 'tool_use', 'thinking', 'redacted_thinking'],
};

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
/** Of one picture, as base64. */
const IMAGE_BYTES_MAX = 5 * 1024 * 1024;
const IMAGES_MAX = 100;
const REQUEST_BYTES_MAX = 32 * 1024 * 1024;

const checkFields = (value: Loose, kind: string, at: string): void => {
  const extra = Object.keys(value).find((key) => !FIELDS[kind]?.includes(key));
  demand(extra === undefined, `${at}.${extra}: Extra inputs are not permitted`);
};

/** Stands for the signature of a thought that has none. */
export const unsigned = (thinking: unknown): string => `unsigned ${thinking}`;

const isBlank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === '';

type Seen = {
  readonly callIds: Set<string>;
  markers: number;
  images: number;
  readonly thoughts: ReadonlyMap<string, string>;
};

const checkMarker = (block: Loose, seen: Seen, at: string): void => {
  const marker = block.cache_control;
  if (marker === undefined) return;
  demand(isObject(marker) && marker.type === 'ephemeral', `${at}.cache_control: must be ephemeral`);
  seen.markers++;
  demand(
    seen.markers <= 4,
    `A maximum of 4 blocks with cache_control may be provided. Found ${seen.markers}.`,
  );
};

const checkCall = (block: Loose, seen: Seen, at: string): void => {
  const { id, name, input } = block;
  demand(
    typeof id === 'string' && /^[a-zA-Z0-9_-]+$/.test(id),
    `${at}.id: String should match pattern`,
  );
  demand(!seen.callIds.has(id), `${at}: \`tool_use\` ids must be unique: ${id}`);
  seen.callIds.add(id);
  demand(
    typeof name === 'string' && /^[a-zA-Z0-9_-]{1,128}$/.test(name),
    `${at}.name: String should match pattern`,
  );
  demand(isObject(input), `${at}.input: Input should be a valid dictionary`);
};

const checkImage = ({ source }: Loose, seen: Seen, at: string): void => {
  demand(isObject(source), `${at}.source: Field required`);
  const { type, media_type: mediaType, data: base64, ...rest } = source;
  demand(Object.keys(rest).length === 0, `${at}.source: Extra inputs are not permitted`);
  demand(type === 'base64', `${at}.source.type: this server takes base64`);
  demandPicture(mediaType, base64, IMAGE_TYPES, `${at}.source.base64`);
  demand(
    String(base64).length <= IMAGE_BYTES_MAX,
    `${at}.source.base64: image exceeds 5 MB maximum`,
  );
  seen.images++;
  demand(seen.images <= IMAGES_MAX, `Too many images: ${seen.images} > ${IMAGES_MAX}`);
};

const checkResult = (block: Loose, seen: Seen, at: string): void => {
  const { content, is_error: isError, tool_use_id: callId } = block;
  demand(typeof callId === 'string' && callId !== '', `${at}.tool_use_id: Field required`);
  demand(
    isError === undefined || typeof isError === 'boolean',
    `${at}.is_error: should be a boolean`,
  );
  if (Array.isArray(content)) {
    for (const [index, part] of content.entries()) {
      const here = `${at}.content.${index}`;
      demand(
        isObject(part) && part.type !== 'tool_result',
        `${here}: should be a text or an image`,
      );
      demand(
        !(isError === true && part.type !== 'text'),
        `${here}: all content must be text if is_error`,
      );
      checkBlock(part, 'user', seen, here);
    }
    return;
  }
  demand(typeof content === 'string', `${at}.content: should be a text or a list`);
  demand(
    !(isError === true && isBlank(content)),
    `${at}: content cannot be empty if is_error is true`,
  );
};

function checkBlock(block: unknown, role: string, seen: Seen, at: string): void {
  demand(isObject(block), `${at}: Input should be a valid dictionary`);
  const { type } = block;
  demand(
    typeof type === 'string' && TYPES_BY_ROLE[role]?.includes(type) === true,
    `${at}.type: ${type} in ${role}`,
  );
  checkFields(block, type, at);
  checkMarker(block, seen, at);
  if (type === 'text') demand(!isBlank(block.text), `${at}: text content blocks must be non-empty`);
  if (type === 'tool_use') checkCall(block, seen, at);
  if (type === 'image') checkImage(block, seen, at);
  if (type === 'tool_result') checkResult(block, seen, at);
  if (type === 'thinking') {
    const known = seen.thoughts.get(String(block.signature || unsigned(block.thinking)));
    demand(
      known !== undefined && known === block.thinking,
      `${at}: Invalid \`signature\` in \`thinking\` block`,
    );
  }
}

type Message = { readonly role: string; readonly blocks: readonly Loose[] };

const readMessage = (value: unknown, seen: Seen, at: string): Message => {
  demand(isObject(value), `${at}: Input should be a valid dictionary`);
  checkFields(value, 'message', at);
  const { role, content } = value;
  demand(role === 'user' || role === 'assistant', `${at}.role: should be user or assistant`);
  if (typeof content === 'string') {
    demand(!isBlank(content), `${at}: text content must be non-empty`);
    return { role, blocks: [{ type: 'text', text: content }] };
  }
  demand(Array.isArray(content), `${at}.content: Field required`);
  demand(content.length > 0, `${at}: all messages must have non-empty content`);
  content.forEach(
    (block: unknown, index) => void checkBlock(block, role, seen, `${at}.content.${index}`),
  );
  return { role, blocks: content };
};

/** A call whose thought was not signed wants it back. */
const checkThoughtThere = ({ blocks }: Message, { thoughts }: Seen, at: string): void => {
  for (const { type, id } of blocks) {
    const thought = type === 'tool_use' ? thoughts.get(String(id)) : undefined;
    const isThere = blocks.some(({ thinking }) => thinking === thought);
    demand(thought === undefined || isThere, `${at}: Expected \`thinking\` before \`tool_use\``);
  }
};

const checkResults = (before: Message | undefined, { blocks }: Message, at: string): void => {
  const calls = (before?.blocks ?? [])
    .filter(({ type }) => type === 'tool_use')
    .map(({ id }) => String(id));
  const results = blocks
    .filter(({ type }) => type === 'tool_result')
    .map((block) => String(block.tool_use_id));
  const firstOther = blocks.findIndex(({ type }) => type !== 'tool_result');
  const lastResult = blocks.findLastIndex(({ type }) => type === 'tool_result');
  demand(
    firstOther === -1 || firstOther > lastResult,
    `${at}: tool_result blocks must come before text`,
  );
  const unexpected = results.find((id) => !calls.includes(id));
  demand(
    unexpected === undefined,
    `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${unexpected}`,
  );
  demand(
    new Set(results).size === results.length,
    `${at}: each tool_use must have a single result`,
  );
  const missing = calls.filter((id) => !results.includes(id));
  const lack = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}`;
  demand(missing.length === 0, `${at}: ${lack}`);
};

const checkTools = (tools: unknown, seen: Seen): void => {
  if (tools === undefined) return;
  demand(Array.isArray(tools) && tools.length > 0, 'tools: must not be empty');
  const names = new Set<unknown>();
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}`;
    demand(isObject(tool), `${at}: Input should be a valid dictionary`);
    checkFields(tool, 'tool', at);
    checkMarker(tool, seen, at);
    const { name, input_schema: schema } = tool;
    demand(
      typeof name === 'string' && /^[a-zA-Z0-9_-]{1,128}$/.test(name),
      `${at}.name: String should match pattern`,
    );
    demand(!names.has(name), 'tools: Tool names must be unique.');
    names.add(name);
    demand(
      isObject(schema) && schema.type === 'object',
      `${at}.input_schema.type: should be object`,
    );
  }
};

const checkToolsThere = (
  { tools, tool_choice: choice }: Loose,
  messages: readonly Message[],
): void => {
  if (tools !== undefined) return;
  demand(choice === undefined, 'tool_choice: may only be specified while providing tools');
  const isOfTool = ({ type }: Loose): boolean => type === 'tool_use' || type === 'tool_result';
  const lack = 'Requests which include `tool_use` or `tool_result` blocks must define tools.';
  demand(!messages.some(({ blocks }) => blocks.some(isOfTool)), lack);
};

const checkBody = (body: unknown, thoughts: ReadonlyMap<string, string>): void => {
  demand(isObject(body), 'the body must be an object');
  demandWeight(body, REQUEST_BYTES_MAX);
  checkFields(body, 'body', 'body');
  const { model, max_tokens: outputTokensMax, stream, messages, system, tools } = body;
  demand(typeof model === 'string' && model !== '', 'model: Field required');
  demand(outputTokensMax !== undefined, 'max_tokens: Field required');
  demand(
    Number.isInteger(outputTokensMax) && Number(outputTokensMax) > 0,
    'max_tokens: should be at least 1',
  );
  demand(stream === true, 'stream: this server only streams');
  const seen: Seen = { callIds: new Set(), markers: 0, images: 0, thoughts };
  if (system !== undefined && typeof system !== 'string') {
    demand(Array.isArray(system) && system.length > 0, 'system: must not be empty');
    for (const [index, block] of system.entries()) {
      demand(isObject(block) && block.type === 'text', `system.${index}.type: should be text`);
      checkBlock(block, 'user', seen, `system.${index}`);
    }
  }
  checkTools(tools, seen);
  demand(
    Array.isArray(messages) && messages.length > 0,
    'messages: at least one message is required',
  );
  const read: Message[] = [];
  for (const [index, value] of messages.entries()) {
    const at = `messages.${index}`;
    const message = readMessage(value, seen, at);
    const expected = index % 2 === 0 ? 'user' : 'assistant';
    demand(
      message.role === expected,
      `${at}: roles must alternate from "user"; this should be "${expected}"`,
    );
    if (message.role === 'user') checkResults(read.at(-1), message, at);
    else checkThoughtThere(message, seen, at);
    read.push(message);
  }
  checkToolsThere(body, read);
  demand(read.at(-1)?.role === 'user', 'messages: the conversation must end with a user message');
};

/** What is wrong with a request body, or null. `thoughts` are those that the server gave, by signature. */
export const findFault = (
  body: unknown,
  thoughts: ReadonlyMap<string, string> = new Map(),
  habits: Habits = {},
): string | null =>
  faultOf(() => {
    if (isObject(body)) checkHabits(body, habits);
    checkBody(body, thoughts);
  });
