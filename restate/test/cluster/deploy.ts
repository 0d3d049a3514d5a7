import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Entry } from 'pawl/engine';
import { MACHINE_VERSION } from '../../../packages/agent/src/machine/machine.js';
import type { Edit } from '../../../packages/agent/test/journal/planted-machine.js';
import { type Cluster, type ClusterNode, clusterSettings } from './cluster.js';

/** Sessions at work while the nodes are replaced, one after the other; and what became of them. */

/** The next version: its machine computes the ids of requests and batches otherwise. */
export const NEXT_VERSION: readonly Edit[] = [
  {
    file: 'agent/src/machine/machine.ts',
    from: `MACHINE_VERSION = ${MACHINE_VERSION}`,
    to: `MACHINE_VERSION = ${MACHINE_VERSION + 1}`,
  },
  {
    file: 'agent/src/machine/state.ts',
    from: "  request: 'req',\n  batch: 'batch',\n",
    to: "  request: 'asking',\n  batch: 'calls',\n",
  },
];

/** The next version, which can't read sessions of this one. */
export const BROKEN_VERSION: readonly Edit[] = [
  ...NEXT_VERSION,
  {
    file: 'agent/src/journal/journaled-agent-machine.ts',
    from: '    const carrier = carrySession(model);\n',
    to: "    if (model !== '') throw new Error('planted');\n    const carrier = carrySession(model);\n",
  },
];

export type DeployOptions = {
  /** The number of the first session: their texts differ from those of earlier runs. */
  readonly first?: number;
  readonly sessions: number;
  readonly turns: number;
  /** What happens while the sessions work. `share`: waits until so much of all turns has ended. */
  deploy(share: (part: number) => Promise<void>): Promise<void>;
};

export type DeployFigures = {
  readonly finished: number;
  readonly faults: readonly string[];
  /** Turns that ran to their end under the later version. */
  readonly takenOver: number;
  /** The longest time for which one request was refused. */
  readonly refusedMs: number;
};

const AGAIN_MS = 50;

/** Asks a node until it answers. Returns how long it refused, too. */
const askUntil = async (node: ClusterNode, question: Parameters<ClusterNode['ask']>[0]) => {
  const begin = performance.now();
  for (let refusedMs = 0; ; refusedMs = performance.now() - begin) {
    try {
      return { value: await node.ask(question), refusedMs };
    } catch {
      await pause(AGAIN_MS); // it is being replaced
    }
  }
};

/** What went wrong in a session of so many turns with a call each. */
export const faultsIn = (
  id: string,
  turns: number,
  entries: readonly Entry[],
): readonly string[] => {
  const all = entries.map(({ event }) => event);
  const count = (type: string): number => all.filter((event) => event.type === type).length;
  const statuses = all.flatMap((event) =>
    event.type === 'ToolCompleted' ? [event.outcome.status] : [],
  );
  return [
    ...(count('CancelTurn') > 0 ? ['cancelled'] : []),
    ...(count('UserInput') === turns ? [] : [`${count('UserInput')} inputs`]),
    ...(statuses.length === turns && statuses.every((status) => status === 'ok')
      ? []
      : [`calls ${statuses.join()}`]),
  ].map((fault) => `${id}: ${fault}`);
};

export const runDeploy = async (
  cluster: Cluster,
  { first = 1, sessions, turns, deploy }: DeployOptions,
): Promise<DeployFigures> => {
  const { nodes, folder } = cluster;
  const settings = clusterSettings(folder);
  let [ended, refusedMs] = [0, 0];
  const play = async (number: number) => {
    const node = nodes[number % nodes.length] as ClusterNode; // there is at least one
    const ask = async (question: Parameters<ClusterNode['ask']>[0]): Promise<unknown> => {
      const answered = await askUntil(node, question);
      refusedMs = Math.max(refusedMs, answered.refusedMs);
      return answered.value;
    };
    const id = String(await ask({ kind: 'create', settings }));
    for (let turn = 1; turn <= turns; turn++) {
      const text = `session ${number} turn ${turn}`;
      await ask({ kind: 'send', id, text, requestId: text });
      await ask({ kind: 'rest', id });
      ended += 1;
    }
    return { id, entries: (await ask({ kind: 'entries', id })) as readonly Entry[] };
  };
  const share = async (part: number): Promise<void> => {
    while (ended < part * sessions * turns) await pause(20);
  };
  const [played] = await Promise.all([
    Promise.all(Array.from({ length: sessions }, (_, index) => play(first + index))),
    deploy(share),
  ]);
  const faults = played.flatMap(({ id, entries }) => faultsIn(id, turns, entries));
  const lines = readFileSync(path.join(folder, 'commands'), 'utf8').trim().split('\n');
  for (const line of new Set(lines.filter((one, index) => lines.indexOf(one) !== index)))
    faults.push(`ran twice: ${line}`);
  const takenOver = played.filter(({ entries }) =>
    entries.some(({ event }) => event.type === 'Resumed' && event.upgrade !== undefined),
  ).length;
  return { finished: played.length, faults, takenOver, refusedMs };
};
