import { simulateFiles, unmountDisks } from './disk/node-files.js';
import { closeSockets } from './disk/sockets.js';
import { simulateClocks, useClocks } from './replace-global-clocks.js';
import type { SimulationOptions, SimulationReport } from './report-types.js';
import { type Situation, situations } from './required-situations.js';
import { runSession, type SessionResult } from './run-session.js';
import { shrink } from './shrink.js';

/** Runs `work` with everything simulated that processes share: files, sockets, clocks. Not twice at once. */
const inSimulation = async <T>(work: () => Promise<T>): Promise<T> => {
  const restoreFiles = simulateFiles();
  const restoreClocks = simulateClocks();
  try {
    return await work();
  } finally {
    restoreClocks();
    restoreFiles();
  }
};

/** One session by its seed, or by draws. Only in `inSimulation`. */
const simulateSession = async (
  source: number | readonly number[],
  isTraced = false,
): Promise<SessionResult> => {
  const { stackTraceLimit } = Error;
  if (!isTraced) Error.stackTraceLimit = 0; // errors are part of most sessions, and nobody reads these
  try {
    return await runSession(source, isTraced);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    unmountDisks();
    closeSockets();
    useClocks(null);
  }
};

/** Lets signals and other work of the process through between sessions. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The failed session as short as it gets, with its trace. */
const explain = async (result: SessionResult): Promise<SessionResult> => {
  const checker = result.violations[0]?.checker;
  const fails = async (draws: readonly number[]): Promise<boolean> => {
    await breathe();
    return (await simulateSession(draws)).violations[0]?.checker === checker;
  };
  return simulateSession(await shrink(result.drawn, fails), true);
};

/**
 * Runs sessions with seeds from `seed` on, each with faults and crashes of its own, and looks at every step of them. Ends
 * with the first session that breaks a promise. While it runs, this process has simulated files below `/@pawl/`, sockets
 * and clocks: run nothing else beside it.
 */
export const simulate = ({ seed, sessions, isShrunk = true }: SimulationOptions): Promise<SimulationReport> =>
  inSimulation(async () => {
    const met = new Map<Situation, number>(situations.map((situation) => [situation, 0]));
    let events = 0;
    for (let index = 0; index < sessions; index++) {
      const result = await simulateSession(seed + index);
      events += result.events;
      for (const situation of result.situations) met.set(situation, (met.get(situation) ?? 0) + 1);
      if (index % 64 === 0) await breathe();
      const [violation] = result.violations;
      if (violation === undefined) continue;
      const { trace, drawn } = isShrunk ? await explain(result) : result;
      const failure = { seed: seed + index, ...violation, trace, drawn };
      return { sessions: index + 1, events, situations: Object.fromEntries(met), failure };
    }
    return { sessions, events, situations: Object.fromEntries(met), failure: null };
  });
