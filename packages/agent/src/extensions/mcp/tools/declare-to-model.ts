import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../machine/message.js';

/**
 * Names of MCP tools for models, and which tools are declared.
 *
 * 1. A name is `mcp__server__tool`, with the characters and the length that every provider accepts.
 * 2. Tools are in the order of their names, so that requests can be cached.
 */

const NAME_MAX = 64;
const HASH_LENGTH = 8;
/** Some providers refuse requests with more tools than this, together with the built-in ones. */
const TOOLS_MAX = 100;
const CHARACTERS_MAX = 160_000;
/** Equal names that are said one by one. */
const FAULTS_MAX = 3;

/** A tool as its server offers it, made safe. */
export type OfferedTool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** The server says that its calls change nothing: one that was interrupted is made again. */
  readonly isReadOnly?: true;
};

export type DeclaredTool = OfferedTool & { readonly server: string; readonly declaredName: string };

export type Declared = {
  readonly tools: readonly DeclaredTool[];
  /** Why tools are missing, one line each. */
  readonly faults: readonly string[];
};

/** The name for models. A name that had to be changed ends in a hash of the original one. */
export const declaredName = (server: string, tool: string): string => {
  const plain = `mcp__${server}__${tool}`;
  if (plain.length <= NAME_MAX && /^[\w-]+$/.test(plain)) return plain;
  const hash = createHash('sha256').update(`${server}/${tool}`).digest('hex').slice(0, HASH_LENGTH);
  return `${plain.replace(/[^\w-]/g, '_').slice(0, NAME_MAX - HASH_LENGTH - 1)}_${hash}`;
};

const sizeOf = ({ declaredName: name, description, inputSchema }: DeclaredTool): number =>
  name.length + description.length + JSON.stringify(inputSchema).length;

type Offer = { readonly server: string; readonly tools: readonly OfferedTool[] };

/** Names the tools of all servers, and leaves out collisions and tools beyond the limits. */
export const declareTools = (offers: readonly Offer[]): Declared => {
  const byName = new Map<string, DeclaredTool>();
  const faults: string[] = [];
  for (const { server, tools } of offers)
    for (const tool of tools) {
      const name = declaredName(server, tool.name);
      const other = byName.get(name);
      if (other === undefined) byName.set(name, { ...tool, server, declaredName: name });
      else
        faults.push(
          `the MCP tool ${server}/${tool.name} is left out: ${other.server}/${other.name} has the same name for the model, ${name}`,
        );
    }
  const unsaid = faults.splice(FAULTS_MAX).length;
  if (unsaid > 0) faults.push(`${unsaid} more MCP tools are left out, since others have their names`);
  const sorted = [...byName.values()].toSorted((one, next) =>
    one.declaredName < next.declaredName ? -1 : 1,
  );
  const kept: DeclaredTool[] = [];
  let characters = 0;
  for (const tool of sorted) {
    characters += sizeOf(tool);
    if (kept.length < TOOLS_MAX && characters <= CHARACTERS_MAX) kept.push(tool);
  }
  const lost = sorted.length - kept.length;
  if (lost > 0)
    faults.push(
      `${lost} of ${sorted.length} MCP tools are left out: a session declares at most ${TOOLS_MAX} of them, and ${CHARACTERS_MAX} characters. Name the tools that you need: tools = ["…"] in the server's table`,
    );
  return { tools: kept, faults };
};
