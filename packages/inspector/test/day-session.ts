import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import * as given from '../../../test/kit/agent/given.js';
import { settingsFrom } from '../../../test/kit/agent/trace-player.js';
import { STARTED_AT, StoredSession } from '../../../test/kit/inspector/stored-session.js';

/**
 * A prepared session of a long day for people who have never seen it: 300 rounds in eight turns, slow tests that fail
 * again and again, a dear request after a long wait, an overloaded provider, summaries, and a crash in the middle of a
 * command. Always the same.
 */

const SETTINGS = settingsFrom(
  'careful {"hooks":"mutating","autoCommit":"off","windowTokens":120000,"limits":{"usd":60,"rounds":200}}',
);
const ROUNDS_IN_ALL = 300;

type Plan = {
  readonly tool: string;
  readonly title: string;
  readonly input: Readonly<Record<string, string>>;
  readonly ms: number;
  readonly fails: string | null;
  readonly text: string;
  readonly diff?: string;
};

const FILES = ['charge', 'refund', 'webhook', 'ledger', 'payout', 'receipt', 'retry', 'currency'];
const fileOf = (round: number): string =>
  `src/payments/${FILES[Math.floor(round / 4) % FILES.length]}.ts`;

const diffOf = (path: string, round: number): string =>
  [
    `--- a/${path}`,
    `+++ b/${path}`,
    `@@ -${round},5 +${round},4 @@`,
    ` export const step${round} = (input: Input) => {`,
    `-  callback(input, (error, done) => {`,
    `-    if (error) throw error;`,
    `+  const done = await request(input);`,
    `   return done;`,
    ` };`,
  ].join('\n');

/** What a round does: it reads, reads, edits, and runs the tests. */
const planOf = (round: number): Plan => {
  const path = fileOf(round);
  const kind = round % 4;
  if (kind === 3) {
    const fails = round % 12 === 3 || round % 12 === 7;
    return {
      tool: 'bash',
      title: 'npm test',
      input: { command: 'npm test' },
      ms: 41_000 + (round % 7) * 3_000,
      fails: fails ? `${1 + (round % 5)} of 412 tests fail: payout.test.ts, expected 'paid'` : null,
      text: 'All 412 tests pass.',
    };
  }
  if (kind === 2)
    return {
      tool: 'edit',
      title: path,
      input: { path },
      ms: 90,
      fails: round % 26 === 2 ? `The text to replace is not in ${path}.` : null,
      text: `1 replacement in ${path}`,
      diff: diffOf(path, round),
    };
  return {
    tool: kind === 0 ? 'read' : 'grep',
    title: kind === 0 ? path : 'callback(',
    input: kind === 0 ? { path } : { pattern: 'callback(' },
    ms: 60,
    fails: null,
    text: `export const step${round} = () => undefined;\n`.repeat(20),
  };
};

const callOf = ({ tool, title, input }: Plan, callId: string): JudgedCall => ({
  callId,
  tool,
  input,
  title,
  verdict: { kind: 'ok' },
  traits: {
    effect: tool === 'bash' ? 'opaque' : tool === 'edit' ? 'probeable' : 'pure',
    parallelSafe: tool !== 'bash' && tool !== 'edit',
    mutating: tool === 'bash' || tool === 'edit',
    deadlineMs: 600_000,
  },
  facts: { argv: [], paths: [], hosts: [], shape: `${tool} ${title}` },
});

const PROMPTS = [
  [
    'Move everything under src/payments from callbacks to async functions. All tests must pass.',
    30,
  ],
  ['The refunds are wrong now: the second one is lost. Find out why.', 42],
  ['Do the webhook too.', 38],
  ['Why are the tests so slow? Make them faster if it is easy.', 26],
  ['Go on with ledger and payout.', 60],
  ['The currency module has its own callbacks, take them as well.', 44],
  ['Write a changelog entry, and remove the old helper.', 22],
  ['Run everything once more and tell me what is left.', 38],
] as const;

/** The round in whose command the process dies, and the one before whose prompt the user was away. */
const CRASH_ROUND = 155;
const AWAY_ROUND = 197;
const OVERLOADED_ROUNDS = [57, 58, 190];

class Day {
  readonly events: Event[] = [];
  state: State = initialState(SETTINGS);
  #at = STARTED_AT;
  #context = 14_000;

