import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Settings } from '@pawl/agent/machine/settings';
import { type Script, scriptedModel } from '@pawl/agent/models/scripted-model';
import type { Tool } from '@pawl/agent/ports/tool';
import { contractTools } from '../../../test/contract/contract-tools.js';
import { MODEL_ID, storySettings } from '../../../test/contract/play-story.js';
import type { ContractWorld } from '../../../test/contract/runtime-under-test.js';
import { NodeClient } from '../../../test/kit/serve/node-client.js';
import { atEnd, type TestScope, temporaryFolder } from '../../../test/temporary-folder.js';
import { defaultKeyLimits, type KeyLimits, type ServeKey } from '../src/keys.js';
import { type NodeOptions, type ServingNode, startNode } from '../src/node.js';
import type { NodeRuntime } from '../src/node-runtime.js';

/** A node over any runtime, with a scripted model, for the checks of its HTTP API. */

export type ServedWorld = ContractWorld & {
  /** The settings of each new session. */
  settingsFor(workspace: string): Settings;
};

/**
 * Makes the runtime of a node. Made again for the same folder, it has the sessions of before: the folder holds the
 * journals of a runtime that keeps them on disk, and names the sessions of another one.
 */
export type MakeNodeRuntime = (
  world: ServedWorld,
  folder: string,
) => Promise<{ readonly runtime: NodeRuntime; stop(): Promise<void> }>;

export const tokenOf = (name: string): string => `token-of-the-key-${name}`;

export const keyNamed = (name: string, limits: Partial<KeyLimits> = {}): ServeKey => ({
  name,
  digest: createHash('sha256').update(tokenOf(name)).digest(),
  limits: { ...defaultKeyLimits, requestsPerMinute: 100_000, ...limits },
  ...(name === 'one' ? { isOperator: 'yes' } : {}),
});

const LARGE_WINDOW = 50_000_000;

/** Answers at once; slowly to "slow", never to "wait", and with its own words to "echo". */
const readyScript: Script = {
  replies: [],
  rules: [
    { when: '^wait', text: 'Waiting', stall: true },
    { when: '^slow', text: 'a b c d e f g h', delayMs: 10 },
    { when: '^echo (?<text>[\\s\\S]*)$', text: '$<text>' },
    { when: '', text: 'Fine.' },
  ],
};

export type NodeUnderTest = {
  readonly node: ServingNode;
  readonly client: NodeClient;
  readonly workspace: string;
  readonly faults: readonly string[];
  /** A client with another key. */
  clientOf(name: string): NodeClient;
  /** Starts a node over the same folders, as after a restart. */
  again(changed?: NodeWishes): Promise<NodeUnderTest>;
  stop(): Promise<void>;
};

export type NodeWishes = Partial<
  Pick<NodeOptions, 'keys' | 'streams' | 'now' | 'names' | 'host' | 'workspaces' | 'spending'>
> & {
  readonly script?: Script;
  /** In addition to those of the contract. */
  readonly tools?: readonly Tool[];
  readonly settings?: Partial<Settings>;
};

const startIn = async (
  folder: string,
  make: MakeNodeRuntime,
  wishes: NodeWishes,
): Promise<NodeUnderTest> => {
  const { script: given = readyScript, tools = [], settings = {}, ...nodeWishes } = wishes;
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace, { recursive: true });
  const script = { facts: { windowTokens: LARGE_WINDOW }, ...given };
  const faults: string[] = [];
  const made = await make(
    {
      model: scriptedModel(script, { id: MODEL_ID }),
      tools: [...contractTools, ...tools],
      hooks: null,
      settingsFor: (place) => storySettings(place, { windowTokens: LARGE_WINDOW, ...settings }),
    },
    folder,
  );
  const { runtime } = made;
  const { signal } = new AbortController();
  const dataFolder = path.join(folder, 'data');
  const node = await startNode({
    runtime,
    host: '127.0.0.1',
    port: 0,
    names: [],
    keys: [keyNamed('one'), keyNamed('two')],
    workspaces: {
      folders: [workspace],
      repositories: new Map(),
      dataFolder,
      environment: process.env,
      signal,
    },
    recordsFolder: path.join(folder, 'records'),
    report: (fault) => faults.push(fault.message),
    ...nodeWishes,
  });
  let isOver = false;
  const stop = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    await node.drain(0);
    await made.stop();
  };
  const clientOf = (name: string): NodeClient => new NodeClient(node.address, tokenOf(name));
  const again = async (changed: NodeWishes = {}): Promise<NodeUnderTest> => {
    await stop();
    return startIn(folder, make, { ...wishes, ...changed });
  };
  return { node, client: clientOf('one'), workspace, faults, clientOf, again, stop };
};

/** Starts a node whose folders are gone after the test. */
export const startTestNode = async (
  scope: TestScope,
  make: MakeNodeRuntime,
  wishes: NodeWishes = {},
): Promise<NodeUnderTest> => {
  const started = await startIn(temporaryFolder(scope, 'serve'), make, wishes);
  atEnd(scope, () => started.stop());
  return {
    ...started,
    again: async (changed) => {
      const next = await started.again(changed);
      atEnd(scope, () => next.stop());
      return next;
    },
  };
};
