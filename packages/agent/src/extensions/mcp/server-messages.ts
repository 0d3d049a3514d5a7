/**
 * The answers of MCP servers, whatever is wrong with their form. The MCP SDK checks an answer as a
 * whole: one odd tool would hide all others, and an odd result the effect of a call. So each answer
 * passes through here first, which judges each member alone, and keeps what can be used.
 *
 * From top to bottom: `ServerMessages`, the answers of one connection; the lists (tools, prompts,
 * resources); the results of a call, a prompt and a resource; and their blocks of content.
 */

import {
  asText,
  isTable,
  type ParsedTable,
  readMembers,
  textsIn,
} from '../../platform/untrusted-input.js';

/** A request that waits for its answer. `name`: of the tool that is called. */
type Waiting = { readonly method: string; readonly name: string; readonly isFirstPage: boolean };

/** Requests that are remembered. The oldest are forgotten: their answers pass unread. */
const WAITING_MAX = 10_000;

export class ServerMessages {
  readonly #waiting = new Map<string, Waiting>();
  /** By method, the members of its last list that can't be used, one line each. */
  readonly #leftOut = new Map<string, readonly string[]>();
  /** Names of the tools that announce structured content. */
  readonly #structured = new Set<string>();

  /** Call it with each message before it is sent. */
  sent(message: unknown): void {
    if (!isTable(message) || !isId(message.id) || typeof message.method !== 'string') return;
    const params = isTable(message.params) ? message.params : {};
    this.#waiting.set(String(message.id), {
      method: message.method,
      name: asText(params.name) ?? '',
      isFirstPage: params.cursor === undefined,
    });
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > WAITING_MAX && oldest !== undefined) this.#waiting.delete(oldest);
  }

  /** A message of the server in a form that the SDK takes. Others than answers are as they came. */
  read(message: unknown): unknown {
    if (Array.isArray(message)) return message.map((one: unknown) => this.read(one));
    if (!isTable(message) || !isId(message.id) || typeof message.method === 'string')
      return message;
    const { id, error = null, result } = message;
    const waiting = this.#waiting.get(String(id));
    if (waiting === undefined) return message;
    this.#waiting.delete(String(id));
    if (error !== null) return { jsonrpc: '2.0', id, error: readError(error) };
    const read = this.#readResult(waiting, result);
    return isTable(read)
      ? { jsonrpc: '2.0', id, result: read }
      : { jsonrpc: '2.0', id, error: readError(`its answer to ${waiting.method} is no object`) };
  }

  /** The members of the server's lists that can't be used, one line each. */
  leftOut(): readonly string[] {
    return [...this.#leftOut.values()].flat();
  }

  #readResult(waiting: Waiting, result: unknown): unknown {
    // The server wants to ask the user first: the SDK answers that.
    if (isTable(result) && result.resultType === 'input_required') return result;
    switch (waiting.method) {
      case 'initialize':
        return isTable(result) ? readHandshake(result) : null;
      case 'tools/list':
      case 'prompts/list':
      case 'resources/list':
        return this.#readList(waiting.method, waiting.isFirstPage, result);
      case 'tools/call':
        return readCall(result, this.#structured.has(waiting.name));
      case 'prompts/get':
        return readPromptText(result);
      case 'resources/read':
        return readResourceText(result);
      default:
        return isTable(result) ? withoutOddMeta(result) : null;
    }
  }

  /** Call it when the server has refused to list. */
  refused(method: ListMethod, why: string): void {
    this.#leftOut.set(method, [`the ${LISTS[method].noun}s are left out: ${why}`]);
  }

  #readList(method: ListMethod, isFirstPage: boolean, result: unknown): object {
    const { key, noun, read } = LISTS[method];
    const page = isTable(result) ? result : { [key]: result };
    const { members, leftOut } = readMembers(page[key], noun, read);
    const before = isFirstPage ? [] : (this.#leftOut.get(method) ?? []);
    this.#leftOut.set(method, [...before, ...leftOut]);
    if (method === 'tools/list')
      for (const { name, announcesStructure } of members as readonly ReadTool[]) // by LISTS
        if (announcesStructure === true) this.#structured.add(name);
        else this.#structured.delete(name);
    const { nextCursor, ttlMs, cacheScope } = page;
    return {
      resultType: 'complete',
      [key]: members,
      ...(asText(nextCursor) === null ? {} : { nextCursor }),
      ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) > 0 ? ttlMs : 0,
      cacheScope: cacheScope === 'public' ? 'public' : 'private',
    };
  }
}

const withoutOddMeta = ({ _meta, ...others }: ParsedTable): object =>
  isTable(_meta) ? { ...others, _meta } : others;

