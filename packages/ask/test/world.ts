import assert from 'node:assert/strict';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { TreeAction } from '../src/run/action.js';
import type { CellReport, PastCell } from '../src/run/cell-types.js';
import type { TreeEvent } from '../src/run/event.js';
import { digestTexts } from '../src/run/text-hash.js';
import type { Tree } from '../src/tree/tree-state.js';
import * as g from './given.js';

/**
 * A small world that performs actions: models that answer from what they are told, and environments whose programs keep
 * variables, ask models and die with their process.
 *
 * A program is a list of statements: `ask llm a|b` and `ask rlm a` bind the answers, `print`, `die`, and `answer`, which
 * makes all that was ever bound the answer.
 */

type Cell = {
  readonly cellId: string;
  readonly statements: readonly string[];
  at: number;
  ordinal: number;
  printed: string;
};
type Namespace = { bound: string[]; cell: Cell | null };

const cellOf = (cellId: string, code: string): Cell => ({
  cellId,
  statements: code.split('; '),
  at: 0,
  ordinal: 0,
  printed: '',
});

const questionOf = (statement: string): { kind: 'llm' | 'rlm'; prompts: readonly string[] } => {
  const [, kind, list = ''] = /^ask (llm|rlm) (.*)$/.exec(statement) ?? assert.fail(statement);
  return { kind: kind === 'rlm' ? 'rlm' : 'llm', prompts: list.split('|') };
};

/** Runs on until the cell asks, or ends with a report. */
const goOn = (
  space: Namespace,
  cell: Cell,
): CellReport | { kind: 'llm' | 'rlm'; prompts: readonly string[] } => {
  let answer: string | null = null;
  for (; cell.at < cell.statements.length; cell.at++) {
    const statement = cell.statements[cell.at] ?? '';
    if (statement.startsWith('ask ')) return questionOf(statement);
    if (statement === 'print') cell.printed += `${space.bound.join(',')}\n`;
    if (statement === 'answer') answer = space.bound.join(',');
    if (statement === 'die') {
      space.bound = [];
      space.cell = null;
      return g.report({ status: 'died', stdout: cell.printed, variablesLost: 'yes' });
    }
  }
  space.cell = null;
  return g.report({ stdout: cell.printed, answer });
};

const take = (space: Namespace, cell: Cell, texts: readonly string[]): void => {
  space.bound.push(texts.join('+'));
  cell.at += 1;
};

/** The past once more: true if every cell asked and printed what is recorded. */
const rebuild = (space: Namespace, past: readonly PastCell[]): boolean =>
  past.every(({ cellId, code, subcalls, printed, status }) => {
    const cell = cellOf(cellId, code);
    for (let ordinal = 1; ; ordinal++) {
      const came = goOn(space, cell);
      if ('status' in came)
        return came.status === status && digestTexts([came.stdout, came.stderr]) === printed;
      const known = subcalls.find((subcall) => subcall.ordinal === ordinal);
      if (known === undefined || known.prompts !== digestTexts(came.prompts)) return false;
      take(space, cell, known.texts);
    }
  });

export class World {
  readonly #script: (node: string, told: readonly string[], purpose: string) => string;
  readonly #spaces = new Map<string, Namespace>();
  /** What will come of what was performed, by an id that says what it is. */
  readonly #coming = new Map<string, (tree: Tree) => TreeEvent>();
  readonly #failed = new Set<string>();

  constructor(script: (node: string, told: readonly string[], purpose: string) => string) {
    this.#script = script;
  }

  /** Names of what may happen next, in the order in which it was begun. */
  pending(): readonly string[] {
    return [...this.#coming.keys()];
  }

  happen(name: string, tree: Tree): TreeEvent {
    const event = this.#coming.get(name) ?? assert.fail(`${name} is not coming`);
    this.#coming.delete(name);
    return event(tree);
  }

  /** kill -9: nothing is left of what ran. */
  crash(): void {
    this.#spaces.clear();
    this.#coming.clear();
  }

  perform(actions: readonly TreeAction[]): void {
    for (const action of actions) this.#perform(action);
  }

  #perform(action: TreeAction): void {
    const { node } = action;
    switch (action.type) {
      case 'CallModel':
        this.#coming.set(action.requestId, (tree) =>
          this.#reply(tree, node, action.requestId, action.purpose),
        );
        break;
      case 'AbortModel':
        this.#coming.delete(action.requestId);
        break;
      case 'StartEnvironment': {
        const space: Namespace = { bound: [], cell: null };
        this.#spaces.set(node, space);
        this.#coming.set(`${node} environment`, () => {
          const kept = rebuild(space, action.past);
          assert.ok(kept, `${node} can not be built again`);
          return { type: 'EnvironmentStarted', at: g.NOW, node, variables: 'kept' };
        });
        break;
      }
      case 'RunCell': {
        const space = this.#spaces.get(node) ?? assert.fail('no environment');
        space.cell = cellOf(action.cellId, action.code);
        this.#goOn(node, space, space.cell);
        break;
      }
      case 'AnswerSubcall': {
        const space = this.#spaces.get(node) ?? assert.fail('no environment');
        const cell = space.cell ?? assert.fail('no cell');
        assert.equal(cell.ordinal, action.ordinal, 'an answer to another question');
        take(space, cell, action.texts);
        this.#goOn(node, space, cell);
        break;
      }
      case 'CloseEnvironment':
        this.#spaces.delete(node);
        for (const name of this.pending())
          if (name.startsWith(`${node} `)) this.#coming.delete(name);
        break;
      case 'ScheduleTimer':
        this.#coming.set(action.timerId, () => ({
          type: 'TimerFired',
          at: g.NOW,
          node,
          timerId: action.timerId,
        }));
        break;
      case 'CancelTimer':
        this.#coming.delete(action.timerId);
        break;
      case 'ReadVariable':
      case 'AskPolicy':
      case 'DisplayWarning':
      case 'ReportOutcome':
        break;
      default:
        assert.fail('an action that nobody performs');
    }
  }

  #goOn(node: string, space: Namespace, cell: Cell): void {
    const came = goOn(space, cell);
    this.#coming.set(`${node} cell`, () => {
      if ('status' in came)
        return { type: 'CellFinished', at: g.NOW, node, cellId: cell.cellId, report: came };
      cell.ordinal += 1;
      return {
        type: 'SubcallAsked',
        at: g.NOW,
        node,
        cellId: cell.cellId,
        ordinal: cell.ordinal,
        ...came,
      };
    });
  }

  /** Every third call fails once. */
  #reply(tree: Tree, node: string, requestId: string, purpose: string): TreeEvent {
    const run = tree.nodes[node]?.run ?? assert.fail('a call of a run that is gone');
    const fails = digestTexts([node]).charCodeAt(0) % 3 === 0 && !this.#failed.has(node);
    if (fails) {
      this.#failed.add(node);
      return g.eventOf(g.fails({ who: node, requestId }), tree);
    }
    const told = messagesOf(run.conversation).map(({ parts }) =>
      parts.map((part) => ('text' in part ? part.text : '')).join(''),
    );
    return g.eventOf(
      g.says(this.#script(node, told, purpose), { who: node, requestId, costUsd: 0.01 }),
      tree,
    );
  }
}
