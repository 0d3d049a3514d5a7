import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stepped } from '@pawl/agent/ports/session';
import type { SessionFigures } from '@pawl/inspector/figures/session-figures';
import type { Edge } from '@pawl/machine/kernel/table';
import { countColumns } from '@pawl/terminal/paint';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { collectFigures } from '../../../../test/kit/inspector/collect-figures.js';
import { headerOf } from '../../../../test/kit/journal/story.js';
import { timeText } from '../../src/commands/figures.js';
import {
  changesState,
  countStates,
  createLogPrinter,
  pathLine,
  pathStates,
} from '../../src/sessions/session-text.js';
import { captureOutput } from '../terminal/surfaces/capture.js';

const NIGHT_MS = 12 * 3_600_000;

/** A session with a retry, a tool and an approval, a crash in a command, and a night in which it was closed. */
const TRACE = `! careful {"hooks":"never"}
> @0 Start
> @0 UserInput "go"
> @3000 LlmFailed req-1 overloaded "the whole data centre is busy" tokens=1000+0 cost=0.01
> @5000 TimerFired timer-1
> @7000 LlmCompleted req-2 calls read(c1) bash(c2) tokens=12000+500 cost=0.25
> @7000 ToolStarted batch-1 c1
> @8000 ToolCompleted batch-1 c1 ok "one"
> @9000 ApprovalAnswered batch-1 c2 allow
> @9000 ToolStarted batch-1 c2
> @20000 Resumed 2
> @21000 ToolCompleted batch-1 c2 failed "no"
> @22000 LlmCompleted req-3 says "Done." tokens=13000+20 cost=0.05
> @22000 ShutdownRequested
> @${22_000 + NIGHT_MS} Resumed 3
> @${22_000 + NIGHT_MS} UserInput "more"
`;

const figures: SessionFigures = collectFigures(
  { parent: null },
  play(TRACE).steps.map(({ event, step }, index) => ({ seq: index + 1, event, ...step })),
);

const shown = (columns: number): string =>
  timeText(headerOf('20261121-232530-8cb9eed0', 0), figures, {
    colour: 'no',
    columns,
    plain: 'no',
  });

test('where time and money went, from the text alone', () => {
  const text = shown(160);
  for (const line of [
    /1 turn|2 turns/,
    /12h00m/,
    /\$0\.31/,
    /no process +12h00m/,
    /10s of work in 12h00m/,
    /waiting for your approval +1\.0s/,
    /CallingLlm +×4 .*\$0\.31/,
    /bash +1 call +1\.0s +longest 1\.0s +asked 2\.0s +1 failed/,
    /req-2 +seq 4 +\$0\.25 +2\.0s +12\.0k in, 500 out +attempt 2/,
    /failed \(overloaded: the whole data centre is busy\)/,
  ])
    assert.match(text, line);
});

test('no line is wider than the window', () => {
  for (const columns of [20, 33, 60, 100, 240])
    for (const line of shown(columns).split('\n'))
      assert.ok(countColumns(line) <= columns, `${columns}: ${line}`);
});

const edge = (from: string, to: string, kind: Edge['kind']): Edge => ({
  id: `${from}/x/0`,
  from,
  event: 'ToolCompleted',
  when: '',
  to,
  as: '',
  then: 'move',
  kind,
});

/** A step of which only the path counts. */
const stepOf = (...path: readonly Edge[]): Stepped =>
  ({ seq: 7, event: { type: 'ToolCompleted' }, path }) as unknown as Stepped;

const STAY = edge('ExecutingTools', 'ExecutingTools', 'stay');
const ON = edge('ExecutingTools', 'PostToolsHook', 'go');
const AGAIN = edge('PostToolsHook', 'PostToolsHook', 'go');

const rows: readonly (readonly [string, Stepped, readonly string[]])[] = [
  ['nothing happened', stepOf(), []],
  ['it stayed', stepOf(STAY), []],
  ['it stayed, then went on', stepOf(STAY, ON), ['ExecutingTools', 'PostToolsHook']],
  ['a state was left and entered again', stepOf(AGAIN), ['PostToolsHook', 'PostToolsHook']],
];

for (const [title, given, then] of rows) {
  test(`the states of a path where ${title}`, () => {
    assert.deepEqual(pathStates(given), then);
    assert.equal(changesState(given), then.length > 0);
  });
}

test('a line of a path and the count of its states leave out what stayed', () => {
  const steps = [stepOf(STAY), stepOf(STAY, ON, AGAIN)];
  assert.equal(
    pathLine(stepOf(STAY, ON)),
    '   7  ToolCompleted       ExecutingTools → PostToolsHook',
  );
  assert.equal(countStates(steps), 'PostToolsHook ×2');
});

test('lines of a log: an empty piece of text opens no line, and a retracted text is named', () => {
  const printer = createLogPrinter({ colour: 'no', columns: 80 }, '/w');
  const step = (...actions: readonly object[]): Stepped =>
    ({ seq: null, event: { type: 'TextDelta' }, path: [], diagnostics: [], actions }) as never;
  const text = (piece: string) => ({ type: 'DisplayText', text: piece });
  let shown = '';
  const release = captureOutput((piece) => {
    shown += piece;
  });
  for (const piece of ['', 'half'])
    for (const stepped of [step(text(piece)), step({ type: 'RetractPartial' })])
      printer.see(stepped);
  release();
  const note = '(the text of the reply above does not count)\n';
  assert.equal(shown, `${note}half\n${note}`);
});
