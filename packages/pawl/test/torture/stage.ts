import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AnthropicServer, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { atEnd, type TestScope } from '../../../../test/temporary-folder.js';
import { makePlace, type Place } from '../e2e/pawl.js';
import type { KillPoint } from './kill-points.js';
import { repeatingModel } from './repeating-model.js';
import type { Scenario } from './scenarios.js';

/** Where a trial takes place: a home and a workspace of its own, and a strict server with a model that repeats. */

export type Trial = {
  readonly scenario: Scenario;
  /** Null: nothing is interrupted. */
  readonly point: KillPoint | null;
  /** The resumed session is killed as well, at each of these points in turn, before it is resumed for the last time. */
  readonly more: readonly KillPoint[];
  /** Where the session is resumed, or began: on the host, or in a pid namespace of its own. */
  readonly space: 'host' | 'resumed inside' | 'began inside';
  /** What is killed beside Pawl. */
  readonly also: 'nothing' | 'launcher' | 'fence';
  /** Another session in the same state folder runs a command before it is resumed. */
  readonly companion: boolean;
  /** It is resumed from a copy of the state folder, made at the kill. */
  readonly copied: boolean;
  /** How long after the end the session is opened again: at once, or when all that it had started has ended. */
  readonly again: 'at once' | 'later';
};

export const PLAIN = {
  ...{ more: [], space: 'host', also: 'nothing', companion: false, copied: false },
} as const satisfies Partial<Trial>;

/** An MCP server without any package: it notes the receipt and the end of each call in the ledger of the workspace. */
const LEDGER_SERVER = `
const { appendFileSync } = require('node:fs');
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const about = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'ledger', version: '1' } };
  if (method === 'initialize') say({ id, result: about });
  if (method === 'tools/list') say({ id, result: { tools: [{ name: 'act', inputSchema: { type: 'object' } }] } });
  if (method !== 'tools/call') return;
  const { call, name } = params.arguments;
  appendFileSync('ledger', 'begin ' + call + '\\n');
  appendFileSync('effects', name + '\\n');
  setTimeout(() => {
    appendFileSync('ledger', 'end ' + call + '\\n');
    say({ id, result: { content: [{ type: 'text', text: 'did-' + name }] } });
  }, 100);
});`;

const hookOf = (moment: string, place: Place): string => `[hook.${moment}]
on = "${moment}"
command = "(echo ${moment}; cat; echo) >> '${join(place.folder, 'hooks')}'"
`;

const configure = (place: Place, { hasServer, hasHooks }: Scenario): void => {
  const server = `[rules.mcp]
allow = ["ledger"]
[mcp.servers.ledger]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(join(place.folder, 'server.cjs'))}]
required = true
`;
  writeFileSync(join(place.folder, 'server.cjs'), LEDGER_SERVER);
  const folder = join(place.home, '.config', 'pawl');
  mkdirSync(folder, { recursive: true });
  const hooks = ['before-tool', 'after-tool'].map((moment) => hookOf(moment, place));
  writeFileSync(
    join(folder, 'config.toml'),
    [...(hasServer ? [server] : []), ...(hasHooks ? hooks : [])].join('\n'),
  );
};

export type Stage = Place & { readonly server: AnthropicServer; readonly log: string };

export const prepareStage = async (scope: TestScope, { scenario }: Trial): Promise<Stage> => {
  const { rounds, model } = scenario;
  const server = await startAnthropicServer({ replies: repeatingModel(rounds, model) });
  atEnd(scope, () => server.close());
  const place = makePlace(scope, {
    ANTHROPIC_API_KEY: 'key',
    ANTHROPIC_BASE_URL: server.url,
    PAWL_RETRY_MS: '5',
  });
  if (scenario.hasServer || scenario.hasHooks) configure(place, scenario);
  execFileSync('/bin/bash', ['-c', `set -e\n${scenario.prepare}`], {
    cwd: place.workspace,
    env: { ...place.environment, GIT_CONFIG_NOSYSTEM: '1' },
  });
  return { ...place, server, log: join(place.folder, 'steps') };
};

const sessionFiles = ({ state }: Place): readonly string[] => {
  const folder = join(state, 'pawl', 'sessions');
  if (!existsSync(folder)) return [];
  const written = (file: string): number => statSync(file).mtimeMs;
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => join(folder, name))
    .toSorted((one, other) => written(other) - written(one));
};

export const newestSession = (place: Place): string | null => sessionFiles(place)[0] ?? null;

export const idOf = (file: string): string => (file.split('/').at(-1) ?? '').replace('.jsonl', '');