const isId = (id: unknown): boolean => typeof id === 'string' || typeof id === 'number';

const INTERNAL_ERROR = -32_603;

const readError = (error: unknown): object => {
  const { code, message, data } = isTable(error) ? error : { message: error };
  return {
    code: Number.isSafeInteger(code) ? code : INTERNAL_ERROR,
    message: asText(message) ?? asJson(error),
    ...(data === undefined ? {} : { data }),
  };
};

/** A capability is there if it is not denied: servers write `true` for `{}`. */
const readCapability = (value: unknown): object | null => {
  if (isTable(value)) return value;
  return value === true || Array.isArray(value) ? {} : null;
};

const readHandshake = (result: ParsedTable): object => {
  const { capabilities, serverInfo, instructions, protocolVersion } = result;
  const named = Object.entries(isTable(capabilities) ? capabilities : {});
  const { name, version } = isTable(serverInfo) ? serverInfo : {};
  return {
    protocolVersion,
    capabilities: Object.fromEntries(
      named.flatMap(([key, value]) => {
        const capability = readCapability(value);
        return capability === null ? [] : [[key, capability] as const];
      }),
    ),
    serverInfo: { name: asText(name) ?? 'unnamed', version: asText(version) ?? '0' },
    ...(asText(instructions) === null ? {} : { instructions }),
  };
};

// ---- Lists ----

/** A tool with the fields that Pawl uses, each of the right form. */
type ReadTool = {
  readonly name: string;
  readonly inputSchema: object;
  readonly annotations?: object;
  readonly execution?: object;
  readonly announcesStructure?: true;
};

/** The fields of these names that hold a text. */
const textFields = (member: ParsedTable, ...names: readonly string[]): object =>
  Object.fromEntries(
    names.flatMap((name) => (typeof member[name] === 'string' ? [[name, member[name]]] : [])),
  );

/** A schema of the form that the SDK takes. What it says is made safe with the declaration. */
const readInputSchema = (schema: unknown): object => {
  if (!isTable(schema)) return { type: 'object' };
  const { type = null, properties, required, ...others } = schema;
  const isOfObject = type === null || type === 'object' || textsIn(type).includes('object');
  if (!isOfObject) return { type: 'object' };
  return {
    ...others,
    type: 'object',
    ...(isTable(properties) ? { properties } : {}),
    ...(Array.isArray(required) ? { required: textsIn(required) } : {}),
  };
};

const TASK_SUPPORT = ['required', 'optional', 'forbidden'];

const readTool = (member: ParsedTable): ReadTool | string => {
  const { inputSchema, outputSchema, annotations, execution } = member;
  const name = asText(member.name);
  if (name === null) return 'it has no name';
  const taskSupport = isTable(execution) ? execution.taskSupport : undefined;
  return {
    name,
    ...textFields(member, 'title', 'description'),
    inputSchema: readInputSchema(inputSchema),
    ...(isTable(annotations) && annotations.readOnlyHint === true
      ? { annotations: { readOnlyHint: true } }
      : {}),
    ...(TASK_SUPPORT.includes(String(taskSupport)) ? { execution: { taskSupport } } : {}),
    // The SDK would refuse a result without structured content, although the call has taken effect.
    ...(isTable(outputSchema) ? { announcesStructure: true as const } : {}),
  };
};

const readPrompt = (member: ParsedTable): object | string => {
  const name = asText(member.name);
  if (name === null) return 'it has no name';
  const { members } = readMembers(member.arguments, 'argument', (argument) => {
    const called = asText(argument.name);
    return called === null
      ? 'it has no name'
      : { name: called, required: argument.required === true };
  });
  return { name, ...textFields(member, 'title', 'description'), arguments: members };
};

const readResource = (member: ParsedTable): object | string => {
  const uri = asText(member.uri);
  if (uri === null) return 'it has no uri';
  const name = asText(member.name) ?? uri;
  return { uri, name, ...textFields(member, 'title', 'description', 'mimeType') };
};

export type ListMethod = keyof typeof LISTS;

const LISTS = {
  'tools/list': { key: 'tools', noun: 'tool', read: readTool },
  'prompts/list': { key: 'prompts', noun: 'prompt', read: readPrompt },
  'resources/list': { key: 'resources', noun: 'resource', read: readResource },
} as const;

// ---- Results ----

const asJson = (value: unknown): string => JSON.stringify(value, null, 2) ?? 'nothing';

const textBlock = (text: string): object => ({ type: 'text', text });

const NO_STRUCTURE = '[the server announces structured content for this tool, and sent none]';

