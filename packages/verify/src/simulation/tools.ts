/**
 * Tools of each class of effects. Their effects last: they belong to the world, not to the
 * process.
 *
 * `look` is pure: it may run again after a crash. `append` is probeable: it adds one line to a
 * file, whose hash shows whether it ran. `command` is opaque: nobody can know whether it ran.
 * `ask` is opaque and spends money.
 *
 * `violate` reports a broken promise. At a `crashPoint` the process may crash; then nothing of it
 * goes on. `isHealed`: the faults of the session are over.
 */

import { hash } from 'node:crypto';
import type { CallTraits } from '@pawl/agent/policy/judged-call';
import type { FileHashes, Tool, ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { SimulatedProcess } from './simulated-process.js';

export const TOOL_NAMES = ['look', 'append', 'command', 'ask'] as const;

const DEADLINE_MS = 60_000;

const createTraits = (overrides: Partial<CallTraits>): CallTraits => ({
  effect: 'pure',
  parallelSafe: true,
  mutating: false,
  deadlineMs: DEADLINE_MS,
  ...overrides,
});

const sha256 = (text: string): string => hash('sha256', text, 'hex');

const filePath = ({ file }: JsonObject): string => `/workspace/${String(file)}`;

/** Checks the rules for running a tool. */
const checkStart = (
  process: SimulatedProcess,
  tool: string,
  input: JsonObject,
  { callId }: ToolContext,
): void => {
  const { world } = process;
  const record = world.calls.get(callId);
  if (record === undefined || !record.isStarted)
    world.violate('intent-before-effect', `${tool} ${callId} runs, and its start is not durable`);
  if (record === undefined) return;
  if (record.ranIn !== 0 && record.ranIn !== process.number && tool === 'look')
    world.noteSituation('pure call run again');
  if (record.ranIn !== 0 && record.ranIn !== process.number && tool === 'append')
    world.noteSituation('probeable call run again');
  record.ranIn = process.number;
  if (record.input !== JSON.stringify(input))
    world.violate(
      'permission-of-what-runs',
      `${callId} runs with ${JSON.stringify(input)}, judged was ${record.input}`,
    );
  if (record.approval === 'asked' || record.approval === 'denied')
    world.violate(
      'permission-of-what-runs',
      `${callId} runs, and its approval is: ${record.approval}`,
    );
  if (process.hasFailedToWrite || process.hasUsedReserve)
    world.violate('no-effect-after-failed-write', `${callId} runs after the journal has failed`);
  if (record.isCompleted)
    world.violate('no-second-effect', `${callId} runs after its result is durable`);
};

/** Changes the world, and records the effect of the call. */
const takeEffect = (
  process: SimulatedProcess,
  { callId }: ToolContext,
  change: () => void,
): void => {
  process.crashPoint('before an effect');
  if (process.isDead) return;
  change();
  const record = process.world.calls.get(callId);
  if (record !== undefined) record.effects += 1;
  if (record !== undefined && record.effects > 1)
    process.world.violate(
      'no-second-effect',
      `${record.tool} ${callId} has taken effect ${record.effects} times`,
    );
  process.world.log(`effect of ${callId}`);
  process.crashPoint('after an effect');
};

type Behaviour = 'returns' | 'throws' | 'hangs' | 'ignores' | 'fails';

const chooseBehaviour = ({ world }: SimulatedProcess): Behaviour => {
  if (world.isHealed || !world.choices.chance(world.plan.toolFaults)) return 'returns';
  return world.choices.pick('fails', 'throws', 'hangs', 'ignores');
};

const HOUR = 3_600_000;

/** Works for a while. Returns the reason of an abort, or null. */
const work = (
  process: SimulatedProcess,
  behaviour: Behaviour,
  { signal, force, progress }: ToolContext,
): Promise<'timedOut' | 'cancelled' | null> =>
  new Promise((resolve) => {
    const lasts =
      behaviour === 'hangs' || behaviour === 'ignores'
        ? HOUR
        : process.world.choices.pick(100, 5, 9_000);
    // only the runtime aborts, with one of the two reasons
    const stop = (): void => resolve(signal.reason as 'timedOut' | 'cancelled');
    process.after(lasts / 2, () => progress('half of it'));
    process.after(lasts, () => resolve(null));
    // `signal` asks for the end; `force` follows when the time for that is over.
    if (behaviour === 'ignores') force.addEventListener('abort', stop, { once: true });
    else signal.addEventListener('abort', () => process.after(5, stop), { once: true });
  });

const endCall = async (
  process: SimulatedProcess,
  context: ToolContext,
  text: string,
): Promise<ToolOutcome> => {
  const { world } = process;
  const behaviour = chooseBehaviour(process);
  const stopped = await work(process, behaviour, context);
  process.crashPoint('the end of a tool');
  if (process.isDead) return new Promise<never>(() => undefined);
  if (stopped === 'timedOut') world.noteSituation('tool out of time');
  if (behaviour === 'ignores') world.noteSituation('tool that ignores its signal');
  if (behaviour === 'throws') {
    world.noteSituation('tool that throws');
    throw new Error('EPIPE: the tool has failed');
  }
  if (stopped !== null) return { status: stopped, text: 'stopped' };
  const record = world.calls.get(context.callId);
  if (record !== undefined) record.result = text;
  return { status: behaviour === 'fails' ? 'failed' : 'ok', text };
};

type Run = (input: JsonObject, context: ToolContext) => Promise<ToolOutcome>;

const simulatedTool = (
  process: SimulatedProcess,
  name: string,
  traits: CallTraits,
  run: Run,
  /** The hashes of its file before and after the effect, for a probeable tool. */
  before?: Tool['before'],
): Tool => ({
  name,
  description: `the tool ${name}`,
  inputSchema: { type: 'object' },
  traits,
  judge: (input) => ({
    kind: 'ok',
    input,
    facts: {
      argv: [],
      paths: [filePath(input)],
      hosts: [],
      shape: `${name} ${JSON.stringify(input)}`,
    },
  }),
  run: async (input, context) => {
    process.crashPoint('the start of a tool');
    if (process.isDead) return new Promise<never>(() => undefined);
    checkStart(process, name, input, context);
    return run(input, context);
  },
  ...(before === undefined ? {} : { before }),
});

const readContent = (process: SimulatedProcess, input: JsonObject): string =>
  process.world.files.get(filePath(input)) ?? '';
const appendLine = (process: SimulatedProcess, input: JsonObject): string =>
  `${readContent(process, input)}${String(input.line)}\n`;

const look = (process: SimulatedProcess): Tool =>
  simulatedTool(process, 'look', createTraits({}), (input, context) => {
    // The session remembers what the model has seen of the file.
    context.files.set(filePath(input), sha256(readContent(process, input)));
    return endCall(
      process,
      context,
      `${readContent(process, input)}${'text '.repeat(process.world.choices.pick(1, 400))}`,
    );
  });

const append = (process: SimulatedProcess): Tool => {
  const hashes = async (input: JsonObject): Promise<FileHashes> => {
    await process.pause(0.1);
    return {
      before: sha256(readContent(process, input)),
      after: sha256(appendLine(process, input)),
    };
  };
  const run: Run = async (input, context) => {
    await process.pause(process.world.choices.pick(1, 50));
    if (process.isDead || context.signal.aborted)
      return { status: 'cancelled', ran: 'no', text: 'not run' };
    takeEffect(process, context, () =>
      process.world.files.set(filePath(input), appendLine(process, input)),
    );
    return endCall(process, context, 'appended');
  };
  return simulatedTool(
    process,
    'append',
    createTraits({ effect: 'probeable', parallelSafe: false, mutating: true }),
    run,
    hashes,
  );
};

const command = (process: SimulatedProcess): Tool =>
  simulatedTool(
    process,
    'command',
    createTraits({ effect: 'opaque', parallelSafe: false, mutating: true }),
    (_input, context) => {
      takeEffect(process, context, () => undefined);
      return endCall(process, context, `output of ${context.callId}`);
    },
  );

const ASK_USD = 0.004;

/** Spends its price, or the rest of the budget if that is less. */
const ask = (process: SimulatedProcess): Tool =>
  simulatedTool(
    process,
    'ask',
    createTraits({ effect: 'opaque', spends: 'yes' }),
    async (_input, context) => {
      const { usd } = context.left(); // of the budget
      takeEffect(process, context, () => undefined);
      const outcome = await endCall(process, context, 'asked');
      const costUsd = usd.type === 'unlimited' ? ASK_USD : Math.min(ASK_USD, usd.amount);
      const usage = {
        inputTokens: 10,
        outputTokens: 10,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        costUsd,
      };
      return { ...outcome, usage };
    },
  );

export const simulatedTools = (process: SimulatedProcess): readonly Tool[] => [
  look(process),
  append(process),
  command(process),
  ask(process),
];
