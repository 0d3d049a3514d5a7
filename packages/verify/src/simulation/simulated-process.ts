/**
 * A process of a simulated computer. It can crash at each call of the world, a crash point; its
 * `CrashPlan` says at which. The world (world.ts) is what outlives processes: disk, time, the
 * user. Its `isHealed`: the faults of the session are over.
 */

import type { State, StateName } from '@pawl/agent/machine/state';
import { type Clock, createClock } from '@pawl/agent/platform/clock';
import type { Caller, Disk } from './disk.js';
import { isJournalUnsynced } from './journal-checks.js';
import type { World } from './world.js';

/** Operations that need room on the disk. */
const NEEDS_ROOM = new Set(['write', 'writeFile', 'appendFile', 'mkdir', 'link']);
const SYNCS = new Set(['fsync', 'fdatasync']);

/** The phase of a process. */
type Phase = 'creating' | 'opening' | 'running';

/** One process. After its end it has no effects: its promises never settle. */
export class SimulatedProcess implements Caller {
  readonly world: World;
  readonly number: number;
  readonly clock: Clock;
  isDead = false;
  doing: Phase = 'creating';
  /** The state after the last durable step; null before the session is open. */
  state: State | null = null;
  /** Entries are being written. */
  isAppending = false;
  /** A write of the journal has failed. */
  hasFailedToWrite = false;
  /** Entries are in reserved space of a full disk: they are durable, but nothing may start. */
  hasUsedReserve = false;
  /** An error of the disk was injected. */
  hasMetDiskFault = false;
  /** Undoes another program's change of the journal; null without such a change. */
  restoreJournal: (() => void) | null = null;
  /** Has no faults: it only reads. */
  isQuiet = false;
  /** Open requests, and all requests. */
  requests = 0;
  requestsMade = 0;
  /** Steady time at which timers were set, and their delays. */
  readonly timers = new Map<string, { readonly at: number; readonly delayMs: number }>();
  readonly #crash: CrashPlan | null;
  #points = 0;

  constructor(world: World, number: number, crash: CrashPlan | null) {
    this.world = world;
    this.number = number;
    this.#crash = crash;
    const { timeline } = world;
    this.clock = createClock({
      wall: () => world.wallNow(),
      steady: () => timeline.now,
      after: (delayMs, ring) => this.after(delayMs, ring),
    });
  }

  get disk(): Disk {
    return this.world.disk;
  }

  now(): number {
    return this.world.wallNow();
  }

  /** A point at which the process may crash. */
  crashPoint(place: string): void {
    if (this.isDead || this.world.isHealed || this.#crash === null) return;
    if (!this.#counts(this.#crash, place)) return;
    this.#points += 1;
    if (this.#points === this.#crash.points) this.die(place);
  }

  /** The journal makes entries durable by `fdatasync`, new files and their names by `fsync`. */
  #counts({ from }: CrashPlan, place: string): boolean {
    if (from === 'opening') return true;
    if (from === 'syncing') return place === 'fdatasync';
    if (from === 'naming') return place === 'fsync';
    return this.doing === 'running' && (from === 'running' || this.state?.name === from);
  }

  die(place: string): void {
    this.isDead = true;
    this.world.log(`life ${this.world.processes} ends: ${place}`);
  }

  after(delayMs: number, run: () => void): () => void {
    return this.world.timeline.after(delayMs, run, this);
  }

  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(delayMs, resolve);
    });
  }

  /** Before each operation of the disk: a crash point, and perhaps an error code as its answer. */
  enter(operation: string, isBlocking: boolean): string | null {
    this.crashPoint(operation);
    const { plan, isHealed } = this.world;
    if (!this.isQuiet) this.world.operations += 1;
    if (plan.diskFault === null || isHealed || this.isDead || this.isQuiet) return null;
    const { code, at, isAtSync } = plan.diskFault;
    if (this.world.operations < at || this.world.diskFaultsLeft === 0) return null;
    // Each error comes only where a real system has it: no descriptor is free, no room is left, or
    // the disk is broken (`isAtSync`: seen at a sync only).
    const fits =
      code === 'EMFILE'
        ? operation === 'open'
        : code === 'EIO'
          ? SYNCS.has(operation) || (!isAtSync && operation !== 'open' && operation !== 'stat')
          : NEEDS_ROOM.has(operation);
    if (!fits) return null;
    this.world.diskFaultsLeft -= 1;
    this.hasMetDiskFault = true;
    this.world.log(`${code} at ${operation}`);
    this.#noteFaultSituations(code, operation, isBlocking);
    return code;
  }

  #noteFaultSituations(code: string, operation: string, isBlocking: boolean): void {
    const { world } = this;
    if (code === 'EMFILE') world.noteSituation('EMFILE at an open');
    if (code === 'EIO' && SYNCS.has(operation)) world.noteSituation('EIO at a sync');
    if (code === 'EIO' && operation === 'fdatasync' && !isBlocking)
      world.noteSituation('sync failed in another thread');
    if (code !== 'ENOSPC') return;
    if (this.doing === 'opening') world.noteSituation('ENOSPC while opening');
    const hasResult = [...world.calls.values()].some(
      ({ result, isCompleted }) => result !== null && !isCompleted,
    );
    if (hasResult && operation === 'write') world.noteSituation('ENOSPC at a result');
  }

  /** Some syncs block for long, so that the journal syncs in another thread. */
  block(): void {
    const { choices, plan, timeline } = this.world;
    timeline.pass(choices.chance(plan.slowDisk ? 0.5 : 0.1) ? 4 : 0.02);
  }

  /** Whether a write takes only a part of its bytes, as Linux may. */
  writesShort(): boolean {
    return !this.isQuiet && this.world.choices.chance(0.02);
  }

  /** Runs `run` when an operation in another thread has ended. */
  later(run: () => void): void {
    const { choices, plan } = this.world;
    this.world.timeline.plan(0.05 + choices.share() * (plan.slowDisk ? 6 : 0.4), run, this);
  }
}

/**
 * The process crashes at the n-th point after its start (`opening`) or after its session is open
 * (`running`); or at the n-th point in a state, or with entries (`syncing`) or a new file and its
 * name (`naming`) that are written but not durable.
 */
type CrashPlan = {
  readonly from: 'opening' | 'running' | 'syncing' | 'naming' | StateName;
  readonly points: number;
};

/**
 * Plans the crash of the next process. Three rare moments are planned more often: the creation of
 * the session, the first syncs with an unsynced journal of a killed process, and waiting to retry.
 */
export const planCrash = (world: World): CrashPlan => {
  const { choices, isCreated, processes, plan } = world;
  if (!isCreated && choices.chance(0.15)) return { from: 'naming', points: choices.between(1, 8) };
  if (processes > 1 && isJournalUnsynced(world) && choices.chance(0.7)) {
    const from = choices.pick('syncing', 'naming', 'syncing', 'opening');
    return { from, points: choices.between(1, from === 'opening' ? 60 : 4) };
  }
  if (plan.isAboutRetries) return { from: 'Error', points: choices.between(1, 20) };
  const from = choices.pick(
    'running',
    'opening',
    'running',
    'ExecutingTools',
    'PostToolsHook',
    'Error',
    'Compacting',
    'syncing',
    'naming',
  );
  const points = choices.between(
    1,
    from === 'running' ? choices.pick(40, 10, 120, 300) : choices.pick(10, 3, 40),
  );
  return { from, points };
};
