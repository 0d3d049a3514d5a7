import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../../../test/kit/agent/mutations.js';
import { countCases, SEED } from '../../../test/tier.js';
import type { CallBounds } from '../src/run/settings.js';
import { getLineage } from '../src/tree/ledger.js';
import { stepTree } from '../src/tree/step-tree.js';
import { countedUsd, initialTree, type Tree } from '../src/tree/tree-state.js';
import * as g from './given.js';
import { treeFaults } from './tree-faults.js';
import { actionsOf, allOf, lastOf, outcome, running } from './walker.js';

// Under a limit in dollars each call has a cap, and a run never spends above its limit. 5,000 random
// events here; PAWL_COUNT=1000000 for more, PAWL_SEED repeats.

const COUNT = countCases(5_000);

const bounds: CallBounds = {
  byteUsd: 0.000_001,
  runUsd: 0.002,
  plainUsd: 0.001,
  shortestReplyUsd: 0.005,
  longestReplyUsd: 0.1,
};
const rate = (callUsd: number) => ({
  callUsd,
  callTokens: 0,
  characterUsd: 0,
  characterTokens: 0,
});
const reserve = { expected: rate(0.001), worst: rate(9), basis: 'estimated', bounds } as const;
const capped = (usd: number, more: g.SettingsPatch = {}): g.SettingsPatch => ({
  reserve,
  limits: { usd },
  ...more,
});
const capOf = (walker: ReturnType<typeof running>): number | undefined =>
  lastOf(walker, 'CallModel')[0]?.capUsd;
const spentOf = ({ ledger }: Tree): number => ledger.accounts.n0?.spent.costUsd ?? 0;

test('a call has the worst case of its bytes as its cap, and without a limit it has none', () => {
  const walker = running(capped(5));
  walker.send(g.prints('x'));
  const cap = capOf(walker) ?? 0;
  assert.ok(cap > 0.102 && cap < 0.106, `${cap}`);
  assert.equal(capOf(running({ reserve })), undefined);
  const [first] = allOf(running({ ...capped(5), reserve: { ...reserve.expected } }), 'CallModel');
  assert.equal(first?.capUsd, undefined, 'older journals have no bounds');
});

test('a text of many bytes has a higher cap than one of as many letters', () => {
  const capFor = (text: string): number => {
    const walker = running(capped(5));
    walker.send(g.asks([text.repeat(1_000)]));
    return capOf(walker) ?? 0;
  };
  // é: two bytes; 語: three; 𝕏: two halves, four bytes.
  const letters = capFor('e');
  for (const [text, bytes] of [
    ['é', 2],
    ['語', 3],
    ['𝕏', 4],
  ] as const)
    assert.equal((capFor(text) - letters).toFixed(6), ((bytes - 1) * 0.001).toFixed(6), text);
});

test('near its limit a call has what is left as its cap, and below the shortest reply it is not sent', () => {
  const walker = running(capped(0.2));
  walker.send(g.prints('x'), g.says(g.program('y'), { costUsd: 0.1 }), g.prints('y'));
  assert.ok((capOf(walker) ?? 1) < 0.1);
  walker.send(g.says(g.program('z'), { costUsd: 0.095 }), g.prints('z'));
  const ended = outcome(walker);
  assert.ok(ended.status === 'stopped' && ended.reason === 'usd', JSON.stringify(ended));
  assert.match(ended.message, /could cost \$0\.00\d+, and \$0\.00\d+ are left: raise.*--max-usd/);
});

test('calls that were open at a crash count at their caps, and are sent again only if that leaves enough', () => {
  const walker = running(capped(0.15));
  walker.send(g.prints('x'));
  const cap = capOf(walker) ?? 0;
  walker.send(g.resumed(1));
  assert.equal(walker.tree().ledger.accounts.n0?.unknown.usd, cap);
  assert.equal(countedUsd(walker.tree()).toFixed(6), (cap + (capOf(walker) ?? 0)).toFixed(6));
  walker.send(g.resumed(2));
  assert.equal(outcome(walker).status, 'stopped');
  assert.ok(countedUsd(walker.tree()) <= 0.15);
});

