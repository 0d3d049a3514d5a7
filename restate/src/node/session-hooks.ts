import {
  attempt,
  createUserHookRuns,
  type Equipment,
  type Posted,
  type State,
  type Told,
  type UserHookRuns,
} from 'pawl/engine';
import type { HooksOrder } from '../session/session-records.js';
import type { WorkNeeds } from './work-run.js';

/** The user's hooks of one session in this process. They are shared by all work, since they remember more than one piece. */

type HooksWorld = {
  readonly postNow: WorkNeeds['postNow'];
  /** The state after this entry, or a later one. */
  stateAfter(seq: number): Promise<State>;
  report(fault: Error): void;
};

const STOPPING_MS = 1_000;

export class SessionHooks {
  readonly runs: UserHookRuns | null;
  readonly #world: HooksWorld;
  /** What hooks have said and the engine does not know yet. */
  #said: Posted[] = [];
  #running = 0;

  /** `opened`: the state when the session was equipped, or a later one. */
  constructor(equipment: Equipment, opened: State, world: HooksWorld) {
    this.#world = world;
    this.runs = createUserHookRuns(equipment, opened, (event, told) => {
      // It is told with the end of the hooks, unless a request waits for it.
      if (told === undefined) this.#said.push(event);
      else void this.#tell(event, told);
    });
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  /** Runs hooks that are no part of other work. Resolves with what they say. */
  async run(
    about: Exclude<HooksOrder['about'], { readonly moment: 'session-end' }>,
    seq: number,
  ): Promise<readonly Posted[]> {
    this.#running += 1;
    try {
      if (about.moment === 'ask-user')
        await this.runs?.asked(about.action, await this.#world.stateAfter(seq));
      else await this.runs?.begin(about.source, (await this.#world.stateAfter(seq)).session.settings.model);
    } finally {
      this.#running -= 1;
    }
    return this.take();
  }

  /** Stops the hooks of all work. Those that tell the user something have a moment to end. */
  async stopAll(): Promise<void> {
    const stopped = this.runs?.stopAll();
    const patience = new Promise((resolve) => setTimeout(resolve, STOPPING_MS).unref());
    await Promise.race([stopped, patience]);
  }

  /** What hooks have said since the last time. */
  take(): readonly Posted[] {
    return this.#said.splice(0);
  }

  async #tell(event: Posted, told: Told): Promise<void> {
    const tried = await attempt(async () => {
      const { applied, state } = await this.#world.postNow(event);
      told(applied !== undefined && 'accepted' in applied && applied.accepted, state);
    });
    if (tried.kind === 'done') return;
    this.#world.report(tried.fault);
    this.#said.push(event); // the request goes without it, and the journal gets it later
    told(false, await this.#world.stateAfter(0));
  }
}
