import '../../src/polyfill.js';
import { appendFileSync, existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { agentOnEngine, type Entry, fileBlobs, type Settings, type Tool } from 'pawl/engine';
import type { Model, ModelPiece, ModelRequest } from '../../../packages/agent/src/ports/model.js';
import { httpLive } from '../../src/live.js';
import { startNode } from '../../src/node.js';
import { createRestateRuntime } from '../../src/runtime.js';

/**
 * A node as a program of its own: the agent with its tools, a model and one tool more. These two and the commands of the
 * model take a moment, and write down each time they begin.
 */

export type ClusterNodeOptions = {
  readonly name: string;
  readonly ingressUrl: string;
  readonly adminUrl: string;
  /** Reaches the shared ports of all nodes. */
  readonly nodesUrl: string;
  readonly sharedPort: number;
  readonly ownPort: number;
  readonly livePort: number;
  readonly peers: readonly string[];
  /** The workspace of all sessions. */
  readonly folder: string;
  readonly blobs: string;
  /** How long the model and the tool take, at most. */
  readonly delayMs: number;
  readonly idleMs: number;
};

/** What a test asks of a node's runtime. */
export type Question =
  | { readonly kind: 'figures' | 'drain' }
  | { readonly kind: 'create'; readonly settings: Settings }
  | {
      readonly kind: 'send';
      readonly id: string;
      readonly text: string;
      readonly requestId: string;
    }
  | { readonly kind: 'rest' | 'entries'; readonly id: string };

export type Answer = { readonly number: number } & (
  | { readonly value: unknown }
  | { readonly fault: string }
);

export const CLUSTER_TOKEN = 'of the cluster';
export const CLUSTER_MODEL = 'scripted/cluster';

const options = JSON.parse(process.argv[2] ?? '{}') as ClusterNodeOptions; // given by cluster.ts
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** The texts of the test in a message: "session 12 turn 2". */
const textsIn = (message: ModelRequest['messages'][number]): readonly string[] =>
  message.role === 'user'
    ? message.parts.flatMap((part) =>
        part.type === 'text' && part.text.startsWith('session ') ? [part.text] : [],
      )
    : [];

const lastText = ({ messages }: ModelRequest): string => messages.flatMap(textsIn).at(-1) ?? '';

/** Not if a text comes with the results: the turn of their calls was cut off. */
const isAfterTool = ({ messages }: ModelRequest): boolean => {
  const last = messages.at(-1);
  if (last?.role !== 'user' || textsIn(last).length > 0) return false;
  return last.parts.some(({ type }) => type === 'result');
};

const some = (): number => Math.ceil(Math.random() * options.delayMs);

/** A command of the model, which notes its beginning and its end. Its output is long enough for the blobs. */
const commandFor = (text: string): string =>
  `echo ${text} >> commands; sleep ${some() / 1_000}; yes ${text} | head -c 200000; echo ${text} >> commands-ended`;

/**
 * Calls a tool once for each text, then answers. A text with "short" gets no call, one with "slow" a first piece and no
 * end, one with "shell" a call of bash.
 */
const model: Model = {
  id: CLUSTER_MODEL,
  facts: {
    windowTokens: 1_000_000,
    outputTokensMax: 8_192,
    thinking: 'no',
    tools: 'yes',
    prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: 'test',
  },
  canAbort: 'yes',
  async *stream(request, signal): AsyncGenerator<ModelPiece> {
    const text = lastText(request);
    const answersTool = isAfterTool(request);
    appendFileSync(
      path.join(options.folder, 'model-calls'),
      `${text} ${answersTool ? 'answer' : 'call'}\n`,
    );
    yield { type: 'text', text: 'Let me see.' };
    if (text.includes('slow')) await pause(600_000, null, { signal }).catch(() => undefined); // aborted is what it waits for
    await pause(some());
    if (answersTool || text.includes('short'))
      yield {
        type: 'completed',
        parts: [{ type: 'text', text: 'Done.' }],
        stopReason: 'end',
        usage,
      };
    else {
      const callId = `call-${text.replaceAll(/\W/g, '-')}`;
      const [tool, input] = text.includes('shell')
        ? ['bash', { command: commandFor(text) }]
        : ['record', { text }];
      const parts = [{ type: 'call', callId, tool, rawInput: JSON.stringify(input) }] as const;
      yield { type: 'completed', parts, stopReason: 'toolUse', usage };
    }
  },
};

const released = async (): Promise<void> => {
  while (!existsSync(path.join(options.folder, 'release'))) await pause(20);
};

/** A command: it must never run twice. */
const record: Tool = {
  name: 'record',
  description: 'Records a text.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 600_000 },
  judge: (input, workspace) => ({
    kind: 'ok',
    input,
    facts: { argv: [], paths: [workspace], hosts: [], shape: 'record' },
  }),
  run: async ({ text }, { signal }) => {
    appendFileSync(path.join(options.folder, 'commands'), `${String(text)}\n`);
    if (String(text).includes('long'))
      await pause(600_000, null, { signal }).catch(() => undefined); // as above
    else if (String(text).includes('held')) await released();
    else await pause(some());
    appendFileSync(path.join(options.folder, 'commands-ended'), `${String(text)}\n`);
    return { status: signal.aborted ? 'cancelled' : 'ok', text: 'recorded' };
  },
};

const { name, ingressUrl, adminUrl, nodesUrl, sharedPort, ownPort, livePort, peers } = options;
const live = await httpLive({ peers, token: CLUSTER_TOKEN, listen: { port: livePort } });
const agent = agentOnEngine({ model, moreTools: [record] });
const node = await startNode({
  name,
  ingressUrl,
  sharedPort,
  ownPort,
  live,
  idleMs: options.idleMs,
  blobs: fileBlobs(options.blobs),
  equip: (session) => agent.equip(session),
});
await node.register({ adminUrl, sharedUrl: nodesUrl, ownUrl: `http://127.0.0.1:${ownPort}` });
const runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => name });