const booked = (given: g.Given): { readonly usd: string; readonly said: string } => {
  const walker = running(capped(5));
  walker.send(g.prints('x'));
  const cap = capOf(walker) ?? 0;
  const step = stepTree(walker.tree(), g.eventOf(given, walker.tree()));
  const said = actionsOf([step], 'DisplayWarning').find(({ kind }) => kind === 'usage');
  const usd = spentOf(step.state);
  return { usd: usd === cap ? 'cap' : usd.toFixed(3), said: said?.text ?? '' };
};
const failing = (failure: object, more: object = {}): g.Given => {
  const given = g.fails(failure);
  return (tree) => ({ ...g.eventOf(given, tree), ...more }) as never;
};

test('what nobody can account for counts as spent, and is told', () => {
  const unknown = /the cost of a request is not known/;
  const rows = [
    ['a reply without usage', g.says('x', { costUsd: null }), 'cap', unknown],
    ['a broken line', failing({ kind: 'unreachable' }), 'cap', unknown],
    ['broken under way', failing({}, { firstPieceAt: g.NOW }), 'cap', unknown],
    ['a part', failing({ costUsd: 0.01 }, { outputUsd: 0.05 }), '0.060', unknown],
    ['a part, at most the cap', failing({ costUsd: 0.09 }, { outputUsd: 0.05 }), 'cap', unknown],
    ['a refusal', failing({ kind: 'overloaded' }), '0.000', /^$/],
    ['more than the cap', g.says('x', { costUsd: 0.5 }), '0.500', /the provider charged \$0\.5/],
  ] as const;
  for (const [title, given, usd, words] of rows) {
    const result = booked(given);
    assert.equal(result.usd, usd, title);
    assert.match(result.said, words, title);
  }
});

test('a call that could not be sent costs nothing', () => {
  const given = failing({ kind: 'unreachable' });
  const unsent: g.Given = (tree) => {
    const event = g.eventOf(given, tree);
    assert.ok(event.type === 'ModelFailed');
    return { ...event, error: { ...event.error, sent: 'no' } };
  };
  assert.equal(booked(unsent).usd, '0.000');
});

// ---- Hostile usage over trees ----

type Bill = {
  readonly node: string;
  readonly requestId: string;
  readonly usd: number;
  readonly capUsd: number;
};

/** A tree of runs with its provider, whose true costs the machine never sees. */
class Life {
  tree: Tree;
  events = 0;
  readonly #random: () => number;
  readonly #ignoresCaps: boolean;
  #allowed: number;
  readonly #childUsd: number;
  readonly #charged = new Map<string, number>();
  #open: Bill[] = [];
  #past: Bill[] = [];

