import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { countCases, SEED } from '../../../../test/tier.js';
import type { Event, On } from '../../src/machine/event.js';
import { initialState, step } from '../../src/machine/machine.js';
import { getAllowance } from '../../src/machine/moves/request.js';
import type { Prices, Usage } from '../../src/machine/settings.js';
import { findReservation, measuredId, type State } from '../../src/machine/state.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';

// 20,000 random events here; PAWL_COUNT=1000000 for more, PAWL_SEED repeats.

const COUNT = countCases(20_000);
/** Then another family of sessions begins. */
const FAMILY = 300;
const AT = g.NOW;
const DEPTH_MAX = 2;

const explore = (callId: string): JudgedCall => {
  const call = g.grep(callId);
  return { ...call, tool: 'explore', traits: { ...call.traits, effect: 'opaque', spends: 'yes' } };
};

/** Mulberry32: the same numbers for the same seed. */
const createRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

const CHEAP: Prices = { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 };
const DEAR: Prices = { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 };

type Figures = { events: number; requests: number; children: number; stops: number; lost: number };
/** What the provider truly charges for a request, and what of it is known while it runs. */
type Bill = { readonly id: string; readonly whole: Usage; readonly partial: Usage };

/** A session with its provider, whose true costs the machine never sees. */
class Life {
  state: State;
  /** Dollars that were truly charged, here and in all children. */
  charged = 0;
  /** The largest sum that the limits have allowed so far. */
  allowed: number;
  readonly #random: () => number;
  readonly #figures: Figures;
  readonly #parent: Life | null;
  #bills: Bill[] = [];
  #child: { readonly life: Life; readonly batchId: string; readonly callId: string } | null = null;
  /** Text of the conversation that was sent, and its true tokens. */
  #bytes = 0;
  #tokens = 0;
  #calls = 0;

  constructor(usd: number, random: () => number, figures: Figures, parent: Life | null) {
    this.#random = random;
    this.#figures = figures;
    this.#parent = parent;
    this.allowed = usd;
    const hooks = random() < 0.5 ? 'always' : 'never';
    const cancelMode = random() < 0.3 ? 'drain' : 'abort';
    const limits = { usd, rounds: 100 };
    const patch = { limits, hooks, cancelMode, autoRearm: 'off', windowTokens: 20_000 } as const;
    this.state = initialState(settingsOf(patch));
  }

