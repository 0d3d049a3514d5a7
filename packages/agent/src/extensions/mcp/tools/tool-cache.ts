import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { parseBounded } from '../../../platform/base/parse-bounded-json.js';
import { readRegularSync } from '../../../platform/files/regular-file.js';
import { writePrivate } from '../../../platform/files/write-private-file.js';
import type { McpServer } from '../../mcp-servers.js';
import { isOffers, NO_OFFERS, type ServerOffers } from '../offers/offered-prompts-and-resources.js';
import type { OfferedTool } from './declare-to-model.js';

/**
 * The tools of each server as they were last seen: `mcp/tools/NAME-HASH.json` in the state folder. A session declares
 * them without waiting for the server. Its prompts and resources are in `mcp/offers`.
 *
 * 1. The hash is of the server's settings as they are written, so other settings have another entry. Values of variables
 *    are no part of it. A server of a project has an entry of its own in each project.
 * 2. `mcp/declarations/NAME-HASH/TOOL` is a hash of how a tool was declared when it last ran, one file a tool, so that
 *    sessions which run at the same time don't overwrite each other's.
 * 3. A missing or faulty entry means that the tools are not known.
 */

const BYTES_MAX = 8 * 1024 * 1024;

const hashOf = ({ enabled, required, timeoutMs, tools, project, ...server }: McpServer): string =>
  createHash('sha256')
    .update(JSON.stringify(project === undefined ? server : { ...server, project: project.folder }))
    .digest('hex')
    .slice(0, 24);

const placeOf = (stateFolder: string, server: McpServer, kind: 'tools' | 'offers' = 'tools'): string =>
  join(stateFolder, 'mcp', kind, `${server.name}-${hashOf(server)}.json`);

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const declarationPlace = (stateFolder: string, server: McpServer, { name }: OfferedTool): string =>
  join(stateFolder, 'mcp', 'declarations', `${server.name}-${hashOf(server)}`, sha256(name));

/** The hash of what the model reads about a tool. */
const declarationHash = ({ name, description, inputSchema }: OfferedTool): string =>
  sha256(JSON.stringify([name, description, inputSchema]));

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
  const parsed = parseBounded(loaded.bytes.toString('utf8'), { depthMax: 64, charactersMax: BYTES_MAX });
  return parsed.kind === 'ok' ? parsed.value : null;
};

/** The known tools of a server; null if none are known. */
export const readTools = (stateFolder: string, server: McpServer): readonly OfferedTool[] | null => {
  const entry = readEntry(placeOf(stateFolder, server));
  if (typeof entry !== 'object' || entry === null) return null;
  const tools: unknown = Reflect.get(entry, 'tools');
  return Array.isArray(tools) && tools.every(isTool) ? tools : null;
};

/** The known prompts and resources of a server. */
export const readOffers = (stateFolder: string, server: McpServer): ServerOffers => {
  const entry = readEntry(placeOf(stateFolder, server, 'offers'));
  return isOffers(entry) ? entry : NO_OFFERS;
};

export const storeOffers = (stateFolder: string, server: McpServer, offers: ServerOffers): Promise<void> =>
  writePrivate(placeOf(stateFolder, server, 'offers'), JSON.stringify({ version: 1, ...offers }));

/** Stores the tools. Readers see the old entry or the new one. */
export const storeTools = async (
  stateFolder: string,
  server: McpServer,
  tools: readonly OfferedTool[],
): Promise<void> => {
  await writePrivate(placeOf(stateFolder, server), JSON.stringify({ version: 1, tools }));
};

/** How a tool's declaration compares with that of its last run. `first`: it never ran. An unreadable file is a change. */
export type DeclarationState = 'first' | 'same' | 'changed';

export const compareDeclaration = (
  stateFolder: string,
  server: McpServer,
  tool: OfferedTool,
): DeclarationState => {
  const loaded = readRegularSync(declarationPlace(stateFolder, server, tool), BYTES_MAX);
  if (loaded.kind === 'absent') return 'first';
  return loaded.kind === 'file' && loaded.bytes.toString('utf8') === declarationHash(tool)
    ? 'same'
    : 'changed';
};

/** Stores how a tool is declared, when it runs. */
export const storeDeclaration = (stateFolder: string, server: McpServer, tool: OfferedTool): Promise<void> =>
  writePrivate(declarationPlace(stateFolder, server, tool), declarationHash(tool));