  constructor(random: () => number, ignoresCaps: boolean) {
    this.#random = random;
    this.#ignoresCaps = ignoresCaps;
    this.#allowed = 0.05 + random() * 1.5;
    this.#childUsd = 0.02 + random() * 0.5;
    const settings = g.settingsOf({
      reserve: random() < 0.7 ? reserve : { ...reserve, worst: rate(0.02), basis: 'stated' },
      limits: { usd: this.#allowed },
      childLimits: random() < 0.5 ? { usd: this.#childUsd } : {},
      depthMax: 1 + Math.floor(random() * 3),
      openCallsMax: 1 + Math.floor(random() * 8),
    });
    this.tree = initialTree(settings);
    this.#take(g.started);
  }

  #is(share: number): boolean {
    return this.#random() < share;
  }

  #take(given: g.Given): undefined {
    const step = stepTree(this.tree, g.eventOf(given, this.tree));
    this.tree = step.state;
    this.events += 1;
    for (const action of step.actions)
      if (action.type === 'CallModel') this.#charge(action.node, action.requestId, action.capUsd);
    assert.deepEqual(treeFaults(this.tree, 8), []);
    const counted = countedUsd(this.tree);
    assert.ok(counted <= this.#allowed, `$${counted} counted of $${this.#allowed}`);
  }

  /** The provider charges when the request comes, whatever becomes of its reply. */
  #charge(node: string, requestId: string, capUsd = 0): undefined {
    assert.ok(capUsd > 0, `${requestId} has no cap`);
    const most = this.#ignoresCaps ? 0.11 : capUsd;
    const usd = this.#is(0.1) ? 0 : this.#is(0.3) ? most : this.#random() * most;
    this.#open.push({ node, requestId, usd, capUsd });
    for (const id of getLineage(node)) {
      const charged = (this.#charged.get(id) ?? 0) + usd;
      this.#charged.set(id, charged);
      const isChild = id !== 'n0' && this.tree.ledger.accounts[id]?.limits.usd !== 'unlimited';
      const limit = id === 'n0' ? this.#allowed : isChild ? this.#childUsd : this.#allowed;
      assert.ok(charged <= limit, `${id}: $${charged} of $${limit} charged`);
    }
  }

  get isOver(): boolean {
    return this.tree.name === 'Ended' && this.#open.length === 0;
  }

  live(): undefined {
    const { name } = this.tree;
    if (this.#is(0.02)) return this.#crash();
    const [twice] = this.#past.slice(Math.floor(this.#random() * this.#past.length));
    if (twice !== undefined && this.#is(0.1)) return this.#answer(twice);
    if (name === 'Running' && this.#is(0.02)) return this.#take(g.shutdown);
    if (name === 'ShutDown' && this.#is(0.5)) {
      if (this.#is(0.3)) this.#limit();
      // Its calls were waited for before the process ended, or it was killed.
      return this.#crash();
    }
    if (this.#is(0.005)) return this.#take(g.cancels());
    const inside = this.#insideEvents();
    const pick = Math.floor(this.#random() * (inside.length + this.#open.length));
    const event = inside[pick];
    if (event !== undefined) return this.#take(event);
    const bill = this.#open[pick - inside.length];
    if (bill === undefined) return this.#crash();
    this.#open = this.#open.filter((one) => one !== bill);
    this.#past = [...this.#past.slice(-8), bill];
    this.#answer(bill);
  }

  /**
   * The next process begins: nothing comes of calls of the last one, also not twice. A call whose
   * reply was counted but not used is sent again under its id.
   */
  #crash(): undefined {
    this.#open = [];
    this.#past = [];
    this.#take(g.resumed(this.tree.epoch + 1));
  }

  #limit(): undefined {
    const usd = this.#allowed * (this.#is(0.7) ? 1.3 : 0.8);
    this.#allowed = Math.max(this.#allowed, usd);
    this.#take({ type: 'LimitsChanged', at: g.NOW, node: 'n0', limits: { usd } });
  }

  /** What programs and environments do. */
  #insideEvents(): readonly g.Given[] {
    if (this.tree.name !== 'Running') return [];
    return Object.entries(this.tree.nodes).flatMap(([who, run]): readonly g.Given[] => {
      if (run.name === 'DONE') return [];
      if (run.run.environment === 'starting') return [g.environmentIs('kept', who)];
      if (run.work.kind === 'retrying') return [g.rings(who)];
      if (run.work.kind !== 'running') return [];
      const asking = { who, kind: this.#is(0.5) ? 'rlm' : 'llm', ordinal: 1 } as const;
      if (run.work.open.length > 0) return this.#is(0.1) ? [g.ends({ status: 'died' }, who)] : [];
      if (run.work.asked === 0 && this.#is(0.6))
        return [g.asks(g.promptsOf(1 + Math.floor(this.#random() * 12)), asking)];
      return [g.ends({ stdout: `${this.events}` }, who)];
    });
  }

  /** The truth, a part of it, or nothing that can be counted. */
  #answer({ node: who, requestId, usd, capUsd }: Bill): undefined {
    const at = { who, requestId };
    const roll = this.#random();
    const text = this.#is(0.7) ? g.program(`look(${this.events})`) : 'words';
    if (roll < 0.5) return this.#take(g.says(text, { ...at, costUsd: usd }));
    if (roll < 0.6) return this.#take(g.says(text, { ...at, costUsd: null }));
    const part = usd * this.#random();
    const outputUsd = this.#is(0.5) ? { outputUsd: Math.max(0, capUsd - part) } : {};
    if (roll < 0.75) return this.#take(failing({ ...at, costUsd: part }, outputUsd));
    if (roll < 0.9 || usd > 0)
      return this.#take(failing({ ...at, kind: 'unreachable', retryable: true }, outputUsd));
    return this.#take(failing({ ...at, kind: 'overloaded', retryable: true }));
  }
}

const live = (count: number, ignoresCaps: boolean): number => {
  const random = randomFrom(SEED);
  let events = 0;
  while (events < count) {
    const life = new Life(random, ignoresCaps);
    while (!life.isOver && life.events < 400) life.live();
    events += life.events;
  }
  return events;
};

test('no tree of runs spends above its limit, whatever is reported of it', (t) => {
  const events = live(COUNT, false);
  t.diagnostic(`PAWL_SEED=${SEED}, ${events} events`);
  assert.ok(events >= COUNT);
});

test('the control: with replies as long as without caps it would', () => {
  assert.throws(() => live(20_000, true), /charged|counted/);
});
