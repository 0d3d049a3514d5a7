/**
 * Names of MCP tools for models, and which tools are declared: `declareTools`, for all servers of a
 * session; `offeredTools`, the safe list of one server; and `selectTools`, by its settings.
 *
 * 1. A name is `mcp__server__tool`, with the characters and the length that every provider accepts.
 * 2. Tools are in the order of their names, so that requests can be cached.
 */

import { createHash } from 'node:crypto';
import type { Tool as RemoteTool } from '@modelcontextprotocol/client';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { safeSchema } from '../../models/tool-schema.js';
import { firstCharacters } from '../../platform/text.js';
import { shortName } from '../../platform/untrusted-input.js';
import type { McpServer } from './server-config.js';

const NAME_MAX = 64;
const HASH_LENGTH = 8;
/** Some providers refuse requests with more tools than this, together with the built-in ones. */
const TOOLS_MAX = 100;
const CHARACTERS_MAX = 160_000;
/** Equal names that are reported one by one. */
const FAULTS_MAX = 3;

/** A tool as its server offers it, with a safe schema. Its name may be anything. */
export type OfferedTool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** The server says that its calls change nothing: an interrupted one is repeated. */
  readonly isReadOnly?: true;
};

/** `declaredName`: its name for the model. */
export type DeclaredTool = OfferedTool & { readonly server: string; readonly declaredName: string };

type Declared = {
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

/** Characters of a request that the tool takes. */
const declarationLength = ({
  declaredName: name,
  description,
  inputSchema,
}: DeclaredTool): number => name.length + description.length + JSON.stringify(inputSchema).length;

type Offer = { readonly server: string; readonly tools: readonly OfferedTool[] };

/**
 * Names the tools of all servers, and leaves out collisions and tools beyond the limits. `before`:
 * tools that the session declares already; they count, and are not returned.
 */
export const declareTools = (
  offers: readonly Offer[],
  before: readonly DeclaredTool[] = [],
): Declared => {
  const byName = new Map(before.map((tool) => [tool.declaredName, tool]));
  const faults: string[] = [];
  for (const { server, tools } of offers)
    for (const tool of tools) {
      const name = declaredName(server, tool.name);
      const other = byName.get(name);
      if (other === undefined) byName.set(name, { ...tool, server, declaredName: name });
      else if (other.server !== server || other.name !== tool.name)
        faults.push(
          `the MCP tool ${server}/${shortName(tool.name)} is left out: ` +
            `${other.server}/${shortName(other.name)} ` +
            `has the same name for the model, ${name}`,
        );
    }
  const unsaid = faults.splice(FAULTS_MAX).length;
  if (unsaid > 0)
    faults.push(`${unsaid} more MCP tools are left out, since others have their names`);
  // Those of `before` are the first of the map.
  const sorted = [...byName.values()]
    .slice(before.length)
    .toSorted((one, next) => (one.declaredName < next.declaredName ? -1 : 1));
  const fitting: DeclaredTool[] = [];
  let characters = before.reduce((sum, tool) => sum + declarationLength(tool), 0);
  for (const tool of sorted) {
    const length = declarationLength(tool);
    if (before.length + fitting.length >= TOOLS_MAX || characters + length > CHARACTERS_MAX)
      continue;
    characters += length;
    fitting.push(tool);
  }
  const omitted = sorted.length - fitting.length;
  if (omitted > 0)
    faults.push(
      `${omitted} of ${byName.size} MCP tools are left out: a session declares at most ` +
        `${TOOLS_MAX} of them, and ${CHARACTERS_MAX} characters. Name the tools that you need: ` +
        `tools = ["…"] in the server's table`,
    );
  return { tools: fitting, faults };
};

// ---- The tools of one server ----

const DESCRIPTION_MAX = 2_000;
const OFFERED_TOOLS_MAX = 1_000;
const OFFERED_NAME_MAX = 200;

type Offered = {
  readonly tools: readonly OfferedTool[];
  /** What was changed, one line a tool. */
  readonly notes: readonly string[];
  /** The tools that can't be declared, one line each. */
  readonly leftOut: readonly string[];
  /** Names of the omitted tools, which their server runs only as tasks. */
  readonly needTasks: readonly string[];
};

const needsTask = ({ execution }: RemoteTool): boolean => execution?.taskSupport === 'required';

/**
 * The tools that a server offers, safe to declare. Of equal names the first counts. A tool that its
 * server runs only as a task is omitted: a call of it can't succeed.
 */
export const offeredTools = (remote: readonly RemoteTool[]): Offered => {
  const notes: string[] = [];
  const leftOut: string[] = [];
  const needTasks = remote.filter(needsTask).map(({ name }) => name);
  const byName = new Map<string, RemoteTool>();
  const whyNot = (name: string): string | null => {
    if (name.length > OFFERED_NAME_MAX) return `its name has ${name.length} characters`;
    if (byName.has(name)) return 'another one has the same name';
    return byName.size < OFFERED_TOOLS_MAX ? null : `there are more than ${OFFERED_TOOLS_MAX}`;
  };
  for (const tool of remote) {
    if (needsTask(tool)) continue;
    const why = whyNot(tool.name);
    if (why === null) byName.set(tool.name, tool);
    else leftOut.push(`the tool ${shortName(tool.name)} is left out: ${why}`);
  }
  for (const name of needTasks)
    notes.push(`${shortName(name)}: left out, since the server runs it only as a task`);
  const tools = [...byName.values()].map(
    ({ name, title, description = title ?? '', inputSchema, annotations }) => {
      // A form that providers accept, if they take definitions in a schema.
      const { schema, note } = safeSchema(inputSchema, 'kept');
      if (note !== null) notes.push(`${shortName(name)}: ${note}`);
      if (description.length > DESCRIPTION_MAX)
        notes.push(`${shortName(name)}: its description is cut`);
      const declared = {
        name,
        description: firstCharacters(description, DESCRIPTION_MAX),
        inputSchema: schema,
      };
      return annotations?.readOnlyHint === true
        ? { ...declared, isReadOnly: true as const }
        : declared;
    },
  );
  return {
    tools: tools.toSorted((one, next) => (one.name < next.name ? -1 : 1)),
    notes,
    leftOut,
    needTasks,
  };
};

/** The tools that the server's settings ask for. */
export const selectTools = (
  { tools: patterns }: McpServer,
  offered: readonly OfferedTool[],
): readonly OfferedTool[] => {
  if (patterns === null) return offered;
  const fits = (name: string): boolean =>
    patterns.some((pattern) =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
    );
  return offered.filter(({ name }) => fits(name));
};
