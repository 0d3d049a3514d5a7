import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { steps } from '@pawl/agent/journal/steps';
import { chooseModel } from '@pawl/agent/models/choose-model';
import type { Preset } from '@pawl/agent/policy/presets';
import type { Model } from '@pawl/agent/ports/model';
import { createApprovals } from '@pawl/agent/session/approvals';
import { openSession } from '@pawl/agent/session/create-agent';
import { openFromFlags } from '../../src/sessions/open-session.js';
import { splitLines } from '../acp/split-lines.js';
import { StrictClient, select } from '../acp/strict-client.js';
import { runInProcess } from '../e2e/in-process.js';
import { expectCode, makePlace, type Place, startPawl } from '../e2e/pawl.js';
import {
  GATE_HOOK,
  type GateCase,
  type GateDecision,
  type GatePlace,
  gateCases,
  triedCases,
} from './gate-cases.js';

/** The faces of the program: each runs the calls of the table in a session with a preset. */

export type Face = {
  readonly name: string;
  /** Whether the face has a user who can be asked. This one denies whatever is asked. */
  readonly asks: boolean;
  /** Presets that it can have; absent: all. */
  readonly presets?: readonly Preset[];
  run(stage: Stage, preset: Preset): Promise<void>;
};

export type Stage = {
  readonly place: Place;
  /** The script of a model that makes the calls in one reply. */
  readonly model: string;
  /** The script of a model that starts a task. */
  readonly modelWithTask: string;
};

const NO = { deny: 'not now' } as const;

/** A workspace, and a model that makes the calls in one reply. */
export const makeStage = (t: TestContext, cases = triedCases): Stage => {
  const place = makePlace(t);
  const outside = path.join(place.folder, 'outside');
  mkdirSync(outside);
  mkdirSync(path.join(place.home, '.ssh'));
  const gate: GatePlace = { workspace: place.workspace, outside, home: place.home };
  writeFileSync(path.join(outside, 'o.txt'), 'one\n');
  writeFileSync(path.join(place.home, '.ssh', 'id_test'), 'key\n');
  writeFileSync(path.join(place.workspace, 'a.txt'), 'one\n');
  symlinkSync(path.join(outside, 'o.txt'), path.join(place.workspace, 'link.txt'));
  execFileSync('git', ['init', '-q', place.workspace]);
  const { name: hookName, on, tools, command } = GATE_HOOK;
  const config = path.join(place.home, '.config/pawl');
  mkdirSync(config, { recursive: true });
  const lines = Object.entries({ on, tools, command }).map(
    ([key, value]) => `${key} = ${JSON.stringify(value)}`,
  );
  writeFileSync(path.join(config, 'config.toml'), [`[hook.${hookName}]`, ...lines].join('\n'));
  const calls = cases.map(({ name, tool, input }) => ({
    callId: name,
    tool,
    input: input(gate),
  }));
  const write = (name: string, ownCalls: readonly object[]): string => {
    const file = path.join(place.folder, name);
    writeFileSync(file, JSON.stringify({ replies: [{ calls: ownCalls }, { text: 'Done.' }] }));
    return `scripted/${file}`;
  };
  const start = { callId: 'task', tool: 'task', input: { purpose: 'try', prompt: 'Try all.' } };
  return {
    place,
    model: write('script.json', calls),
    modelWithTask: write('task.json', [start]),
  };
};

/** Runs `work` with the environment of the place, as a program that is started there has it. */
const within = async <T>({ environment }: Place, work: () => Promise<T>): Promise<T> => {
  const before = process.env;
  process.env = { ...environment };
  try {
    return await work();
  } finally {
    process.env = before;
  }
};

const stateOf = ({ state }: Place): string => path.join(state, 'pawl');

const scripted = async (wanted: string): Promise<Model> => {
  const chosen = await chooseModel(wanted, process.env);
  if (chosen.kind !== 'ok') throw new Error(chosen.message);
  return chosen.model;
};

const prompt = async ({ place }: Stage, model: Model, preset: Preset): Promise<void> => {
  const journals = fileJournals({ folder: stateOf(place) });
  const { workspace } = place;
  const onApproval = (): typeof NO => NO;
  const hooks = [GATE_HOOK];
  const session = await openSession({
    model,
    journals,
    workspace,
    preset,
    onApproval,
    hooks,
    tasks: true,
  });
  await session.prompt('go');
  await session.close();
};

