/**
 * One session, from its creation to its end.
 *
 * 1. Safety: lives follow each other, with faults and crashes. After each crash the next life opens what is left.
 * 2. Liveness: then the faults end, a patient user helps, and the session must settle.
 */

import { JournalError } from '@pawl/agent/journal/journal-error';
import { initialState } from '@pawl/agent/machine/machine';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import { changeJournal, disturbClock, tryAsRival } from './disturbances.js';
import {
  checkDamage,
  checkKept,
  checkListed,
  isUnended,
  mayBeDamage,
  SESSION_ID,
  tornBytes,
} from './journal-checks.js';
import { bootAgain, mountDisk } from './node-files.js';
import { Life, planCrash } from './process-life.js';
import { closedOutput, type SimulatedProcess, startProcess } from './start-process.js';
import { checkEnd, meetCrash, stepWatcher } from './step-checks.js';
import { User } from './user.js';
import type { World } from './world.js';

/** No session needs more; one that does goes in circles. */
const TURNS_MAX = 8_000;
let lives = 0;

export class SimulatedSession {
  readonly world: World;
  #life: Life;
  #process: SimulatedProcess;
  #turns = 0;
  #crashes = 0;
  #isOver = false;
  /** The session does not open any more, for a good reason. */
  #isRefused = false;

  constructor(world: World) {
    this.world = world;
    this.#life = this.#newLife();
    this.#process = startProcess(this.#life, mountDisk(this.#life.number, this.#life));
  }

  #newLife(isQuiet = false): Life {
    lives += 1;
    this.world.lives += 1;
    const { plan, isHealed } = this.world;
    if (isQuiet || isHealed || this.#crashes >= plan.crashes) return new Life(this.world, lives, null);
    return new Life(this.world, lives, planCrash(this.world));
  }

