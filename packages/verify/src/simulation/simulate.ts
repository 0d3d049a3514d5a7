/** Runs simulated sessions from seeds, and shortens a failed one. */

import { simulateFiles, startComputer, unmountDisks } from './node-files.js';
import { Choices } from './random-choices.js';
import type { SimulationOptions, SimulationReport } from './report-types.js';
import { planFor } from './session-plan.js';
import { SimulatedSession } from './simulated-session.js';
import { closeSockets } from './sockets.js';
import { type Situation, situations, type Violation, World } from './world.js';

/**
 * Runs sessions with seeds from `seed` on, each with different faults and crashes, and checks every
 * step. Ends with the first session that breaks a promise. Meanwhile this process has simulated
 * clocks, sockets and files below `/@pawl/`: run nothing else beside it.
 */
export const simulate = ({
  seed,
  sessions,
  isShrunk = true,
  about,
}: SimulationOptions): Promise<SimulationReport> =>
  inSimulation(async () => {
    const met = new Map<Situation, number>(situations.map((situation) => [situation, 0]));
    let events = 0;
    for (let index = 0; index < sessions; index++) {
      const result = await simulateSession(seed + index, about);
      events += result.events;
      for (const situation of result.situations) met.set(situation, (met.get(situation) ?? 0) + 1);
      if (index % 64 === 0) await breathe();
      const [violation] = result.violations;
      if (violation === undefined) continue;
      const { trace, drawn } = isShrunk ? await explain(result, about) : result;
      const failure = { seed: seed + index, ...violation, trace, drawn };
      return { sessions: index + 1, events, situations: Object.fromEntries(met), failure };
    }
    return { sessions, events, situations: Object.fromEntries(met), failure: null };
  });

/**
 * Runs `work` with everything simulated that processes share: files, sockets, clocks. Not twice at
 * once.
 */
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

type About = SimulationOptions['about'];

/** One session by its seed, or by draws. Only in `inSimulation`. */
const simulateSession = async (
  source: number | readonly number[],
  about: About,
  isTraced = false,
): Promise<SessionResult> => {
  const { stackTraceLimit } = Error;
  // errors are part of most sessions, and nobody reads these
  if (!isTraced) Error.stackTraceLimit = 0;
  try {
    return await runSession(source, about, isTraced);
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
const explain = async (result: SessionResult, about: About): Promise<SessionResult> => {
  const checker = result.violations[0]?.checker;
  const fails = async (draws: readonly number[]): Promise<boolean> => {
    await breathe();
    return (await simulateSession(draws, about)).violations[0]?.checker === checker;
  };
  return simulateSession(await shrink(result.drawn, fails), about, true);
};

type SessionResult = {
  readonly violations: readonly Violation[];
  readonly situations: ReadonlySet<Situation>;
  /** Every draw: gives the same session again. */
  readonly drawn: readonly number[];
  readonly trace: readonly string[];
  readonly events: number;
};

/** Runs one session by a seed, or by the draws of an earlier one. */
const runSession = async (
  source: number | readonly number[],
  about: About,
  isTraced: boolean,
): Promise<SessionResult> => {
  const choices = new Choices(source);
  const world = new World(choices, planFor(choices, about), isTraced ? [] : null);
  useClocks({ wallNow: () => world.wallNow(), steadyNow: () => world.timeline.now });
  startComputer();
  await new SimulatedSession(world).run();
  return {
    violations: world.violations,
    situations: world.situations,
    drawn: choices.drawn,
    trace: world.trace ?? [],
    events: world.acknowledged.size,
  };
};

/** The random draws of a session, in order. */
type Draws = readonly number[];

const RUNS_MAX = 400;

const withoutPiece = (draws: Draws, start: number, length: number): Draws => [
  ...draws.slice(0, start),
  ...draws.slice(start + length),
];

const zeroPiece = (draws: Draws, start: number, length: number): Draws =>
  draws.map((draw, index) => (index >= start && index < start + length ? 0 : draw));

const withoutLastZeros = (draws: Draws): Draws =>
  draws.slice(0, draws.findLastIndex((draw) => draw !== 0) + 1);

/**
 * Makes a list of draws shorter and smaller, as long as the session that comes of it still fails.
 *
 * Pieces are taken out or set to zero, large ones first; see random-choices.ts for why that makes a
 * session simpler.
 */
const shrink = async (draws: Draws, fails: (draws: Draws) => Promise<boolean>): Promise<Draws> => {
  let best = withoutLastZeros(draws);
  let runs = 0;
  const isBetter = async (candidate: Draws): Promise<boolean> => {
    const shorter = withoutLastZeros(candidate);
    const isSame =
      shorter.length === best.length && shorter.every((draw, index) => draw === best[index]);
    if (isSame || runs >= RUNS_MAX) return false;
    runs += 1;
    if (!(await fails(shorter))) return false;
    best = shorter;
    return true;
  };
  for (let length = Math.max(1, best.length >> 1); length >= 1; length >>= 1) {
    for (let start = 0; start < best.length && runs < RUNS_MAX; ) {
      const removed = await isBetter(withoutPiece(best, start, length));
      if (!removed) {
        await isBetter(zeroPiece(best, start, length));
        start += length;
      }
    }
  }
  return best;
};

/** The clocks of the process, which production code may read besides its port. */
type ProcessClocks = { wallNow(): number; steadyNow(): number };

let clocks: ProcessClocks | null = null;

/** Sets the clocks of the process; null restores the real ones. */
const useClocks = (processClocks: ProcessClocks | null): void => {
  clocks = processClocks;
};

/** Replaces the clocks of the process. Returns a function that puts them back. */
const simulateClocks = (): (() => void) => {
  const { now } = Date;
  const steady = performance.now.bind(performance);
  Date.now = () => clocks?.wallNow() ?? now();
  performance.now = () => clocks?.steadyNow() ?? steady();
  return () => {
    Date.now = now;
    // The own function hides the one that `performance` inherits.
    Reflect.deleteProperty(performance, 'now');
  };
};
