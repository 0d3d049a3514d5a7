import { steps } from '@pawl/agent/journal/steps';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { Image } from '@pawl/agent/machine/message';
import type { Usage, UsageTotals } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Entry, Header } from '@pawl/agent/ports/journal';
import * as g from '../../../../test/kit/agent/given.js';
import { randomFrom } from '../../../../test/kit/agent/mutations.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { createTrajectory, type Trajectory } from '../../src/atif-trajectory.js';

/** Plays the part of the runtime and the user for one session, from a seed: everything costs, and anything may fail. */

export type Situation =
  | 'compaction'
  | 'compaction failed'
  | 'task'
  | 'crash'
  | 'crash in a batch'
  | 'closed and resumed'
  | 'retry'
  | 'late usage'
  | 'picture'
  | 'denied'
  | 'cancelled'
  | 'fork'
  | 'unknown price'
  | 'hook that costs';

export type PlayedSession = {
  readonly header: Header;
  readonly entries: readonly Entry[];
  readonly state: State;
  /** The sessions that its calls started, by session, batch and call. */
  readonly tasks: ReadonlyMap<string, PlayedSession>;
  readonly met: ReadonlySet<Situation>;
};

const PICTURE: Image = { mediaType: 'image/png', sha256: 'a'.repeat(64) };
const EVENTS_MAX = 120;

export const startHeader = (sessionId: string, careful: boolean): Header => ({
  version: 1,
  sessionId,
  createdAt: g.NOW,
  workspace: '/project',
  parent: null,
  machine: '',
  settings: settingsOf({
    windowTokens: 10_000,
    hooks: 'always',
    limits: { rounds: 12 },
    ...(careful ? { rules: presetRules.careful } : {}),
  }),
  instructions: '',
  tools: '',
  prices: null,
});

const totalsAsUsage = ({ unpriced, ...totals }: UsageTotals): Usage => ({
  ...totals,
  costUsd: unpriced > 0 && totals.costUsd === 0 ? null : totals.costUsd,
});

const taskKey = (batchId: string, callId: string): string => `${batchId}/${callId}`;

class SessionPlayer {
  readonly header: Header;
  readonly entries: Entry[] = [];
  readonly tasks = new Map<string, PlayedSession>();
  readonly met = new Set<Situation>();
  state: State;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #isTask: boolean;
  readonly #late: string[] = [];
  #at = g.NOW;
  #calls = 0;

  constructor(seed: number, sessionId: string, isTask: boolean) {
    this.#seed = seed;
    this.#random = randomFrom(seed);
    this.#isTask = isTask;
    this.header = startHeader(sessionId, this.#chance(0.3));
    this.state = initialState(this.header.settings);
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  /** Costs are binary fractions, so that their sums are exact in any order. */
  #usage(): Usage {
    const unknown = this.#chance(0.04);
    if (unknown) this.met.add('unknown price');
    const draw = (most: number): number => Math.floor(this.#random() * most);
    return {
      inputTokens: draw(900),
      outputTokens: draw(300),
      cacheReadTokens: draw(500),
      cacheWriteTokens: draw(90),
      costUsd: unknown ? null : (1 + draw(64)) / 1024,
    };
  }

  #send(event: Event): void {
    this.#at += 10;
    const at = { ...event, at: this.#at };
    this.state = step(this.state, at).state;
    this.entries.push({ seq: this.entries.length + 1, event: at });
  }

  #give(given: g.Given): void {
    this.#send(g.eventOf(given, this.state));
  }

  /** The process dies, and another one opens the session. */
  #crash(): void {
    this.met.add('crash');
    if (this.state.name === 'ExecutingTools') this.met.add('crash in a batch');
    this.#resume();
  }

