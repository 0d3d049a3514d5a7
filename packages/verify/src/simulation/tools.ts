/**
 * Tools of each class of effects. Their effects last: they belong to the world, not to the process.
 *
 * `look` is pure. `append` is probeable: it adds one line to a file. `command` is opaque. `ask` is opaque and spends.
 */

import { hash } from 'node:crypto';
import type { CallTraits } from '@pawl/agent/policy/judged-call';
import type { FileHashes, Tool, ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { Life } from './process-life.js';

export const TOOL_NAMES = ['look', 'append', 'command', 'ask'] as const;

const DEADLINE_MS = 60_000;

const createTraits = (own: Partial<CallTraits>): CallTraits => ({
  effect: 'pure',
  parallelSafe: true,
  mutating: false,
  deadlineMs: DEADLINE_MS,
  ...own,
});

const sha256 = (text: string): string => hash('sha256', text, 'hex');

const filePath = ({ file }: JsonObject): string => `/workspace/${String(file)}`;

/** What must be true whenever a tool runs. */
const checkStart = (life: Life, tool: string, input: JsonObject, { callId }: ToolContext): void => {
  const { world } = life;
  const record = world.calls.get(callId);
  if (record === undefined || !record.isStarted)
    world.violate('intent-before-effect', `${tool} ${callId} runs, and its start is not durable`);
  if (record === undefined) return;
  if (record.ranIn !== 0 && record.ranIn !== life.number && tool === 'look')
    world.meet('pure call run again');
  if (record.ranIn !== 0 && record.ranIn !== life.number && tool === 'append')
    world.meet('probeable call run again');
  record.ranIn = life.number;
  if (record.input !== JSON.stringify(input))
    world.violate(
      'permission-of-what-runs',
      `${callId} runs with ${JSON.stringify(input)}, judged was ${record.input}`,
    );
  if (record.approval === 'asked' || record.approval === 'denied')
    world.violate('permission-of-what-runs', `${callId} runs, and its approval is: ${record.approval}`);
  if (life.hasFailedToWrite || life.hasUsedReserve)
    world.violate('no-effect-after-failed-write', `${callId} runs after the journal has failed`);
  if (record.isCompleted) world.violate('no-second-effect', `${callId} runs after its result is durable`);
};

/** The moment at which a call changes the world. */
const takeEffect = (life: Life, { callId }: ToolContext, change: () => void): void => {
  life.point('before an effect');
  if (life.isDead) return;
  change();
  const record = life.world.calls.get(callId);
  if (record !== undefined) record.effects += 1;
  if (record !== undefined && record.effects > 1)
    life.world.violate(
      'no-second-effect',
      `${record.tool} ${callId} has taken effect ${record.effects} times`,
    );
  life.world.say(`effect of ${callId}`);
  life.point('after an effect');
};

type Behaviour = 'returns' | 'throws' | 'hangs' | 'ignores' | 'fails';

const chooseBehaviour = ({ world }: Life): Behaviour => {
  if (world.isHealed || !world.choices.chance(world.plan.toolFaults)) return 'returns';
  return world.choices.pick('fails', 'throws', 'hangs', 'ignores');
};

const HOUR = 3_600_000;

/** Works for a while. Returns the reason of an abort, or null. */
const work = (
  life: Life,
  behaviour: Behaviour,
  { signal, force, progress }: ToolContext,
): Promise<'timedOut' | 'cancelled' | null> =>
  new Promise((resolve) => {
    const lasts =
      behaviour === 'hangs' || behaviour === 'ignores' ? HOUR : life.world.choices.pick(100, 5, 9_000);
    // only the runtime aborts, with one of the two reasons
    const stop = (): void => resolve(signal.reason as 'timedOut' | 'cancelled');
    life.after(lasts / 2, () => progress('half of it'));
    life.after(lasts, () => resolve(null));
    if (behaviour === 'ignores') force.addEventListener('abort', stop, { once: true });
    else signal.addEventListener('abort', () => life.after(5, stop), { once: true });
  });

const endCall = async (life: Life, context: ToolContext, text: string): Promise<ToolOutcome> => {
  const { world } = life;
  const behaviour = chooseBehaviour(life);
  const stopped = await work(life, behaviour, context);
  life.point('the end of a tool');
  if (life.isDead) return new Promise<never>(() => undefined);
  if (stopped === 'timedOut') world.meet('tool out of time');
  if (behaviour === 'ignores') world.meet('tool that ignores its signal');
  if (behaviour === 'throws') {
    world.meet('tool that throws');
    throw new Error('EPIPE: the tool has failed');
  }
  if (stopped !== null) return { status: stopped, text: 'stopped' };
  const record = world.calls.get(context.callId);
  if (record !== undefined) record.result = text;
  return { status: behaviour === 'fails' ? 'failed' : 'ok', text };
};

type Run = (input: JsonObject, context: ToolContext) => Promise<ToolOutcome>;

const simulatedTool = (
  life: Life,
  name: string,
  traits: CallTraits,
  run: Run,
  before?: Tool['before'],
): Tool => ({
  name,
  description: `the tool ${name}`,
  inputSchema: { type: 'object' },
  traits,
  judge: (input) => ({
    kind: 'ok',
    input,
    facts: { argv: [], paths: [filePath(input)], hosts: [], shape: `${name} ${JSON.stringify(input)}` },
  }),
  run: async (input, context) => {
    life.point('the start of a tool');
    if (life.isDead) return new Promise<never>(() => undefined);
    checkStart(life, name, input, context);
    return run(input, context);
  },
  ...(before === undefined ? {} : { before }),
});

const readContent = (life: Life, input: JsonObject): string => life.world.files.get(filePath(input)) ?? '';
const appended = (life: Life, input: JsonObject): string =>
  `${readContent(life, input)}${String(input.line)}\n`;

const look = (life: Life): Tool =>
  simulatedTool(life, 'look', createTraits({}), (input, context) => {
    context.files.set(filePath(input), sha256(readContent(life, input)));
    return endCall(
      life,
      context,
      `${readContent(life, input)}${'text '.repeat(life.world.choices.pick(1, 400))}`,
    );
  });

const append = (life: Life): Tool => {
  const hashes = async (input: JsonObject): Promise<FileHashes> => {
    await life.pause(0.1);
    return { before: sha256(readContent(life, input)), after: sha256(appended(life, input)) };
  };
  const run: Run = async (input, context) => {
    await life.pause(life.world.choices.pick(1, 50));
    if (life.isDead || context.signal.aborted) return { status: 'cancelled', ran: 'no', text: 'not run' };
    takeEffect(life, context, () => life.world.files.set(filePath(input), appended(life, input)));
    return endCall(life, context, 'appended');
  };
  return simulatedTool(
    life,
    'append',
    createTraits({ effect: 'probeable', parallelSafe: false, mutating: true }),
    run,
    hashes,
  );
};

const command = (life: Life): Tool =>
  simulatedTool(
    life,
    'command',
    createTraits({ effect: 'opaque', parallelSafe: false, mutating: true }),
    (_input, context) => {
      takeEffect(life, context, () => undefined);
      return endCall(life, context, `output of ${context.callId}`);
    },
  );

const ASK_USD = 0.004;

/** Spends what is left, and not more than its own price. */
const ask = (life: Life): Tool =>
  simulatedTool(life, 'ask', createTraits({ effect: 'opaque', spends: 'yes' }), async (_input, context) => {
    const { usd } = context.left();
    takeEffect(life, context, () => undefined);
    const outcome = await endCall(life, context, 'asked');
    const costUsd = usd.type === 'unlimited' ? ASK_USD : Math.min(ASK_USD, usd.amount);
    const usage = { inputTokens: 10, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd };
    return { ...outcome, usage };
  });

export const simulatedTools = (life: Life): readonly Tool[] => [
  look(life),
  append(life),
  command(life),
  ask(life),
];