/** Sessions that were sent something here, and what is being sent. */
const used = new Set<string>();
const sending = new Set<Promise<unknown>>();
let isDraining = false;

const untilRest = async (id: string): Promise<void> => {
  for (;;) {
    const { state } = await runtime.state(id);
    if (state.name === 'WaitingForUserInput') return;
    await pause(100);
  }
};

const entriesNow = async (id: string): Promise<readonly Entry[]> => {
  const { seq } = await runtime.state(id);
  const entries: Entry[] = [];
  for await (const entry of runtime.read(id)) {
    entries.push(entry);
    if (entry.seq >= seq) break;
  }
  return entries;
};

const answer = async (question: Question): Promise<unknown> => {
  if (isDraining) throw new Error('the node drains');
  switch (question.kind) {
    case 'figures': {
      globalThis.gc?.();
      const { rss, heapUsed } = process.memoryUsage();
      return { ...node.inMemory(), rssBytes: rss, heapBytes: heapUsed };
    }
    case 'create':
      return runtime.create({ settings: question.settings, instructions: 'Be brief.' });
    case 'send': {
      const { id, text, requestId } = question;
      used.add(id);
      const input = { type: 'UserInput', text, mode: 'steer', clientRequestId: requestId } as const;
      const sent = runtime.send(id, input).finally(() => sending.delete(sent));
      sending.add(sent);
      return sent;
    }
    case 'rest':
      return untilRest(question.id);
    case 'entries':
      return entriesNow(question.id);
    case 'drain':
      isDraining = true;
      await Promise.allSettled(sending);
      await Promise.all([...used].map(untilRest));
      await runtime.disconnect();
      await node.stop();
      await live.close();
      setImmediate(() => process.exit(0));
      return null;
    default:
      throw question satisfies never;
  }
};

process.on('message', ({ number, question }: { number: number; question: Question }) => {
  const reply = (said: Answer): void => void process.send?.(said);
  answer(question).then(
    (value) => reply({ number, value }),
    (fault: Error) => reply({ number, fault: fault.message }),
  );
});
process.on('disconnect', () => process.exit(0)); // whoever started it has gone
process.send?.('up');