  async run(): Promise<void> {
    await this.#untilSafe();
    if (!this.#mayGoOn()) return;
    this.world.isHealed = true;
    this.world.say('the faults end');
    await this.#untilSettled();
  }

  /** Lives until the plan's faults and acts are used up. */
  async #untilSafe(): Promise<void> {
    await this.#openAgain();
    while (this.#mayGoOn() && !(this.#isIdle() && this.world.acts >= this.world.plan.acts)) {
      if (this.#isOver && this.world.acts >= this.world.plan.acts) return;
      if (this.#isOver) await this.#openAgain();
      if (!(await this.#turn())) return; // it waits for the user, who has nothing more to say
    }
  }

  async #untilSettled(): Promise<void> {
    const { world } = this;
    if (this.#life.isDead) this.#crash();
    if (this.#isOver || this.#life.state === null) await this.#openAgain();
    else this.#user().live();
    while (this.#mayGoOn() && !(this.#isIdle() && world.isLastTaken())) {
      if (this.#isOver) await this.#openAgain();
      if (!(await this.#turn())) world.violate('settles', `nothing goes on in ${this.#life.state?.name}`);
    }
    if (!this.#mayGoOn()) return;
    await this.#await(this.#process.runtime.close(SESSION_ID));
    if (this.#life.state !== null) checkEnd(world, this.#life.state);
    checkKept(world, 'at the end');
  }

  #user(): User {
    return new User(this.#life, this.#process.runtime, SESSION_ID);
  }

  #mayGoOn(): boolean {
    if (this.#turns > TURNS_MAX)
      this.world.violate('settles', `${TURNS_MAX} turns, and the session is in ${this.#life.state?.name}`);
    return this.world.violations.length === 0 && !this.#isRefused;
  }

  #isIdle(): boolean {
    const name = this.#life.state?.name;
    return name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';
  }

  /** Lets the next thing happen; after a crash a new life begins. False if nothing is going to happen. */
  #turn(): Promise<boolean> | boolean {
    this.#turns += 1;
    if (this.#life.isDead) {
      this.#crash();
      return true;
    }
    this.#life.point('a moment');
    disturbClock(this.#life, this.#life.state);
    return this.#mayMeetRival() ? this.#meetRival().then(() => this.#goOn()) : this.#goOn();
  }

  #goOn(): Promise<true> | false {
    if (this.#mayMeetStranger()) changeJournal(this.#life);
    return this.world.timeline.advance();
  }

  #mayMeetRival(): boolean {
    const { doing, world, restoreJournal, hasMetDiskFault } = this.#life;
    if (doing !== 'running' || this.#isOver || world.isHealed || restoreJournal !== null) return false;
    // a holder without a socket is told by its pid, and all simulated processes have the same
    if (hasMetDiskFault) return false;
    return world.choices.chance(0.003);
  }

  #mayMeetStranger(): boolean {
    const { doing, world } = this.#life;
    if (!world.plan.journalChange || world.situations.has('journal changed by another program')) return false;
    return doing === 'running' && !this.#isOver && !world.isHealed && world.choices.chance(0.02);
  }

  /** Another process tries to open the session that this one has open. */
  async #meetRival(): Promise<void> {
    const [holder, rival] = [this.#life, this.#newLife(true)];
    rival.isQuiet = true;
    const isHeld = (): boolean => !holder.isDead && !this.#isOver && holder.doing === 'running';
    await this.#await(tryAsRival(rival, mountDisk(rival.number, rival), isHeld));
    rival.die('it was refused');
    mountDisk(holder.number, holder);
  }

  #crash(): void {
    const { world } = this;
    this.#crashes += 1;
    meetCrash(this.#life);
    this.#life.restoreJournal?.();
    if (world.choices.chance(0.5)) {
      if (world.disk.hasPending()) world.meet('power cut with unsynced data');
      world.say('the power is cut');
      const zeros = world.disk.cutPower(world.choices, world.plan.holes);
      if (zeros !== 'none') world.meet('zeros after a power cut');
      world.zeros.add(zeros);
      if (isUnended(world)) world.meet('a line without its line feed');
      bootAgain();
    }
    if (tornBytes(world) > 0) world.say(`the journal is torn: ${tornBytes(world)} bytes`);
    checkKept(world, 'after a crash');
    if (world.choices.chance(0.1)) world.changeFile();
    this.#begin(this.#newLife());
    this.#isOver = true;
  }

  #begin(life: Life): string {
    this.#life = life;
    const folder = mountDisk(life.number, life);
    this.#process = startProcess(life, folder);
    return folder;
  }

  /** Looks at the session before it is opened: without faults, in a process of its own. */
  async #inspect(): Promise<void> {
    const { world } = this;
    if (!world.isCreated || !world.choices.chance(0.2)) return;
    const [life, process] = [this.#life, this.#process];
    const folder = this.#begin(this.#newLife(true));
    this.#life.isQuiet = true;
    await this.#await(checkListed(world, this.#process.runtime));
    if (this.#mayGoOn()) await this.#await(checkDamage(world, folder));
    this.#life.die('it has looked');
    [this.#life, this.#process] = [life, process];
    mountDisk(life.number, life);
  }

  /** Opens the session, or creates it if there is none; tries again after faults. */
  async #openAgain(): Promise<void> {
    if (!this.#isOver || this.#life.state === null) await this.#inspect();
    for (let tries = 1; this.#mayGoOn(); tries++) {
      this.#isOver = false;
      const life = this.#life;
      const opened = await this.#await(this.#open(life, this.#process.runtime));
      if (life.isDead) {
        this.#crash();
        continue;
      }
      if (opened.kind === 'done') break;
      if (opened.kind === 'failed') this.#judgeRefusal(life, opened.error, tries);
    }
    if (this.#mayGoOn()) this.#follow(this.#life, this.#process.runtime);
  }

  async #open(life: Life, runtime: LocalRuntime): Promise<void> {
    const watcher = stepWatcher(life, () => this.#process.opened());
    life.doing = 'opening';
    try {
      await runtime.open(SESSION_ID, { watcher });
    } catch (error) {
      if (!(error instanceof JournalError) || error.kind !== 'notFound' || this.world.isCreated) throw error;
      life.doing = 'creating';
      await this.#create(life, runtime);
    }
    life.doing = 'running';
  }

  async #create(life: Life, runtime: LocalRuntime): Promise<void> {
    const { settings } = this.world.plan;
    await runtime.create({ settings, instructions: 'be brief' });
    if (life.isDead) return;
    this.world.isCreated = true;
    life.state = initialState(settings);
    runtime.watch(
      SESSION_ID,
      stepWatcher(life, () => null),
    );
  }

  /** A session may refuse to open because of the disk, nothing else. */
  #judgeRefusal(life: Life, error: unknown, tries: number): void {
    const { world } = this;
    const kind = error instanceof JournalError ? error.kind : 'other';
    world.say(`not opened: ${error instanceof Error ? error.message : error}`);
    // a lock that can't be read counts as held
    const isOfDisk = kind === 'cannotRead' || kind === 'cannotWrite' || kind === 'locked';
    if (isOfDisk && life.hasMetDiskFault && !(world.isHealed && tries > 3)) {
      // a lock that could not be removed is free as soon as its process has ended
      if (kind === 'locked') life.die('it could not give back its lock');
      return;
    }
    if (error instanceof JournalError && mayBeDamage(world, error)) this.#isRefused = true;
    else
      world.violate(
        'session-opens',
        `${kind}: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
      );
  }

  /** The user begins to act; the end of the session is judged. */
  #follow(life: Life, runtime: LocalRuntime): void {
    const { world } = this;
    const over = (): void => {
      life.restoreJournal?.();
      if (!life.isDead && life === this.#life) this.#isOver = true;
    };
    runtime.ended(SESSION_ID).then(over, (error: unknown) => {
      if (life.isDead) return;
      world.say(`ended: ${error instanceof Error ? error.message : error}`);
      const isForeign = error instanceof JournalError && error.kind === 'foreignChange';
      if (isForeign && life.restoreJournal !== null) return over();
      // a lock file that a full disk keeps is told of as the system tells it
      const isOfDisk =
        error instanceof JournalError || (error instanceof Error && / simulated, /.test(error.message));
      if (!life.hasMetDiskFault || !isOfDisk)
        world.violate('known-end', `the session ended with ${error instanceof Error ? error.stack : error}`);
      world.meet('session ended by the disk and opened again');
      over();
    });
    this.#user().live();
    if (world.plan.closesOutput) runtime.watch(SESSION_ID, closedOutput(world));
  }

  /** Lets time pass until the promise has settled, or the life is over. */
  #await(promise: Promise<unknown>): Promise<PromiseOutcome> {
    return whileTimePasses(promise, () => {
      if (this.#life.isDead || !this.#mayGoOn()) return false;
      this.#turns += 1;
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

/** Waits for the promise; `next` lets a moment pass, and returns false when nobody can wait any longer. */
const whileTimePasses = async (
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
