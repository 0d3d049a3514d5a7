import assert from 'node:assert/strict';
import { messagesOf, requestMessages } from '@pawl/agent/machine/conversation';
import type { Usage } from '@pawl/agent/machine/settings';
import { faultsOf } from '../../../test/kit/agent/walker.js';
import type { TreeAction } from '../src/run/action.js';
import type { TreeEvent } from '../src/run/event.js';
import { projectEdges, type SeedCursor } from '../src/run/seed-projection.js';
import type { Tree, TreeStep } from '../src/tree/tree-state.js';
import { treeFaults } from './tree-faults.js';

/**
 * What a tree promises to whoever performs its actions, checked from outside, by its events and actions alone:
 *
 * 1. Spending: every last word that carries usage is in the root's account, once, whatever became of its run.
 * 2. Never more open calls than allowed; each call has been asked for once between two openings.
 * 3. Each sub-call that a living cell asked for is answered at most once, with a text per prompt.
 * 4. Code runs and variables are read only in an environment that is ready, one at a time.
 * 5. A run that is over has nothing open: no call, no timer, no environment; at the end nobody has.
 * 6. Every request is valid for a strict provider.
 * 7. In the seed's words every step is legal.
 * 8. Nothing is wrong with the tree in itself (tree-faults.ts).
 * 9. No event is silent.
 */

type Cell = { readonly cellId: string; readonly answered: Set<string> };

export class Promises {
  readonly #openCallsMax: number;
  readonly #unbooked = new Map<string, string>();
  readonly #openCalls = new Map<string, string>();
  readonly #timers = new Map<string, string>();
  readonly #environments = new Map<string, 'starting' | 'ready'>();
  readonly #cells = new Map<string, Cell>();
  readonly #readings = new Map<string, string>();
  readonly #asked = new Map<string, number>();
  readonly #cursors = new Map<string, SeedCursor>();
  #costUsd = 0;
  #tokens = 0;
  #unpriced = 0;

  constructor(openCallsMax: number) {
    this.#openCallsMax = openCallsMax;
  }

  /** Looks at one step. */
  check(before: Tree, event: TreeEvent, step: TreeStep): void {
    const where = `${before.name}, ${event.node} ${before.nodes[event.node]?.name ?? 'gone'} on ${event.type}`;
    this.#hear(before, event);
    for (const action of step.actions) this.#see(action, step.state, where);
    this.#checkProjection(step, where);
    this.#checkSpending(step.state, where);
    assert.deepEqual(treeFaults(step.state, this.#openCallsMax), [], where);
    this.#checkEnds(before, step.state, where);
    const silent =
      step.path.length === 0 && step.diagnostics.length === 0 && step.actions.length === 0;
    const changed = before.name !== step.state.name || event.type === 'LimitsChanged';
    assert.ok(!silent || changed, `${where}: silent`);
  }

  #hear(before: Tree, event: TreeEvent): void {
    switch (event.type) {
      case 'LimitsChanged':
        // the seed's run is over; what goes on is no part of it
        if (before.name === 'Ended') this.#cursors.set(event.node, 'ended');
        break;
      case 'ModelReplied':
      case 'ModelFailed':
        this.#book(event.requestId, event.usage);
        if (before.name !== 'ShutDown') this.#openCalls.delete(event.requestId);
        break;
      case 'TimerFired':
        if (before.name === 'Running') this.#timers.delete(event.timerId);
        break;
      case 'EnvironmentStarted':
        if (this.#environments.has(event.node) && before.name === 'Running') {
          this.#environments.set(event.node, 'ready');
        }
        break;
      case 'CellFinished':
        if (this.#cells.get(event.node)?.cellId === event.cellId && before.name === 'Running') {
          this.#cells.delete(event.node);
        }
        break;
      case 'VariableRead':
        if (this.#readings.get(event.node) === event.readId && before.name === 'Running') {
          this.#readings.delete(event.node);
        }
        break;
      case 'SubcallAsked':
        if (this.#cells.get(event.node)?.cellId === event.cellId && before.name === 'Running') {
          this.#asked.set(`${event.cellId}.${event.ordinal}`, event.prompts.length);
        }
        break;
      case 'Resumed':
        if (event.epoch > before.epoch) this.#forget(before);
        break;
      default:
    }
  }

  /** Another process: nothing of before runs in it. */
  #forget(before: Tree): void {
    this.#openCalls.clear();
    this.#timers.clear();
    this.#environments.clear();
    this.#cells.clear();
    this.#readings.clear();
    this.#asked.clear();
    this.#unbooked.clear();
    for (const [requestId, node] of Object.entries(before.calls))
      this.#unbooked.set(requestId, node);
  }

  #book(requestId: string, usage: Usage | null): void {
    if (!this.#unbooked.delete(requestId) || usage === null) return;
    this.#costUsd += usage.costUsd ?? 0;
    this.#unpriced += usage.costUsd === null ? 1 : 0;
    this.#tokens += usage.inputTokens;
  }

