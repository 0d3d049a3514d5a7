import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { seedEdges } from '../../packages/ask/src/run/seed-projection.js';
import { run, runAsync } from '../../packages/machine/src/builder/drive.js';
import { tools } from '../../packages/verify/src/projections/seed-tools-mode.js';
import {
  type CodeContext,
  type CodeState,
  codeContext,
  codeMode,
  codeSource,
  type ToolsState,
  toolsContext,
  toolsMode,
  toolsSource,
} from './seed-004.js';

/**
 * Seed 004 on the kernel's other face: its two tables are those of our code mode and of our tools mode, and they run
 * as the seed's text says.
 */

const arrows = (
  edges: readonly { readonly from: string; readonly event: string | null; readonly to: string }[],
) => edges.map(({ from, event, to }) => `${from} -${event}-> ${to}`).toSorted();

describe('seed 004, code mode', () => {
  it('has the eight rows of the seed, the guard and the actions of the seed at the same ones', () => {
    assert.deepEqual(arrows(codeMode.edges), arrows(seedEdges));
    for (const { from, event, to, when, then } of codeMode.edges) {
      const row = seedEdges.find(
        (one) => one.from === from && one.event === event && one.to === to,
      );
      assert.deepEqual([when !== '', then !== ''], [row?.when !== '', row?.action !== '']);
    }
  });

  it('leaves no state out of reach and no transition in the shadow of another', () => {
    assert.deepEqual([codeMode.report.unreachable, codeMode.report.shadowed], [[], []]);
  });

  const program = '```repl\nx = 1\n```';
  const rows: readonly {
    readonly title: string;
    readonly context?: Partial<CodeContext>;
    readonly replies: readonly string[];
    readonly path: readonly CodeState[];
    readonly calls: number;
    readonly answer: string | null;
    readonly ran?: number;
  }[] = [
    {
      title: '#199 a run that is too deep makes one plain call',
      context: { depth: 1 },
      replies: ['the text'],
      path: ['INIT', 'SHALLOW_CALL', 'DONE'],
      calls: 1,
      answer: null,
    },
    {
      title: '#200 a reply with FINAL ends it with one call',
      replies: ['FINAL(42)'],
      path: ['INIT', 'PROMPTING', 'DONE'],
      calls: 1,
      answer: '42',
    },
    {
      title: '#202 code and FINAL in one reply: the code comes first',
      replies: [`${program}\nFINAL(1)`],
      path: ['INIT', 'PROMPTING', 'EXECUTING', 'DONE'],
      calls: 1,
      answer: '1',
    },
    {
      title: '#203 neither code nor FINAL burns an iteration',
      replies: ['let me think', 'FINAL(7)'],
      path: ['INIT', 'PROMPTING', 'EXECUTING', 'PROMPTING', 'DONE'],
      calls: 2,
      answer: '7',
      ran: 0,
    },
    {
      title: 'at the limit of iterations one more call asks for the answer',
      context: { maxIterations: 2 },
      replies: [program, program, 'about 42'],
      path: ['INIT', 'PROMPTING', 'EXECUTING', 'PROMPTING', 'EXECUTING', 'DONE'],
      calls: 3,
      answer: 'about 42',
      ran: 2,
    },
  ];
  for (const { title, context: patch, replies, path, calls, answer, ran } of rows) {
    it(title, async () => {
      const seen: CodeState[] = [];
      const { source, calls: made } = codeSource(replies);
      const context = codeContext(patch);
      const ended = run(codeMode, context, (state, held) => {
        seen.push(state);
        return source(state, held);
      });
      assert.deepEqual([...seen, ended.state], path);
      assert.equal(ended.context, context);
      assert.deepEqual([made(), context.finalAnswer], [calls, answer]);
      if (ran !== undefined) assert.equal(context.history.length, ran);
      const again = codeContext(patch);
      const other = codeSource(replies).source;
      await runAsync(codeMode, again, async (state, held) => other(state, held));
      assert.deepEqual(again, context);
    });
  }
});

describe('seed 004, tools mode', () => {
  it('has the rows of the seed', () => {
    assert.deepEqual(arrows(toolsMode.edges), arrows(tools.edges));
    assert.deepEqual([toolsMode.report.unreachable, toolsMode.report.shadowed], [[], []]);
  });

  const call = { calls: 1, text: '' };
  const text = { calls: 0, text: 'done' };
  const rows = [
    {
      title: '#226 text only',
      replies: [text],
      path: ['INIT', 'PROMPTING', 'DONE'],
      calls: 1,
      stop: false,
    },
    {
      title: '#227 one round of tools',
      replies: [call, text],
      path: ['INIT', 'PROMPTING', 'EXECUTING_TOOLS', 'PROMPTING', 'DONE'],
      calls: 2,
      stop: false,
    },
    {
      title: '#229 a policy that stops before the tools',
      replies: [call],
      stopAt: 1,
      path: ['INIT', 'PROMPTING', 'DONE'],
      calls: 1,
      stop: true,
    },
    {
      title: '#230 a policy that stops after the tools: no further call',
      replies: [call, text],
      stopAt: 2,
      path: ['INIT', 'PROMPTING', 'EXECUTING_TOOLS', 'DONE'],
      calls: 1,
      stop: true,
    },
    {
      title: 'the limit of iterations, which asks for a last text',
      replies: [call, call, text],
      maxIterations: 2,
      path: ['INIT', 'PROMPTING', 'EXECUTING_TOOLS', 'PROMPTING', 'EXECUTING_TOOLS', 'DONE'],
      calls: 3,
      stop: false,
    },
  ] as const;
  for (const row of rows) {
    it(row.title, () => {
      const seen: ToolsState[] = [];
      const { source, calls } = toolsSource(row.replies, 'stopAt' in row ? row.stopAt : undefined);
      const context = toolsContext(
        'maxIterations' in row ? { maxIterations: row.maxIterations } : {},
      );
      const ended = run(toolsMode, context, (state, held) => {
        seen.push(state);
        return source(state, held);
      });
      assert.deepEqual([...seen, ended.state], row.path);
      assert.deepEqual([calls(), context.policyStop], [row.calls, row.stop]);
    });
  }
});