  #resume(): void {
    const epoch = this.state.session.epoch + 1;
    this.#send({ type: 'Resumed', at: 0, epoch, stoppedAt: this.#at });
  }

  #call(): JudgedCall {
    this.#calls += 1;
    const callId = `call-${this.#calls % 7}-${this.#calls}`;
    if (this.#chance(0.1)) return g.unknownTool(callId);
    if (this.#chance(0.4)) return g.edit(callId);
    const call = g.grep(callId);
    if (this.#isTask || this.#chance(0.7)) return call;
    return { ...call, tool: 'task', traits: { ...call.traits, spends: 'yes' } };
  }

  #answerModel(): void {
    const text = `reply ${this.entries.length}`;
    if (this.#chance(0.15)) {
      this.met.add('retry');
      const billed = this.#chance(0.5);
      if (!billed && this.state.name === 'CallingLlm') this.#late.push(this.state.requestId);
      this.#give(g.fails(billed ? { usage: this.#usage() } : {}));
    } else if (this.#chance(0.1)) {
      this.#give(g.delta(text));
      if (this.state.name === 'CallingLlm') this.#late.push(this.state.requestId);
      this.met.add('cancelled');
      this.#give(g.cancel);
    } else if (this.#chance(0.35)) this.#give(g.says(text, this.#usage()));
    else if (this.#chance(0.11)) this.#give(g.completed({ usage: this.#usage() }));
    else {
      const calls = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => this.#call());
      const reasoning = this.#chance(0.5) ? { reasoning: 'because' } : {};
      this.#give(g.completed({ text, ...reasoning, calls, usage: this.#usage() }));
    }
  }

  #outcome(batchId: string, { callId, tool, traits }: JudgedCall): Event {
    const key = taskKey(batchId, callId);
    const picture = this.#chance(0.1) && tool !== 'task';
    if (picture) this.met.add('picture');
    const spent =
      traits.spends === 'yes' ? { usage: totalsAsUsage(this.#task(key).state.session.usage) } : {};
    const outcome = {
      status: this.#chance(0.8) ? 'ok' : 'failed',
      text: `output of ${key}`,
      ...(picture ? { images: [PICTURE] } : {}),
      ...spent,
    } as const;
    return { type: 'ToolCompleted', at: 0, batchId, callId, outcome };
  }

  #task(key: string): PlayedSession {
    this.met.add('task');
    const id = `${this.header.sessionId}-${key.replace('/', '-')}`;
    const task = playSession(this.#seed * 31 + this.tasks.size + 1, id, true);
    this.tasks.set(key, task);
    return task;
  }

  #advanceBatch(state: Extract<State, { readonly name: 'ExecutingTools' }>): void {
    const { batchId, calls } = state;
    const open = calls.filter(({ status }) =>
      ['previewing', 'awaitingApproval', 'starting', 'running'].includes(status),
    );
    const call = open[Math.floor(this.#random() * open.length)];
    const callId = call?.judged.callId ?? '';
    if (this.#chance(0.03)) this.#crash();
    else if (this.#chance(0.04)) this.#give(g.cancel);
    else if (call === undefined) this.#give(g.rings());
    else if (call.status === 'awaitingApproval') {
      const denies = this.#chance(0.3);
      if (denies) this.met.add('denied');
      this.#give(denies ? g.denies(callId, 'no') : g.allows(callId));
    } else if (call.status === 'previewing')
      this.#send({ type: 'CallPreviewed', at: 0, batchId, callId, preview: { kind: 'none' } });
    else if (call.status === 'starting') this.#give(g.started(callId));
    else this.#send(this.#outcome(batchId, call.judged));
  }

  #actAsUser(): void {
    if (this.#chance(0.1)) this.#give({ type: 'CompactRequested', at: 0 });
    else if (this.#chance(0.11)) this.#give({ type: 'RetryLast', at: 0 });
    else if (this.#chance(0.12)) this.#give({ type: 'ShutdownRequested', at: 0 });
    else this.#type();
  }

  #type(): void {
    const picture = this.#chance(0.2);
    if (picture) this.met.add('picture');
    const text = `text ${this.entries.length}`;
    this.#send({
      ...{ type: 'UserInput', at: 0, text, mode: 'steer' },
      ...(picture ? { images: [PICTURE] } : {}),
    });
  }

  #endCompaction(): void {
    if (this.#chance(0.2)) {
      this.met.add('compaction failed');
      this.#give(g.compactionFails);
    } else {
      this.met.add('compaction');
      this.#give(g.compacts(this.#usage()));
    }
  }

  #endHook(): void {
    if (this.#chance(0.1)) this.#give(g.hookFails());
    else if (this.#chance(0.2)) {
      this.met.add('hook that costs');
      this.#give(g.hookDone({ usage: this.#usage(), note: 'formatted' }));
    } else this.#give(g.hookDone());
  }

  #advance(): void {
    const { state } = this;
    const usageId = this.#chance(0.2) ? this.#late.shift() : undefined;
    if (usageId !== undefined) {
      this.met.add('late usage');
      this.#send({ type: 'UsageReported', at: 0, usageId, usage: this.#usage() });
      return;
    }
    const acts: Partial<Record<State['name'], () => void>> = {
      Ready: () => this.#give(g.begin),
      WaitingForUserInput: () => this.#actAsUser(),
      CallingLlm: () => (this.#chance(0.05) ? this.#crash() : this.#answerModel()),
      Error: () => (this.#chance(0.1) ? this.#crash() : this.#give(g.rings())),
      PostToolsHook: () => this.#endHook(),
      Compacting: () => this.#endCompaction(),
      ShuttingDown: () => this.#resume(),
    };
    if (state.name === 'ShuttingDown') this.met.add('closed and resumed');
    if (state.name === 'ExecutingTools') this.#advanceBatch(state);
    else acts[state.name]?.();
  }

  play(): PlayedSession {
    const length = this.#isTask ? 15 : 30 + Math.floor(this.#random() * EVENTS_MAX);
    while (this.entries.length < length) this.#advance();
    return this;
  }

  /** A copy up to an entry in the middle, which goes on by itself. */
  fork(): PlayedSession {
    const seq = Math.floor(this.entries.length / 2);
    const fork = new SessionPlayer(this.#seed + 7, `${this.header.sessionId}-fork`, false);
    const parent = { sessionId: this.header.sessionId, seq };
    Object.assign(fork, { header: { ...this.header, sessionId: fork.header.sessionId, parent } });
    fork.state = initialState(this.header.settings);
    for (const { event } of this.entries.slice(0, seq)) fork.#copy(event);
    for (const [key, task] of this.tasks) fork.tasks.set(key, task);
    for (const one of this.met) fork.met.add(one);
    fork.met.add('fork');
    fork.#resume();
    return fork.play();
  }

  #copy(event: Event): void {
    this.#at = event.at;
    this.state = step(this.state, event).state;
    this.entries.push({ seq: this.entries.length + 1, event });
  }
}

export const playSession = (seed: number, sessionId: string, isTask = false): PlayedSession => {
  const player = new SessionPlayer(seed, sessionId, isTask);
  const played = player.play();
  return !isTask && seed % 4 === 0 ? player.fork() : played;
};

/** The trajectory of a session as the command would make it. */
export const exportPlayed = (
  { header, entries, tasks }: PlayedSession,
  rootId: string = header.sessionId,
): Trajectory =>
  createTrajectory({
    header,
    steps: steps(header, entries),
    version: '1.2.3',
    rootId,
    prompt: {
      instructions: 'You are Pawl.',
      tools: [{ name: 'grep', description: 'Searches.', inputSchema: { type: 'object' } }],
    },
    picturePath: ({ sha256 }) => `pictures/${sha256}.png`,
    findTask: ({ batchId, callId }) => {
      const task = tasks.get(taskKey(batchId, callId));
      return task === undefined ? null : exportPlayed(task, rootId);
    },
  });