  #is(share: number): boolean {
    return this.#random() < share;
  }

  #take(event: Event): undefined {
    const before = this.state;
    const { state, actions } = step(before, event);
    this.state = state;
    this.#figures.events += 1;
    for (const action of actions)
      if (action.type === 'DisplayNotice' && action.text.startsWith('stopped: the next request'))
        this.#figures.stops += 1;
    this.check();
  }

  #charge(usd: number): undefined {
    this.charged += usd;
    if (this.#parent !== null) this.#parent.#charge(usd);
  }

  check(): undefined {
    assert.ok(
      this.charged <= this.allowed,
      `$${this.charged} of $${this.allowed} charged in ${this.state.name} (PAWL_SEED=${SEED})`,
    );
  }

  /** The runtime measures a request; if the machine lets it, the provider charges it. */
  #send(id: string): undefined {
    const isMain = this.state.name === 'CallingLlm';
    const added = Math.floor(this.#random() * 4_000);
    const bytes = (isMain ? this.#bytes : 0) + added;
    const prices = this.#is(0.3) ? DEAR : CHEAP;
    const outputTokensMax = this.#is(0.2) ? 500 : 64_000;
    const model = this.#is(0.9) ? 'test/model' : 'test/other';
    this.#take({
      type: 'RequestMeasured',
      at: AT,
      usageId: id,
      model,
      bytes,
      images: 0,
      outputTokensMax,
      prices,
    });
    const held = findReservation(this.state.session, id);
    if (held === undefined || measuredId(this.state) !== id) return;
    // For another model the same text may be more tokens, but no more than its bytes.
    const other = model === 'test/model' ? this.#tokens : this.#bytes;
    const tokens = Math.ceil((isMain ? other : 0) + added * (0.15 + 0.85 * this.#random()));
    if (isMain && model === 'test/model') {
      this.#bytes = bytes;
      this.#tokens = tokens;
    }
    const inputTokens = Math.min(bytes, tokens) + Math.floor(this.#random() * 1_000);
    const outputTokens = this.#is(0.3)
      ? held.outputTokens
      : Math.floor(this.#random() * held.outputTokens);
    const cost = (output: number): number =>
      (inputTokens * prices.cacheWrite + output * prices.output) / 1e6;
    const counted = {
      inputTokens: 0,
      outputTokens,
      cacheReadTokens: 0,
      cacheWriteTokens: inputTokens,
    };
    const whole = { ...counted, costUsd: cost(outputTokens) };
    const partial = { ...counted, outputTokens: 1, costUsd: cost(1) };
    this.#figures.requests += 1;
    this.#bills = [...this.#bills.slice(-8), { id, whole, partial }];
    this.#charge(whole.costUsd);
    this.check();
  }

  #bill(id: string): Bill | undefined {
    return this.#bills.findLast((bill) => bill.id === id);
  }

  /** What the provider says of a whole reply: the truth, or nothing that can be counted. */
  #report(id: string): Usage {
    const bill = this.#bill(id);
    if (bill !== undefined && this.#is(0.8)) return bill.whole;
    this.#figures.lost += 1;
    return g.usage(null, 0);
  }

  /** One event, of this session or of a child. */
  live(): undefined {
    const child = this.#child;
    if (child !== null && this.#is(0.7)) return child.life.live();
    const bill = this.#bills[Math.floor(this.#random() * this.#bills.length)];
    // Late, doubled, of anything; of a request whose reply is read, only when it is over.
    if (bill !== undefined && bill.id !== measuredId(this.state) && this.#is(0.1))
      return this.#take(g.reports(bill.id, this.#is(0.5) ? bill.partial : bill.whole));
    if (this.#is(0.02)) return this.#crash();
    if (this.#is(0.02)) return this.#limit();
    this.#act();
  }

  /** The process dies: what was in flight is never reported. */
  #crash(): undefined {
    this.#bills = [];
    // The task is found again by its journal.
    if (this.#child !== null) this.#child.life.#crash();
    this.#take({ ...g.resumed, epoch: this.state.session.epoch + 1 } as On<'Resumed'>);
  }

  /** The user sets another limit, also a lower one: what is spent by then may be above it. */
  #limit(): undefined {
    if (this.#parent !== null) return;
    const now = this.state.session.settings.limits.usd;
    if (now === 'unlimited') return;
    const usd = now * (this.#is(0.5) ? 1.5 : 0.7);
    this.allowed = Math.max(this.allowed, usd);
    this.#take(g.approve('usd', usd));
  }

  #act(): undefined {
    const { state } = this;
    switch (state.name) {
      case 'CallingLlm':
        return this.#bill(state.requestId) === undefined
          ? this.#send(state.requestId)
          : this.#answer(state.requestId);
      case 'Compacting':
        return this.#summarise(state.compactionId);
      case 'PostToolsHook':
        return this.#hook(state.hookId);
      case 'ExecutingTools':
        return this.#work(state.batchId);
      case 'Error':
        return this.#take(g.retryNow);
      default:
        return this.#take(this.#is(0.1) ? g.compact : g.input('more'));
    }
  }

  #answer(id: string): undefined {
    const roll = this.#random();
    if (roll < 0.1) return this.#take(g.cancel);
    const at = { requestId: id } as const;
    const partial = this.#bill(id)?.partial;
    if (roll < 0.2) return this.#fail('unreachable', id);
    if (roll < 0.3) {
      const shown = partial === undefined ? {} : { usage: partial };
      return this.#take(g.eventOf(g.fails({ ...at, kind: 'overloaded', ...shown }), this.state));
    }
    this.#calls += 1;
    const calls = this.#is(0.6) ? [explore(`c${this.#calls}`)] : undefined;
    const said = { ...at, usage: this.#report(id), text: 'well', ...(calls ? { calls } : {}) };
    this.#take(g.eventOf(g.completed(said), this.state));
  }

  #fail(kind: 'unreachable', requestId: string): undefined {
    this.#take(g.eventOf(g.fails({ requestId, kind, retryable: true }), this.state));
  }

  #summarise(id: string): undefined {
    if (this.#bill(id) === undefined) return this.#send(id);
    const about = { at: AT, compactionId: id };
    const usage = this.#report(id);
    if (this.#is(0.4))
      return this.#take({ type: 'CompactionFailed', ...about, message: 'cut', usage: null });
    this.#take({ type: 'CompactionCompleted', ...about, summary: 'so', usage });
    this.#bytes = 0;
    this.#tokens = 0;
  }

  #hook(id: string): undefined {
    if (this.#is(0.5) && this.#bill(id) === undefined) return this.#send(id);
    const isSent = findReservation(this.state.session, id) !== undefined;
    const usage = isSent ? this.#report(id) : null;
    this.#take({ ...(g.eventOf(g.hookDone(), this.state) as On<'HookCompleted'>), usage });
  }

  /** A call that spends has a session of its own. */
  #work(batchId: string): undefined {
    const { state } = this;
    if (state.name !== 'ExecutingTools') return;
    const open = state.calls.find(({ status }) => status === 'starting' || status === 'running');
    if (open === undefined) return this.#take(g.cancel);
    const { callId } = open.judged;
    const about = { at: AT, batchId, callId };
    if (open.status === 'starting') {
      const { usd } = getAllowance(state.session, `${batchId}/${callId}`);
      assert.equal(usd.type, 'left');
      const isDeep = this.#depth() >= DEPTH_MAX;
      if (usd.type === 'left' && usd.amount > 0 && !isDeep) {
        this.#figures.children += 1;
        const life = new Life(usd.amount, this.#random, this.#figures, this);
        this.#child = { life, batchId, callId };
      }
      return this.#take({ type: 'ToolStarted', ...about });
    }
    const spent = this.#child?.life.state.session;
    if (this.#is(0.1)) {
      // Stopped, and nobody says what it has cost.
      const outcome = { status: 'timedOut', text: 'too slow' } as const;
      this.#child = null;
      return this.#take({ type: 'ToolCompleted', ...about, outcome });
    }
    if (this.#is(0.7) && spent !== undefined) return this.#child?.life.live();
    const usd = spent === undefined ? 0 : this.#child?.life.committedUsd();
    this.#child = null;
    const outcome = { status: 'ok', text: 'done', usage: g.usage(usd, 0) } as const;
    this.#take({ type: 'ToolCompleted', ...about, outcome });
  }

  /** What it counts as spent once it is closed. */
  committedUsd(): number {
    const { usage, reserved = [] } = this.state.session;
    return usage.costUsd + reserved.reduce((sum, { usd }) => sum + usd, 0);
  }

  #depth(): number {
    return this.#parent === null ? 0 : this.#parent.#depth() + 1;
  }
}

test('no session spends above its limit, whatever is reported of it', (t) => {
  const random = createRandom(SEED);
  const figures: Figures = { events: 0, requests: 0, children: 0, stops: 0, lost: 0 };
  while (figures.events < COUNT) {
    const until = figures.events + FAMILY;
    const life = new Life(0.2 + random() * 3, random, figures, null);
    while (figures.events < until) life.live();
  }
  t.diagnostic(`PAWL_SEED=${SEED} ${JSON.stringify(figures)}`);
  for (const count of Object.values(figures)) assert.ok(count > 0, JSON.stringify(figures));
});
