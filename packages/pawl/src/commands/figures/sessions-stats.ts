import { addUsage } from '@pawl/agent/machine/moves/common/count-usage';
import type { UsageTotals } from '@pawl/agent/machine/state';
import type { Usage } from '@pawl/agent/machine/values/usage';
import { plural } from '@pawl/agent/platform/base/plural';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { FigureCollector } from '@pawl/inspector/figures/collect-figures';
import { figuresSince, type LaterFigures } from '@pawl/inspector/figures/figures-since';
import { NO_USAGE } from '@pawl/inspector/figures/tool-log';
import { type Look, lookOf, oneLine, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { wrapWords } from '@pawl/terminal/width';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../../exit-codes.js';
import { allSessions, storedJournals } from '../../sessions/stored-sessions.js';
import { formatDuration, formatTotal, formatUsage, left, right, tableLines } from './figure-texts.js';

/**
 * `pawl sessions --stats`: sums over all stored sessions of the agent. Each journal is read once, one after another.
 *
 * 1. What a fork has copied counts with its parent. If the parent is gone or can't be read, it counts with the fork.
 * 2. What a task has spent counts as its session; without its journal, as the call that started it.
 * 3. A damaged journal counts up to the damage, and is named.
 */

const DAYS_SHOWN = 14;
const DEAREST_SHOWN = 10;

type Damaged = { readonly sessionId: string; readonly why: string };
type Counted = { readonly info: SessionInfo; readonly figures: LaterFigures };
type Sum = { usage: UsageTotals; requests: number; failed: number };

const startFigures = new FigureCollector({ parent: null }).figures();

const readOne = async (
  info: SessionInfo,
  readable: ReadonlySet<string>,
): Promise<{ readonly figures: LaterFigures; readonly damage: Error | null }> => {
  const { parent } = info;
  const copied = parent !== null && readable.has(parent.sessionId) ? parent.seq : 0; // rule 1
  const collector = new FigureCollector({ parent });
  let before = startFigures;
  const { damage } = await storedJournals().replay(info.sessionId, {
    visit: (step) => {
      collector.see(step);
      if (step.seq === copied) before = collector.figures();
    },
  });
  return { figures: figuresSince(before, collector.figures()), damage };
};

const sumIn = (sums: Map<string, Sum>, key: string): Sum => {
  const sum = sums.get(key) ?? { usage: NO_USAGE, requests: 0, failed: 0 };
  sums.set(key, sum);
  return sum;
};

const count = (sum: Sum, usage: Usage | null, failed: boolean): void => {
  sum.requests += 1;
  sum.failed += failed ? 1 : 0;
  if (usage !== null) sum.usage = addUsage(sum.usage, usage);
};

const twoDigits = (part: number): string => String(part).padStart(2, '0');
const dayOf = (at: number): string => {
  const time = new Date(at);
  return `${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`;
};

/** Calls whose spending is that of a stored session (rule 2), as `session/batch/call`. */
const startedCalls = (counted: readonly Counted[]): ReadonlySet<string> =>
  new Set(
    counted.flatMap(({ info: { startedBy } }) =>
      startedBy === undefined ? [] : [`${startedBy.sessionId}/${startedBy.batchId}/${startedBy.callId}`],
    ),
  );

type SpentRow = UsageTotals & { readonly name: string; readonly requests: number; readonly failed: number };

const rowsOf = (sums: ReadonlyMap<string, Sum>): readonly SpentRow[] =>
  [...sums]
    .map(([name, { usage, requests, failed }]) => ({ name, requests, failed, ...usage }))
    .toSorted((one, other) => other.costUsd - one.costUsd || other.requests - one.requests);

type ToolSum = { readonly calls: number; readonly totalMs: number; readonly failed: number };

const toolSums = (counted: readonly Counted[]): readonly (ToolSum & { readonly name: string })[] => {
  const tools = new Map<string, ToolSum>();
  for (const { tool, calls, totalMs, endings } of counted.flatMap(({ figures }) => figures.tools)) {
    const sum = tools.get(tool) ?? { calls: 0, totalMs: 0, failed: 0 };
    const failed = sum.failed + calls - (endings.ok ?? 0);
    tools.set(tool, { calls: sum.calls + calls, totalMs: sum.totalMs + totalMs, failed });
  }
  return [...tools]
    .map(([name, sum]) => ({ name, ...sum }))
    .toSorted((one, other) => other.totalMs - one.totalMs);
};

const sumUp = (counted: readonly Counted[]) => {
  const [models, days] = [new Map<string, Sum>(), new Map<string, Sum>()];
  const started = startedCalls(counted);
  let usage = NO_USAGE;
  const sessions = counted.map(({ info, figures }) => {
    let own = NO_USAGE;
    for (const request of figures.requests) {
      for (const sum of [sumIn(models, request.model), sumIn(days, dayOf(request.at))])
        count(sum, request.usage, request.ending === 'failed');
      if (request.usage !== null) own = addUsage(own, request.usage);
    }
    for (const { batchId, callId, tool, usage: spent, at } of figures.spending) {
      if (started.has(`${info.sessionId}/${batchId}/${callId}`)) continue;
      for (const sum of [sumIn(models, `(calls of ${tool})`), sumIn(days, dayOf(at))])
        count(sum, spent, false);
      own = addUsage(own, spent);
    }
    usage = { ...addUsage(usage, own), unpriced: usage.unpriced + own.unpriced };
    return { sessionId: info.sessionId, title: info.title, activeMs: figures.activeMs, ...own };
  });
  return {
    sessions: counted.length,
    forks: counted.filter(({ info }) => info.parent !== null).length,
    tasks: counted.filter(({ info }) => info.startedBy !== undefined).length,
    turns: counted.reduce((sum, { figures }) => sum + figures.turns, 0),
    activeMs: counted.reduce((sum, { figures }) => sum + figures.activeMs, 0),
    usage,
    models: rowsOf(models),
    days: rowsOf(days).toSorted((one, other) => (one.name < other.name ? 1 : -1)),
    tools: toolSums(counted),
    dearest: sessions.toSorted((one, other) => other.costUsd - one.costUsd).slice(0, DEAREST_SHOWN),
  };
};

type Stats = ReturnType<typeof sumUp>;

const spentLines = (rows: readonly SpentRow[], columns: number): readonly Safe[] =>
  tableLines(
    rows.map((row) => [
      left(oneLine(row.name, 50)),
      right(formatTotal(row)),
      right(makeSafe(plural(row.requests, 'request'))),
      left(formatUsage(row)),
      left(row.failed === 0 ? safe`` : safe`${row.failed} failed`),
    ]),
    columns,
  );

const headOf = (stats: Stats, asks: number): Safe =>
  joinSafe(
    [
      makeSafe(plural(stats.sessions, 'session')),
      ...(stats.forks === 0 ? [] : [safe`of them ${makeSafe(plural(stats.forks, 'fork'))}`]),
      ...(stats.tasks === 0 ? [] : [safe`of them ${makeSafe(plural(stats.tasks, 'task'))}`]),
      makeSafe(plural(stats.turns, 'turn')),
      safe`${formatDuration(stats.activeMs)} of work`,
      formatTotal(stats.usage),
      formatUsage(stats.usage),
      ...(asks === 0 ? [] : [safe`not counted: ${makeSafe(plural(asks, 'run'))} of pawl ask`]),
    ],
    safe` · `,
  );

const statsText = (stats: Stats, asks: number, look: Look): Safe => {
  const columns = Math.max(20, look.columns);
  const blocks: readonly (readonly [string, readonly Safe[]])[] = [
    ['Models', spentLines(stats.models, columns)],
    [
      'Tools',
      tableLines(
        stats.tools.map(({ name, calls, totalMs, failed }) => [
          left(oneLine(name, 40)),
          right(makeSafe(plural(calls, 'call'))),
          right(formatDuration(totalMs)),
          left(failed === 0 ? safe`` : safe`${failed} not ok`),
        ]),
        columns,
      ),
    ],
    [
      stats.days.length > DAYS_SHOWN ? `The last ${DAYS_SHOWN} days of ${stats.days.length}` : 'Days',
      spentLines(stats.days.slice(0, DAYS_SHOWN), columns),
    ],
    [
      'The dearest sessions',
      tableLines(
        stats.dearest.map((one) => [
          left(makeSafe(one.sessionId)),
          right(formatTotal(one)),
          right(formatDuration(one.activeMs)),
          left(oneLine(one.title, 60)),
        ]),
        columns,
      ),
    ],
  ];
  const shown = blocks.filter(([, lines]) => lines.length > 0);
  return joinSafe(
    [
      joinSafe(wrapWords(headOf(stats, asks), columns), safe`\n`),
      ...shown.map(([title, lines]) => joinSafe([paint(look, 'bold', makeSafe(title)), ...lines], safe`\n`)),
    ],
    safe`\n\n`,
  );
};

/** Prints sums over all stored sessions; as one JSON object with `json`. Damaged ones are named. */
export const showStats = async (json: boolean): Promise<number> => {
  const all = await allSessions();
  const agents = all.filter(({ kind }) => kind === 'agent');
  const readable = new Set(
    agents.filter(({ unreadable }) => unreadable === undefined).map((info) => info.sessionId),
  );
  const counted: Counted[] = [];
  const damaged: Damaged[] = [];
  for (const info of agents) {
    try {
      const { figures, damage } = await readOne(info, readable);
      counted.push({ info, figures });
      if (damage !== null) damaged.push({ sessionId: info.sessionId, why: damage.message });
    } catch (error) {
      // It is named with the reason, so nothing is skipped in silence.
      damaged.push({
        sessionId: info.sessionId,
        why: error instanceof Error ? error.message : String(error),
      });
    }
  }
  const stats = sumUp(counted);
  const asks = all.length - agents.length;
  if (json) writeJson({ ...stats, runsOfAsk: asks, damaged });
  else writeOut(safe`${statsText(stats, asks, lookOf(process.stdout, process.env))}\n`);
  for (const { sessionId, why } of json ? [] : damaged)
    writeError(safe`pawl: not counted beyond its damage: ${makeSafe(sessionId)}: ${makeSafe(why)}\n`);
  return exitCodes.done;
};