const library: Face = {
  name: 'library',
  asks: true,
  run: (stage, preset) =>
    within(stage.place, async () => prompt(stage, await scripted(stage.model), preset)),
};

/** A task always has the preset plan, whatever its session has. */
const task: Face = {
  name: 'task',
  asks: false,
  presets: ['plan'],
  run: (stage) =>
    within(stage.place, async () => {
      const [own, ofTask] = [await scripted(stage.modelWithTask), await scripted(stage.model)];
      const model: Model = {
        ...own,
        stream: (request, signal) => {
          const isTask = request.instructions.includes('# This is a task');
          return (isTask ? ofTask : own).stream(request, signal);
        },
      };
      await prompt(stage, model, 'auto');
    }),
};

const terminal: Face = {
  name: 'terminal',
  asks: true,
  run: ({ place, model }, preset) =>
    within(place, async () => {
      const faults: string[] = [];
      const flags = { model, preset, workspace: place.workspace };
      const { session } = await openFromFlags(flags, 'terminal', {
        warn: (text) => faults.push(text),
      });
      session.watch(
        createApprovals({
          onApproval: () => NO,
          send: (input) => session.send(input),
          report: (fault) => faults.push(fault.message),
        }),
      );
      await session.prompt('go');
      await session.close();
      if (faults.length > 0) throw new Error(faults.join('\n'));
    }),
};

export const GO = ['-p', 'go', '--on-ask', 'deny'] as const;

const headless: Face = {
  name: 'headless',
  asks: false,
  run: async ({ place, model }, preset) =>
    expectCode(await runInProcess(place, [...GO, '--preset', preset, '--model', model]), 0),
};

/** The agent of editors, in a program of its own, and a client that denies what is asked. */
export const connectEditor = async (place: Place, flags: readonly string[]) => {
  const { child, ended } = startPawl(place, ['acp', ...flags], null);
  const client = new StrictClient({
    write: (text) => void child.stdin?.write(text),
    listen: (take) => {
      const split = splitLines(take);
      child.stdout?.on('data', (text: string) => split(text));
    },
  });
  client.onPermission = () => select('no');
  await client.initialize();
  const close = async (): Promise<void> => {
    child.stdin?.end();
    expectCode(await ended, 0);
  };
  return { client, close };
};

const editor: Face = {
  name: 'acp',
  asks: true,
  run: async ({ place, model }, preset) => {
    const { client, close } = await connectEditor(place, ['--preset', preset, '--model', model]);
    const { sessionId } = await client.newSession(place.workspace);
    await client.prompt(sessionId, 'go');
    client.expectNoFault();
    await close();
  },
};

export const faces: readonly Face[] = [library, terminal, headless, editor, task];

const names = new Set(gateCases.map(({ name }) => name));

/** The decision about each call of the table, from the journals of the place. */
export const decisionsOf = async ({
  place,
}: Stage): Promise<Readonly<Record<string, GateDecision>>> => {
  const journals = fileJournals({ folder: stateOf(place) });
  const decisions: Record<string, GateDecision> = {};
  for await (const { sessionId } of journals.list()) {
    const { header } = await journals.peek(sessionId);
    for await (const { actions } of steps(header, journals.read(sessionId))) {
      for (const action of actions) {
        if (action.type === 'RequestApproval') decisions[action.call.callId] = 'asked';
        if (action.type !== 'DisplayToolResult' || !names.has(action.callId)) continue;
        decisions[action.callId] ??= decisionOf(action.status);
      }
    }
  }
  return decisions;
};

const decisionOf = (status: string): GateDecision => {
  if (status === 'denied') return 'denied';
  return status === 'invalid' || status === 'noSuchTool' ? 'refused' : 'allowed';
};

export const expectedOf = (
  { asks }: Face,
  preset: Preset,
  cases: readonly GateCase[],
): Readonly<Record<string, GateDecision>> =>
  Object.fromEntries(
    cases.map(({ name, decisions }) => {
      const decision = decisions[preset];
      return [name, decision === 'asked' && !asks ? 'denied' : decision];
    }),
  );