  push(afterMs: number, wanted: given.Given): void {
    this.#at += afterMs;
    const event = { ...given.eventOf(wanted, this.state), at: this.#at };
    const taken = step(this.state, event);
    if (taken.diagnostics.length > 0)
      throw new Error(`event ${this.events.length + 1}: ${taken.diagnostics[0]?.why}`);
    ({ state: this.state } = taken);
    this.events.push(event);
    if (this.state.name === 'Compacting' && event.type !== 'CompactionCompleted') this.#summarise();
  }

  #summarise(): void {
    const read = this.#context;
    this.#context = 16_000;
    this.push(
      14_000,
      given.compacts({ ...given.usage(0.09, 300), cacheReadTokens: read, outputTokens: 1_400 }),
    );
  }

  round(round: number, text: string): void {
    const plan = planOf(round);
    if (OVERLOADED_ROUNDS.includes(round))
      for (let times = 0; times < 2; times++) {
        this.push(2_000, given.fails({ message: 'the provider is overloaded (529)' }));
        this.push(round === 190 ? 45_000 : 4_000, given.rings());
      }
    const calls = [callOf(plan, `c${round}`)];
    this.push(this.#thinkMs(round), given.completed({ text, calls, usage: this.#usage(round) }));
    this.#call(plan, round);
    while (this.state.name === 'PostToolsHook')
      this.push(300, given.hookDone({ dirty: plan.tool === 'edit' }));
  }

  answer(text: string): void {
    this.push(6_000, given.completed({ text, usage: this.#usage(0) }));
  }

  #thinkMs = (round: number): number => 3_000 + (round % 9) * 700;

  /** Most of a prompt comes from the cache, but for the one after a long wait. */
  #usage(round: number) {
    this.#context += 620;
    const cached = round === AWAY_ROUND ? 0 : this.#context - 620;
    const fresh = this.#context - cached;
    const costUsd = (cached * 0.3 + fresh * 3.75 + 240 * 15) / 1e6;
    return {
      inputTokens: 0,
      cacheWriteTokens: fresh,
      cacheReadTokens: cached,
      outputTokens: 240,
      costUsd,
    };
  }

  #call(plan: Plan, round: number): void {
    const callId = `c${round}`;
    while (this.state.name === 'ExecutingTools') {
      const status = this.state.calls.find(({ judged }) => judged.callId === callId)?.status;
      if (status === 'awaitingApproval') this.push(4_000, given.allows(callId, 'session'));
      else if (status === 'starting') this.push(10, given.started(callId));
      else this.#end(plan, round, callId);
    }
  }

  #end({ ms, fails, text, tool, diff }: Plan, round: number, callId: string): void {
    if (round === CRASH_ROUND) this.push(2_520_000, given.resumed);
    const { state } = this;
    if (state.name !== 'ExecutingTools') throw new Error(`the call ended in ${state.name}`);
    const { batchId } = state;
    const outcome =
      fails === null
        ? ({ status: 'ok', text, ...(diff === undefined ? {} : { diff }) } as const)
        : ({ status: 'failed', text: fails } as const);
    this.push(round === CRASH_ROUND ? 300 : ms, {
      type: 'ToolCompleted',
      at: 0,
      batchId,
      callId,
      outcome,
    });
    if (tool === 'edit' && fails === null) this.#checkpoint(batchId, round);
  }

  #checkpoint(batchId: string, round: number): void {
    const files = [{ path: fileOf(round), change: 'changed', added: 1, removed: 2 }] as const;
    this.push(5, {
      type: 'CheckpointTaken',
      at: 0,
      checkpoint: `checkpoint-${round}`,
      by: 'agent',
      batchId,
      changes: { created: 0, changed: 1, deleted: 0, files },
      leftOut: [],
    });
  }
}

const dayEvents = (): readonly Event[] => {
  const day = new Day();
  day.push(0, given.begin);
  let round = 0;
  for (const [prompt, rounds] of PROMPTS) {
    day.push(round === AWAY_ROUND - 1 ? 1_500_000 : 40_000, given.input(prompt));
    // Each turn ends with an answer, which is a round too.
    for (let each = 1; each < rounds; each++) {
      round += 1;
      day.round(round, `I look at **${fileOf(round)}**: \`step${round}\` still takes a callback.`);
    }
    round += 1;
    day.answer(
      round === ROUNDS_IN_ALL
        ? 'All eight modules under `src/payments` are async now, and all 412 tests pass. Left over: the retry queue still polls once a second, and `payout.test.ts` needs 20 s of the 45.'
        : `Done so far: ${round} rounds.\n\n- \`${fileOf(round)}\` is async\n- the tests run`,
    );
  }
  day.push(30_000, given.shutdown);
  return day.events;
};

/** Stores the session `day`; returns the number of its entries. */
export const storeDay = async (folder: string): Promise<number> => {
  const events = dayEvents();
  const stored = await StoredSession.create(folder, 'day', SETTINGS);
  await stored.add(events);
  await stored.journal.close();
  return events.length;
};
