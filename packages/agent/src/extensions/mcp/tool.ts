/**
 * A tool of an MCP server as a tool of the agent. What it does is unknown, so it counts as changing
 * things.
 *
 * From top to bottom: the tool (`createMcpTool`); its result as text and pictures for the model;
 * and the cache of each server in the state folder: its tools, prompts and resources as they were
 * last seen, so that a session can declare them before the server is connected.
 */

import { join } from 'node:path';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { Image } from '../../machine/message.js';
import { attempt } from '../../platform/attempt.js';
import { hashBytes, readRegularSync, writePrivate } from '../../platform/files.js';
import { firstCharacters } from '../../platform/text.js';
import { parseBounded } from '../../platform/untrusted-input.js';
import type { McpToolName } from '../../policy/judged-call.js';
import type { Blobs } from '../../ports/journal.js';
import type {
  InterruptedCall,
  SentState,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../../ports/tool.js';
import { keepPicture } from '../../tools/picture.js';
import type { Connection } from './connection.js';
import type { DeclaredTool, OfferedTool } from './declare-tools.js';
import { isOffers, NO_OFFERS, type ServerOffers } from './offers.js';
import type { McpServer } from './server-config.js';

const TITLE_MAX = 120;

const callTitle = ({ server, name }: DeclaredTool, input: JsonObject): string => {
  const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
  return `${server}/${name}${first === undefined ? '' : ` ${firstCharacters(String(first), TITLE_MAX)}`}`;
};

const stoppedOutcome = (signal: AbortSignal, server: string, isSent: boolean): ToolOutcome =>
  signal.reason === 'timedOut'
    ? {
        status: 'timedOut',
        text: isSent
          ? `the MCP server ${server} did not answer in time. It may still be working on the call`
          : `the MCP server ${server} was not connected in time. The call was not sent`,
      }
    : {
        status: 'cancelled',
        text: isSent
          ? 'cancelled; the server was told, and may have done a part of it'
          : 'cancelled; the call was not sent',
      };

/** A call that was sent, or of which that is not known. */
const interruptedCall = (server: string, sent: SentState | undefined): InterruptedCall => {
  const how =
    sent === 'sent'
      ? `this call was being sent to the MCP server ${server}, or the server was working on ` +
        'it, when the session was interrupted'
      : 'the session was interrupted during this call, and nothing shows whether the MCP ' +
        `server ${server} had received it`;
  return { kind: 'unknown', text: `${how}; look whether it took effect before you repeat it` };
};

type DeclarationStore = { readonly stateFolder: string; readonly warn: (text: string) => void };

/**
 * Remembers a tool's declaration (its name, description and schema) in the state folder when the
 * tool runs. If the declaration differs from the remembered one, the call needs the user's yes.
 *
 * 1. `compare` reads the remembered one once, when the first call is judged. Otherwise two sessions
 *    whose servers declare the tool differently would overwrite it in turns, and ask each time.
 * 2. `store` writes nothing before `compare`: then the call that runs was judged by an earlier
 *    process of the session, with a declaration that is not known here.
 */
const createDeclarationMemory = (
  declared: DeclaredTool,
  { server }: Connection,
  { stateFolder, warn }: DeclarationStore,
): { compare(): DeclarationState; store(): Promise<void> } => {
  let state: DeclarationState | null = null;
  return {
    compare() {
      state ??= compareDeclaration(stateFolder, server, declared);
      return state;
    },
    async store() {
      if (state === null || state === 'same') return;
      state = 'same'; // stored once: the warning tells of a fault
      const stored = await attempt(() => storeDeclaration(stateFolder, server, declared));
      if (stored.kind === 'fault')
        warn(
          `how the MCP server ${server.name} describes ${declared.name} can't be stored, so ` +
            `a change may be missed, or asked about again: ${stored.fault.message}`,
        );
    },
  };
};

/** The tool that the model sees. */
export const createMcpTool = (
  declared: DeclaredTool,
  connection: Connection,
  declarations: DeclarationStore,
): Tool => {
  const { server, name, declaredName, description, inputSchema, isReadOnly = false } = declared;
  const mcp: McpToolName = {
    server,
    tool: name,
    ...(connection.server.project === undefined ? {} : { from: 'project' }),
  };
  const declaration = createDeclarationMemory(declared, connection, declarations);
  const run = async (
    input: JsonObject,
    {
      signal,
      force,
      blobs,
      progress,
      sending,
      extend,
      whileAsking = (asked) => asked,
    }: ToolContext,
  ): Promise<ToolOutcome> => {
    await declaration.store(); // the call was allowed with the tool as it is declared now
    const either = AbortSignal.any([signal, force]);
    let isSent = false;
    const called = await attempt(() =>
      connection.call(name, input, {
        signal: either,
        onProgress(text) {
          extend?.();
          progress(text);
        },
        whileAsking,
        onSend() {
          isSent = true;
          sending?.();
        },
      }),
    );
    // rejects if a picture can't be stored: the call has failed then
    if (called.kind === 'done') return toOutcome(called.value, blobs);
    if (either.aborted) return stoppedOutcome(signal, server, isSent);
    return { status: 'failed', text: called.fault.message };
  };
  return {
    name: declaredName,
    description,
    inputSchema,
    traits: {
      effect: 'opaque', // after a crash nothing shows what a call has done
      parallelSafe: false,
      mutating: true,
      deadlineMs: connection.server.timeoutMs,
    },
    judge: (input) => ({
      kind: 'ok',
      input,
      facts: {
        argv: [],
        paths: [],
        hosts: [],
        shape: declaredName, // what a grant of the user covers: all calls of the tool
        mcp: declaration.compare() === 'changed' ? { ...mcp, declaration: 'changed' } : mcp,
      },
      title: callTitle(declared, input),
    }),
    findInterrupted: async (_, context) => {
      const sent = await context.findSent?.();
      // If the server says that calls change nothing, one that had begun is made again, too.
      return isReadOnly || sent === 'notSent'
        ? { kind: 'neverBegan' }
        : interruptedCall(server, sent);
    },
    run,
  };
};

// ---- The result as text and pictures for the model ----

const decodeBase64 = (base64: string): Buffer => Buffer.from(base64, 'base64');

/**
 * How the base64 of a picture begins, in each format that models take. It may be a data URL, and
 * some servers write `\/` for `/` in JSON.
 */
const PICTURE_START =
  /(?:data:image\\?\/[\w.+-]{1,40};base64,)?(iVBORw0KGgo|\\?\/9j\\?\/|R0lGOD|UklGR)/g;
/** A part of base64: letters, `\/`, or after 60 letters a line break (in JSON: `\n`, `\r\n`). */
const BASE64_PART = /[\w+/-]{1,4096}|\\\/|(?<=[\w+/-]{60})(?:\\r)?(?:\\n)|(?<=[\w+/-]{60})\r?\n/y;
/** Shorter ones stay as they are. */
const PICTURE_TEXT_MIN = 100;

/** Where the base64 that goes on at `from` ends. */
const endOfBase64 = (text: string, from: number): number => {
  let end = from;
  for (;;) {
    BASE64_PART.lastIndex = end;
    const part = BASE64_PART.exec(text)?.[0];
    if (part === undefined) break;
    end += part.length;
  }
  const [padding = ''] = /^={1,2}/.exec(text.slice(end, end + 2)) ?? [];
  return end + padding.length;
};

/**
 * The pictures of one result. Each is stored once, wherever it stands: in a block, in structured
 * content, or as base64 in a text, which would cost the model thousands of tokens.
 */
class ResultPictures {
  readonly images: Image[] = [];
  readonly #blobs: Blobs;
  /** Added to the words for each picture. */
  readonly #suffix: string;
  /** The words for each picture so far, by its hash. */
  readonly #seen = new Map<string, string>();

  constructor(blobs: Blobs, suffix: string) {
    this.#blobs = blobs;
    this.#suffix = suffix;
  }

  /** Words in place of a picture; null if the bytes are none that models take. */
  async add(bytes: Buffer, name: string): Promise<string | null> {
    const key = hashBytes(bytes);
    const before = this.#seen.get(key);
    if (before !== undefined) return `[${before}, as above]`;
    const stored = await keepPicture(bytes, this.#blobs);
    if (stored.kind === 'none') return null;
    if (stored.kind !== 'stored') return `[${name} is not shown: ${stored.why}]`;
    const { width, height } = stored.picture;
    const words = `${name}, ${width} x ${height}${this.#suffix}`;
    this.images.push(stored.image);
    this.#seen.set(key, words);
    return `[${words}]`;
  }

  /** The text with words in place of the pictures in it. */
  async takeFrom(text: string): Promise<string> {
    const parts: string[] = [];
    let done = 0;
    let tried = 0;
    for (const found of text.matchAll(PICTURE_START)) {
      const [whole, start = ''] = found;
      const from = found.index + whole.length - start.length;
      if (found.index < tried) continue; // within the base64 before
      const end = endOfBase64(text, from);
      tried = end;
      if (end - from < PICTURE_TEXT_MIN) continue;
      const base64 = text.slice(from, end).replace(/\\[rn]|[\\\s]/g, '');
      const words = await this.add(decodeBase64(base64), 'picture');
      if (words === null) continue;
      parts.push(text.slice(done, found.index), words);
      done = end;
    }
    return parts.join('') + text.slice(done);
  }
}

const readPicture = async (
  base64: string,
  name: string,
  pictures: ResultPictures,
): Promise<string> =>
  (await pictures.add(decodeBase64(base64), name)) ??
  `[${name} is not shown: models take PNG, JPEG, GIF and WebP]`;

const resourceText = (uri: string, mimeType: string | undefined): string =>
  `resource ${uri}${mimeType === undefined ? '' : ` (${mimeType})`}`;

const readBlock = async (block: ContentBlock, pictures: ResultPictures): Promise<string> => {
  switch (block.type) {
    case 'text':
      return pictures.takeFrom(block.text);
    case 'image':
      return readPicture(block.data, `picture ${block.mimeType}`, pictures);
    case 'audio':
      return `[audio ${block.mimeType}, ${decodeBase64(block.data).length} bytes, is not shown]`;
    case 'resource_link': {
      const about = block.description === undefined ? '' : `: ${block.description}`;
      return `[${resourceText(block.uri, block.mimeType)} ${block.name}${about}]`;
    }
    case 'resource': {
      const { resource } = block;
      const name = resourceText(resource.uri, resource.mimeType);
      if ('text' in resource) return `[${name}]\n${await pictures.takeFrom(resource.text)}`;
      if (resource.mimeType?.startsWith('image/'))
        return readPicture(resource.blob, name, pictures);
      return `[${name}, ${decodeBase64(resource.blob).length} bytes, is not shown]`;
    }
    default:
      return block satisfies never;
  }
};

/** The result of a call as an outcome of the tool. */
const toOutcome = async (
  { content, structuredContent, isError }: CallToolResult,
  blobs: Blobs,
): Promise<ToolOutcome> => {
  // only a call that ended ok has pictures for the model
  const pictures = new ResultPictures(blobs, isError === true ? ', is not shown' : '');
  const pieces: string[] = [];
  for (const block of content) pieces.push(await readBlock(block, pictures));
  // Servers repeat structured content as text, for clients that do not know it.
  const hasText = content.some((block) => block.type === 'text' && block.text.trim() !== '');
  if (structuredContent !== undefined && !hasText)
    pieces.push(await pictures.takeFrom(JSON.stringify(structuredContent, null, 2)));
  const text = pieces.join('\n');
  if (isError === true)
    return { status: 'failed', text: text || 'the server says that the call failed' };
  const { images } = pictures;
  return { status: 'ok', text: text || '[no output]', ...(images.length === 0 ? {} : { images }) };
};

// ---- The cache of each server ----

/*
 * The tools are in `mcp/tools/NAME-HASH.json` of the state folder, prompts and resources in
 * `mcp/offers`. A missing or faulty entry means that they are not known.
 *
 * 1. The hash is of the server's settings as they are written, so other settings have another
 *    entry. Values of variables are no part of it. A server of a project has a separate entry in
 *    each project.
 * 2. `mcp/declarations/NAME-HASH/HASH-OF-TOOL-NAME` is a hash of how a tool was declared when it
 *    last ran, one file a tool, so that sessions which run at the same time don't overwrite each
 *    other's.
 */

const BYTES_MAX = 8 * 1024 * 1024;

/** The hash of rule 1: without settings that do not change which tools the server has. */
const serverHash = ({
  enabled,
  required,
  timeoutMs,
  tools,
  project,
  ...server
}: McpServer): string =>
  hashBytes(
    JSON.stringify(project === undefined ? server : { ...server, project: project.folder }),
  ).slice(0, 24);

const cachePath = (
  stateFolder: string,
  server: McpServer,
  kind: 'tools' | 'offers' = 'tools',
): string => join(stateFolder, 'mcp', kind, `${server.name}-${serverHash(server)}.json`);

const declarationPath = (stateFolder: string, server: McpServer, { name }: OfferedTool): string =>
  join(stateFolder, 'mcp', 'declarations', `${server.name}-${serverHash(server)}`, hashBytes(name));

/** The hash of what the model reads about a tool. */
const declarationHash = ({ name, description, inputSchema }: OfferedTool): string =>
  hashBytes(JSON.stringify([name, description, inputSchema]));

const isTool = (value: unknown): value is OfferedTool =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'description' in value &&
  typeof value.description === 'string' &&
  'inputSchema' in value &&
  typeof value.inputSchema === 'object' &&
  value.inputSchema !== null;

const readEntry = (place: string): unknown => {
  const loaded = readRegularSync(place, BYTES_MAX);
  if (loaded.kind !== 'file') return null;
  const parsed = parseBounded(loaded.bytes.toString('utf8'), {
    depthMax: 64,
    charactersMax: BYTES_MAX,
  });
  return parsed.kind === 'ok' ? parsed.value : null;
};

/** The known tools of a server; null if none are known. */
export const readTools = (
  stateFolder: string,
  server: McpServer,
): readonly OfferedTool[] | null => {
  const entry = readEntry(cachePath(stateFolder, server));
  if (typeof entry !== 'object' || entry === null) return null;
  const tools: unknown = Reflect.get(entry, 'tools');
  return Array.isArray(tools) && tools.every(isTool) ? tools : null;
};

/** The known prompts and resources of a server. */
export const readOffers = (stateFolder: string, server: McpServer): ServerOffers => {
  const entry = readEntry(cachePath(stateFolder, server, 'offers'));
  return isOffers(entry) ? entry : NO_OFFERS;
};

export const storeOffers = (
  stateFolder: string,
  server: McpServer,
  offers: ServerOffers,
): Promise<void> => writePrivate(cachePath(stateFolder, server, 'offers'), JSON.stringify(offers));

/** Stores the tools. Readers see the old entry or the new one. */
export const storeTools = (
  stateFolder: string,
  server: McpServer,
  tools: readonly OfferedTool[],
): Promise<void> => writePrivate(cachePath(stateFolder, server), JSON.stringify({ tools }));

/**
 * How a tool's declaration compares with that of its last run. `first`: it never ran. An unreadable
 * file counts as a change: the user is asked once more, rather than a change missed.
 */
type DeclarationState = 'first' | 'same' | 'changed';

const compareDeclaration = (
  stateFolder: string,
  server: McpServer,
  tool: OfferedTool,
): DeclarationState => {
  const loaded = readRegularSync(declarationPath(stateFolder, server, tool), BYTES_MAX);
  if (loaded.kind === 'absent') return 'first';
  return loaded.kind === 'file' && loaded.bytes.toString('utf8') === declarationHash(tool)
    ? 'same'
    : 'changed';
};

/** Stores how a tool is declared, when it runs. */
const storeDeclaration = (
  stateFolder: string,
  server: McpServer,
  tool: OfferedTool,
): Promise<void> => writePrivate(declarationPath(stateFolder, server, tool), declarationHash(tool));
