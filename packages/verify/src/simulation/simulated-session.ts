/**
 * One simulated session, from its creation to its end.
 *
 * 1. Safety: processes follow each other, with faults and crashes. Each opens the files of the one
 *    before.
 * 2. Liveness: then the faults end (`isHealed`), a patient user helps, and the session must settle.
 *
 * Of the world, `violate` reports a broken promise, `noteSituation` a situation that some session
 * must have. Of a process (simulated-process.ts), `doing` is its phase, `isQuiet` says that it only
 * looks and meets no faults, `hasMetDiskFault` that it met one, and `restoreJournal` takes back
 * what another program did to the journal.
 */

import { JournalError } from '@pawl/agent/journal/journal-error';
import { initialState } from '@pawl/agent/machine/machine';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import { changeJournal, disturbClock, tryAsRival } from './disturbances.js';
import {
  checkDamage,
  checkKept,
  checkListed,
  mayBeDamage,
  missesLineFeed,
  SESSION_ID,
  tornBytes,
} from './journal-checks.js';
import { bootAgain, mountDisk } from './node-files.js';
import { planCrash, SimulatedProcess } from './simulated-process.js';
import { closedOutput, type StartedRuntime, startProcess } from './start-process.js';
import { checkEnd, noteCrashSituations, stepWatcher } from './step-checks.js';
import { User } from './user.js';
import type { World } from './world.js';

/** A moment is one planned callback of the simulated time. A session with more loops forever. */
const MOMENTS_MAX = 8_000;
/** Of all sessions: the paths of a disk hold the number, and looked-up paths are remembered. */
let lastProcess = 0;

export class SimulatedSession {
  readonly world: World;
  #process: SimulatedProcess;
  #started: StartedRuntime;
  #moments = 0;
  #crashes = 0;
  /** The session has ended, or its process has crashed: it must be opened again. */
  #isOver = false;
  /** The session refuses to open, and a checker has accepted the reason. */
  #isRefused = false;

  constructor(world: World) {
    this.world = world;
    this.#process = this.#newProcess();
    this.#started = startProcess(this.#process, mountDisk(this.#process.number, this.#process));
  }

  /** `isQuiet`: it only looks at the session, and meets no crash. */
  #newProcess(isQuiet = false): SimulatedProcess {
    lastProcess += 1;
    this.world.processes += 1;
    const { plan, isHealed } = this.world;
    if (isQuiet || isHealed || this.#crashes >= plan.crashes)
      return new SimulatedProcess(this.world, lastProcess, null);
    return new SimulatedProcess(this.world, lastProcess, planCrash(this.world));
  }

