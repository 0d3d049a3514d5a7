import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { type AcpConnection, serveClient } from '../../src/editor/acp-agent.js';
import type { RunFlags } from '../../src/settings/flags.js';
import { splitLines } from './split-lines.js';
import { StrictClient } from './strict-client.js';

/** The agent in this process, with a strict client: real sessions, tools and journals, and a scripted model. */

export type Stage = {
  readonly client: StrictClient;
  readonly connection: AcpConnection;
  readonly workspace: string;
  /** Holds the workspace and the state folder. */
  readonly folder: string;
  /** The scripted model. */
  readonly model: string;
  /** Ends the agent's input, as an editor does that goes away. */
  leave(): Promise<void>;
};

/** A workspace and a state folder for this test. The environment of the process names the state folder meanwhile. */
const makeFolders = (
  context: TestContext,
): { readonly workspace: string; readonly folder: string } => {
  const folder = temporaryFolder(context, 'acp');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const before = {
    XDG_STATE_HOME: process.env.XDG_STATE_HOME,
    XDG_CONFIG_HOME: process.env.XDG_CONFIG_HOME,
  };
  Object.assign(process.env, {
    XDG_STATE_HOME: path.join(folder, 'state'),
    XDG_CONFIG_HOME: path.join(folder, 'config'),
  });
  atEnd(context, () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  return { workspace, folder };
};

const writeScript = (folder: string, replies: readonly object[]): string => {
  const file = path.join(folder, 'script.json');
  writeFileSync(file, JSON.stringify({ replies }));
  return `scripted/${file}`;
};

const serve = (context: TestContext, workspace: string, model: string, more: RunFlags): Stage => {
  const flags = { model, ...more };
  const input = new TransformStream<Uint8Array, Uint8Array>(undefined, {
    highWaterMark: Number.POSITIVE_INFINITY,
  });
  const writer = input.writable.getWriter();
  let take: (line: string) => void = () => undefined;
  const split = splitLines((line) => take(line));
  const decoder = new TextDecoder();
  const output = new WritableStream<Uint8Array>({
    write: (bytes) => split(decoder.decode(bytes, { stream: true })),
  });
  const connection = serveClient(flags, { output, input: input.readable });
  const leave = async (): Promise<void> => {
    await writer.close().catch(() => undefined); // it has left already
    await connection.ended;
  };
  atEnd(context, leave);
  const client = new StrictClient({
    write: (text) => void writer.write(new TextEncoder().encode(text)).catch(() => undefined),
    listen(listener) {
      take = listener;
    },
  });
  const folder = path.dirname(workspace);
  return { client, connection, workspace, folder, model, leave };
};

/** An initialized client of an agent whose model gives these replies. */
export const makeStage = async (
  context: TestContext,
  replies: readonly object[],
  more: { readonly flags?: RunFlags; readonly capabilities?: object } = {},
): Promise<Stage> => {
  const { workspace, folder } = makeFolders(context);
  const stage = serve(context, workspace, writeScript(folder, replies), more.flags ?? {});
  await stage.client.initialize(more.capabilities);
  return stage;
};

/**
 * Waits until the tools of an MCP server are stored: a slow one is not waited for by the request, and joins the next.
 */
export const toolsKnown = ({ folder }: Pick<Stage, 'folder'>): Promise<true> => {
  const known = path.join(folder, 'state', 'pawl', 'mcp', 'tools');
  return until(
    'the tools of the server',
    () => existsSync(known) && readdirSync(known).some((name) => name.endsWith('.json')),
  );
};