/** `announcesStructure`: the server has said that results of this tool have structured content. */
const readCall = (result: unknown, announcesStructure: boolean): object => {
  const { content, structuredContent, isError, _meta, resultType, ...others } = isTable(result)
    ? result
    : { content: result };
  const isFailure = isError === true || isError === 'true';
  const blocks = readBlocks(content);
  const isTyped = isTable(structuredContent);
  const hasStructure = structuredContent !== undefined && structuredContent !== null;
  if (hasStructure && !isTyped) blocks.push(textBlock(asJson(structuredContent)));
  // Not even that: then what it did send is shown.
  if (blocks.length === 0 && !hasStructure && Object.keys(others).length > 0)
    blocks.push(textBlock(asJson(others)));
  if (announcesStructure && !hasStructure && !isFailure) blocks.push(textBlock(NO_STRUCTURE));
  return {
    resultType: 'complete',
    content: blocks,
    ...(isTyped ? { structuredContent } : {}),
    isError: isFailure,
  };
};

const readPromptText = (result: unknown): object => {
  const messages = isTable(result) ? result.messages : result;
  const read = (message: unknown): readonly object[] => {
    const { role, content } = isTable(message) ? message : { role: 'user', content: message };
    const isAssistant = role === 'assistant';
    const blocks = readBlocks(content);
    return blocks.map((block) => ({ role: isAssistant ? 'assistant' : 'user', content: block }));
  };
  return {
    resultType: 'complete',
    messages: Array.isArray(messages) ? messages.flatMap(read) : read(messages),
  };
};

/** The parts of a resource that are of no known form are its JSON. */
const readContents = (part: unknown): readonly object[] => {
  if (part === null || part === undefined) return [];
  const { uri, mimeType, text, blob } = isTable(part) ? part : { text: part };
  const named = { uri: asText(uri) ?? '', ...(asText(mimeType) === null ? {} : { mimeType }) };
  if (typeof text === 'string') return [{ ...named, text }];
  if (typeof blob !== 'string') return [{ ...named, text: asJson(part) }];
  const base64 = asBase64(blob);
  return [base64 === null ? { ...named, text: NO_BASE64 } : { ...named, blob: base64 }];
};

const readResourceText = (result: unknown): object => {
  const contents = isTable(result) ? (result.contents ?? result.content ?? result) : result;
  return {
    resultType: 'complete',
    contents: Array.isArray(contents) ? contents.flatMap(readContents) : readContents(contents),
    ttlMs: 0,
    cacheScope: 'private',
  };
};

// ---- Blocks of content ----

/** In front of the base64 of a data URL. */
const DATA_URL = /^data:[^,]{0,200};base64,/;

/** Base64 in its plain form, of base64 in any form; null for anything else. */
const asBase64 = (value: unknown): string | null => {
  if (typeof value !== 'string') return null;
  const plain = value.replace(DATA_URL, '').replace(/\s+/g, '');
  const [, base64] =
    /^([A-Za-z0-9+/]*)=*$/.exec(plain.replaceAll('-', '+').replaceAll('_', '/')) ?? [];
  if (base64 === undefined || base64.length % 4 === 1) return null;
  return base64 + '='.repeat((4 - (base64.length % 4)) % 4);
};

const NO_BASE64 = '[bytes that are not shown: they came as a text that is no base64]';
const UNKNOWN_TYPE = 'application/octet-stream';

/** A block of a known form; null for others. */
const readKnownBlock = (block: ParsedTable): object | null => {
  const { type = 'text', text, resource } = block;
  const mimeType = asText(block.mimeType) ?? UNKNOWN_TYPE;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? textBlock(text) : null;
    case 'image':
    case 'audio': {
      if (typeof block.data !== 'string') return null;
      const data = asBase64(block.data);
      return data === null ? textBlock(NO_BASE64) : { type, data, mimeType };
    }
    case 'resource_link': {
      const uri = asText(block.uri);
      const name = asText(block.name) ?? '';
      const known = textFields(block, 'description', 'mimeType');
      return uri === null ? null : { type, uri, name, ...known };
    }
    case 'resource': {
      const [contents] = isTable(resource) ? readContents(resource) : [];
      return contents === undefined ? null : { type, resource: contents };
    }
    default:
      return null;
  }
};

const readBlock = (block: unknown): readonly object[] => {
  if (block === null || block === undefined) return [];
  if (typeof block === 'string') return [textBlock(block)];
  const known = isTable(block) ? readKnownBlock(block) : null;
  return [known ?? textBlock(asJson(block))];
};

const readBlocks = (content: unknown): object[] =>
  (Array.isArray(content) ? content : [content]).flatMap(readBlock);