  async run(): Promise<void> {
    await this.#untilSafe();
    if (!this.#canContinue()) return;
    this.world.isHealed = true;
    this.world.log('the faults end');
    await this.#untilSettled();
  }

  /** Runs until the plan's faults and acts are used up. */
  async #untilSafe(): Promise<void> {
    const { world } = this;
    const hasNoActs = (): boolean => world.acts >= world.plan.acts;
    await this.#openAgain();
    while (this.#canContinue() && !(this.#isIdle() && hasNoActs())) {
      if (this.#isOver && hasNoActs()) return;
      if (this.#isOver) await this.#openAgain();
      if (!(await this.#advance())) return; // the session waits, and the user has no more acts
    }
  }

  async #untilSettled(): Promise<void> {
    const { world } = this;
    if (this.#process.isDead) this.#crash();
    if (this.#isOver || this.#process.state === null) await this.#openAgain();
    else this.#user().live(); // from now on it helps
    while (this.#canContinue() && !(this.#isIdle() && world.isLastTaken())) {
      if (this.#isOver) await this.#openAgain();
      if (!(await this.#advance()))
        world.violate('settles', `nothing goes on in ${this.#process.state?.name}`);
    }
    if (!this.#canContinue()) return;
    await this.#await(this.#started.runtime.close(SESSION_ID));
    if (this.#process.state !== null) checkEnd(world, this.#process.state);
    checkKept(world, 'at the end');
  }

  #user(): User {
    return new User(this.#process, this.#started.runtime, SESSION_ID);
  }

  /** Whether no promise was broken so far. A session that needs too many moments breaks one. */
  #canContinue(): boolean {
    if (this.#moments > MOMENTS_MAX)
      this.world.violate(
        'settles',
        `${MOMENTS_MAX} moments, and the session is in ${this.#process.state?.name}`,
      );
    return this.world.violations.length === 0 && !this.#isRefused;
  }

  #isIdle(): boolean {
    const name = this.#process.state?.name;
    return name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';
  }

  /** Advances to the next event, or restarts after a crash. False if nothing is planned. */
  #advance(): Promise<boolean> | boolean {
    this.#moments += 1;
    if (this.#process.isDead) {
      this.#crash();
      return true;
    }
    this.#process.crashPoint('a moment');
    disturbClock(this.#process, this.#process.state);
    return this.#mayMeetRival() ? this.#meetRival().then(() => this.#continue()) : this.#continue();
  }

  #continue(): Promise<true> | false {
    if (this.#mayChangeJournal()) changeJournal(this.#process);
    return this.world.timeline.advance();
  }

  #mayMeetRival(): boolean {
    const { doing, world, restoreJournal, hasMetDiskFault } = this.#process;
    if (doing !== 'running' || this.#isOver || world.isHealed || restoreJournal !== null)
      return false;
    // without its socket a holder is recognized by its pid, and all simulated processes share one
    if (hasMetDiskFault) return false;
    return world.choices.chance(0.003);
  }

  #mayChangeJournal(): boolean {
    const { doing, world } = this.#process;
    if (!world.plan.journalChange || world.situations.has('journal changed by another program'))
      return false;
    return doing === 'running' && !this.#isOver && !world.isHealed && world.choices.chance(0.02);
  }

  /** Another process tries to open the session that this one has open. */
  async #meetRival(): Promise<void> {
    const [holder, rival] = [this.#process, this.#newProcess(true)];
    rival.isQuiet = true; // no faults of the disk either
    const isHeld = (): boolean => !holder.isDead && !this.#isOver && holder.doing === 'running';
    await this.#await(tryAsRival(rival, mountDisk(rival.number, rival), isHeld));
    rival.die('it was refused');
    mountDisk(holder.number, holder); // files of the kernel are again those of the holder
  }

  /** The process has crashed; perhaps the power is cut, too. Begins the next process. */
  #crash(): void {
    const { world } = this;
    this.#crashes += 1;
    noteCrashSituations(this.#process);
    this.#process.restoreJournal?.(); // what another program did to it is undone
    if (world.choices.chance(0.5)) {
      if (world.disk.hasPending()) world.noteSituation('power cut with unsynced data');
      world.log('the power is cut');
      const zeros = world.disk.cutPower(world.choices, world.plan.holes);
      if (zeros !== 'none') world.noteSituation('zeros after a power cut');
      world.zeros.add(zeros);
      if (missesLineFeed(world)) world.noteSituation('a line without its line feed');
      bootAgain();
    }
    if (tornBytes(world) > 0) world.log(`the journal is torn: ${tornBytes(world)} bytes`);
    checkKept(world, 'after a crash');
    if (world.choices.chance(0.1)) world.changeFile(); // somebody else edits the workspace
    this.#begin(this.#newProcess());
    this.#isOver = true;
  }

  #begin(process: SimulatedProcess): string {
    this.#process = process;
    const folder = mountDisk(process.number, process);
    this.#started = startProcess(process, folder);
    return folder;
  }

  /** Checks the closed session in a separate process without faults. */
  async #inspect(): Promise<void> {
    const { world } = this;
    if (!world.isCreated || !world.choices.chance(0.2)) return;
    const [process, started] = [this.#process, this.#started];
    const folder = this.#begin(this.#newProcess(true));
    this.#process.isQuiet = true;
    await this.#await(checkListed(world, this.#started.runtime));
    if (this.#canContinue()) await this.#await(checkDamage(world, folder));
    this.#process.die('it has looked');
    [this.#process, this.#started] = [process, started];
    mountDisk(process.number, process); // the kernel is again that of the old process
  }

  /** Opens the session, or creates it if there is none; tries again after faults. */
  async #openAgain(): Promise<void> {
    // only a session that no process has: one that ended in this process is opened at once
    if (!this.#isOver || this.#process.state === null) await this.#inspect();
    for (let tries = 1; this.#canContinue(); tries++) {
      this.#isOver = false;
      const process = this.#process;
      const opened = await this.#await(this.#open(process, this.#started.runtime));
      if (process.isDead) {
        this.#crash();
        continue;
      }
      if (opened.kind === 'done') break;
      if (opened.kind === 'failed') this.#judgeRefusal(process, opened.error, tries);
    }
    if (this.#canContinue()) this.#follow(this.#process, this.#started.runtime);
  }

  async #open(process: SimulatedProcess, runtime: LocalRuntime): Promise<void> {
    // Checks each step; the first one begins at the state that the journal led to.
    const watcher = stepWatcher(process, () => this.#started.opened());
    process.doing = 'opening';
    try {
      await runtime.open(SESSION_ID, { watcher });
    } catch (error) {
      if (!(error instanceof JournalError) || error.kind !== 'notFound' || this.world.isCreated)
        throw error;
      process.doing = 'creating';
      await this.#create(process, runtime);
    }
    process.doing = 'running';
  }

  async #create(process: SimulatedProcess, runtime: LocalRuntime): Promise<void> {
    const { settings } = this.world.plan;
    await runtime.create({ settings, instructions: 'be brief' });
    if (process.isDead) return;
    this.world.isCreated = true;
    process.state = initialState(settings);
    runtime.watch(
      SESSION_ID,
      stepWatcher(process, () => null),
    );
  }

  /** Only a fault of the disk may prevent the session from opening. */
  #judgeRefusal(process: SimulatedProcess, error: unknown, tries: number): void {
    const { world } = this;
    const kind = error instanceof JournalError ? error.kind : 'other';
    world.log(`not opened: ${error instanceof Error ? error.message : error}`);
    // a lock that can't be read counts as held
    const isOfDisk = kind === 'cannotRead' || kind === 'cannotWrite' || kind === 'locked';
    // When the faults have ended, a few tries must be enough.
    if (isOfDisk && process.hasMetDiskFault && !(world.isHealed && tries > 3)) {
      // a lock that could not be removed is free as soon as its process has ended
      if (kind === 'locked') process.die('it could not give back its lock');
      return;
    }
    if (error instanceof JournalError && mayBeDamage(world, error)) this.#isRefused = true;
    else
      world.violate(
        'session-opens',
        `${kind}: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
      );
  }

  /** Starts the user, and checks why the session ends. */
  #follow(process: SimulatedProcess, runtime: LocalRuntime): void {
    const { world } = this;
    const over = (): void => {
      process.restoreJournal?.();
      if (!process.isDead && process === this.#process) this.#isOver = true;
    };
    runtime.find(SESSION_ID).ended.then(over, (error: unknown) => {
      if (process.isDead) return;
      world.log(`ended: ${error instanceof Error ? error.message : error}`);
      const isForeign = error instanceof JournalError && error.kind === 'foreignChange';
      if (isForeign && process.restoreJournal !== null) return over();
      // a full disk can keep the lock file: then the error is the one of the system
      const isOfDisk =
        error instanceof JournalError ||
        (error instanceof Error && / simulated, /.test(error.message));
      if (!process.hasMetDiskFault || !isOfDisk)
        world.violate(
          'known-end',
          `the session ended with ${error instanceof Error ? error.stack : error}`,
        );
      world.noteSituation('session ended by the disk and opened again');
      over();
    });
    this.#user().live();
    if (world.plan.closesOutput) runtime.watch(SESSION_ID, closedOutput(world));
  }

  /** Advances time until the promise settles or the process ends. */
  #await(promise: Promise<unknown>): Promise<PromiseOutcome> {
    return awaitOutcome(promise, () => {
      if (this.#process.isDead || !this.#canContinue()) return false;
      this.#moments += 1;
      const moment = this.world.timeline.advance();
      if (moment === false) this.world.violate('settles', 'the session neither opens nor closes');
      return moment;
    });
  }
}

/** How a promise of a simulated process ended; `open`: the process ended before. */
type PromiseOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'open' };

/** Waits for the promise; `next` advances time, and returns false if waiting is over. */
const awaitOutcome = async (
  promise: Promise<unknown>,
  next: () => Promise<true> | false,
): Promise<PromiseOutcome> => {
  let outcome: PromiseOutcome = { kind: 'open' };
  promise.then(
    () => {
      outcome = { kind: 'done' };
    },
    (error: unknown) => {
      outcome = { kind: 'failed', error };
    },
  );
  const isOpen = (): boolean => outcome.kind === 'open';
  await Promise.resolve();
  while (isOpen()) {
    const moment = next();
    if (moment === false) break;
    await moment;
  }
  return outcome;
};