  #see(action: TreeAction, tree: Tree, where: string): void {
    const { node } = action;
    switch (action.type) {
      case 'CallModel':
        assert.ok(
          !this.#openCalls.has(action.requestId),
          `${where}: ${action.requestId} is open already`,
        );
        this.#openCalls.set(action.requestId, node);
        this.#unbooked.set(action.requestId, node);
        assert.ok(this.#openCalls.size <= this.#openCallsMax, `${where}: too many open calls`);
        this.#checkRequest(node, action.length, tree, where);
        break;
      case 'AbortModel':
        assert.ok(this.#openCalls.delete(action.requestId), `${where}: aborts what is not open`);
        break;
      case 'ScheduleTimer':
        this.#timers.set(action.timerId, node);
        break;
      case 'CancelTimer':
        this.#timers.delete(action.timerId);
        break;
      case 'StartEnvironment':
        assert.ok(!this.#environments.has(node), `${where}: two environments`);
        this.#environments.set(node, 'starting');
        break;
      case 'CloseEnvironment':
        assert.ok(this.#environments.delete(node), `${where}: closes what is not there`);
        this.#cells.delete(node);
        this.#readings.delete(node);
        break;
      case 'RunCell':
        this.#assertFree(node, where);
        this.#cells.set(node, { cellId: action.cellId, answered: new Set() });
        break;
      case 'ReadVariable':
        this.#assertFree(node, where);
        this.#readings.set(node, action.readId);
        break;
      case 'AnswerSubcall': {
        const key = `${action.cellId}.${action.ordinal}`;
        assert.equal(
          this.#cells.get(node)?.cellId,
          action.cellId,
          `${where}: answers another cell`,
        );
        assert.equal(
          this.#asked.get(key),
          action.texts.length,
          `${where}: ${key} was not asked, or not so`,
        );
        this.#asked.delete(key);
        break;
      }
      case 'AskPolicy':
      case 'DisplayWarning':
      case 'ReportOutcome':
        break;
      default:
        assert.fail(`${where}: an action that nobody performs`);
    }
  }

  #assertFree(node: string, where: string): void {
    assert.equal(this.#environments.get(node), 'ready', `${where}: the environment is not ready`);
    assert.ok(!this.#cells.has(node) && !this.#readings.has(node), `${where}: two at a time`);
  }

  #checkRequest(node: string, length: number, tree: Tree, where: string): void {
    const run = tree.nodes[node]?.run ?? assert.fail(`${where}: a call of a run that is gone`);
    const messages = messagesOf(run.conversation);
    assert.equal(length, messages.length, where);
    assert.deepEqual(faultsOf(requestMessages(run.conversation, length, 'test/root')), [], where);
    assert.equal(messages.at(-1)?.role, 'user', where);
    const characters = messages
      .flatMap(({ parts }) =>
        parts.map((part) => ('text' in part && part.type !== 'reasoning' ? part.text : '')),
      )
      .join('').length;
    assert.equal(run.characters, characters, `${where}: characters are counted wrongly`);
  }

  #checkProjection(step: TreeStep, where: string): void {
    for (const { node, ...edge } of step.path) {
      const { cursor, steps } = projectEdges(this.#cursors.get(node) ?? 'INIT', [edge]);
      this.#cursors.set(node, cursor);
      for (const one of steps)
        assert.notEqual(one.edge, null, `${where}: ${one.from} ${one.event} ${one.to}`);
    }
  }

  #checkSpending({ ledger }: Tree, where: string): void {
    const spent = ledger.accounts.n0?.spent ?? assert.fail('the root has an account');
    assert.ok(
      Math.abs(spent.costUsd - this.#costUsd) < 1e-9,
      `${where}: ${spent.costUsd} of ${this.#costUsd}`,
    );
    assert.equal(spent.inputTokens, this.#tokens, `${where}: tokens`);
    assert.equal(spent.unpriced, this.#unpriced, `${where}: unpriced`);
  }

  #checkEnds(before: Tree, tree: Tree, where: string): void {
    for (const [kind, things] of [
      ['call', this.#openCalls],
      ['timer', this.#timers],
    ] as const) {
      for (const [id, node] of things) {
        const state = tree.nodes[node];
        assert.ok(
          state !== undefined && state.name !== 'DONE',
          `${where}: ${kind} ${id} outlives its run`,
        );
      }
    }
    for (const node of this.#environments.keys()) {
      assert.ok(
        tree.nodes[node]?.name !== 'DONE' && tree.nodes[node] !== undefined,
        `${where}: ${node}`,
      );
    }
    if (tree.name === 'ShutDown') {
      assert.equal(
        this.#openCalls.size + this.#environments.size,
        before.name === 'ShutDown' ? this.#openCalls.size : 0,
      );
    }
    if (tree.name !== 'Ended') return;
    assert.equal(this.#openCalls.size + this.#timers.size + this.#environments.size, 0, where);
  }
}
