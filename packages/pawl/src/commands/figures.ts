/**
 * Where time and money went: `pawl sessions --stats` for all stored sessions, `pawl show --time`
 * for one.
 *
 * From top to bottom: sums over all sessions and `showStats`; the blocks of one session, `timeText`
 * and `showTime`; and figures as text: durations, dollars, tables. The figures of a session are
 * collected from its steps (`FigureCollector`). `Safe` is text whose control characters can't
 * disturb the terminal.
 */

import { addUsage } from '@pawl/agent/machine/moves/request';
import {
  nothingSpent,
  shareText,
  totalTokens,
  type Usage,
  type UsageTotals,
} from '@pawl/agent/machine/settings';
import { localTime, plural } from '@pawl/agent/platform/text';
import type { Header, SessionInfo } from '@pawl/agent/ports/journal';
import { FigureCollector } from '@pawl/inspector/figures/collect-figures';
import {
  figuresSince,
  getCacheShare,
  getWorkMs,
  type LaterFigures,
  type RequestFigures,
  type SessionFigures,
  SPAN_WORDS,
} from '@pawl/inspector/figures/session-figures';
import {
  countColumns,
  cutLine,
  detectLook,
  fitWords,
  formatCost,
  formatDuration,
  formatSpent,
  formatTokens,
  type Look,
  oneLine,
  paint,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { headLine } from '../sessions/session-text.js';
import { allSessions, foldStored, storedJournals } from '../sessions/stored-sessions.js';

// Sums over all stored sessions: `pawl sessions --stats`

const DAYS_SHOWN = 14;
const DEAREST_SHOWN = 10;

type Damaged = { readonly sessionId: string; readonly why: string };
type CountedSession = { readonly info: SessionInfo; readonly figures: LaterFigures };
/** It is added to in place. */
type Sum = { usage: UsageTotals; requests: number; failed: number };

const NO_FIGURES = new FigureCollector({ parent: null }).figures();

/**
 * The figures of a session. A fork begins with entries copied from its parent: those that the
 * parent counts itself are left out. `counted`: the parents, each with its last counted entry.
 */
const readFigures = async (
  info: SessionInfo,
  counted: ReadonlyMap<string, number>,
): Promise<{ readonly figures: LaterFigures; readonly damage: Error | null }> => {
  const { parent } = info;
  // entries up to here count with the parent
  const copiedSeq = parent === null ? 0 : Math.min(parent.seq, counted.get(parent.sessionId) ?? 0);
  const collector = new FigureCollector({ parent });
  const atFork: SessionFigures[] = copiedSeq === 0 ? [NO_FIGURES] : [];
  const { damage } = await storedJournals().replay(info.sessionId, {
    visit: (step) => {
      collector.see(step); // counts the step
      if (step.seq === copiedSeq) atFork.push(collector.figures());
    },
  });
  const figures = collector.figures();
  // One that is damaged before the end of the copy has nothing of its own.
  return { figures: figuresSince(atFork[0] ?? figures, figures), damage };
};

/** The sum with this key, which is added if it is missing. */
const sumIn = (sums: Map<string, Sum>, key: string): Sum => {
  const sum = sums.get(key) ?? { usage: nothingSpent, requests: 0, failed: 0 };
  sums.set(key, sum);
  return sum;
};

/** `usage`: null if it is not known. */
const countRequest = (sum: Sum, usage: Usage | null, failed: boolean): void => {
  sum.requests += 1;
  sum.failed += failed ? 1 : 0;
  if (usage !== null) sum.usage = addUsage(sum.usage, usage);
};

/** `2026-11-21` */
const localDay = (at: number): string => localTime(at).slice(0, '2026-11-21'.length);

/**
 * The calls that started a stored session (tasks): that session counts their spending. Each as
 * `session/batch/call`.
 */
const callsWithSession = (counted: readonly CountedSession[]): ReadonlySet<string> =>
  new Set(
    counted.flatMap(({ info: { startedBy } }) =>
      startedBy === undefined
        ? []
        : [`${startedBy.sessionId}/${startedBy.batchId}/${startedBy.callId}`],
    ),
  );

type SpentRow = UsageTotals & {
  readonly name: string;
  readonly requests: number;
  readonly failed: number;
};

const spentRows = (sums: ReadonlyMap<string, Sum>): readonly SpentRow[] =>
  [...sums]
    .map(([name, { usage, requests, failed }]) => ({ name, requests, failed, ...usage }))
    .toSorted((one, other) => other.costUsd - one.costUsd || other.requests - one.requests);

type ToolSum = { readonly calls: number; readonly totalMs: number; readonly failed: number };

const toolSums = (
  counted: readonly CountedSession[],
): readonly (ToolSum & { readonly name: string })[] => {
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

const sumSessions = (counted: readonly CountedSession[]) => {
  const [models, days] = [new Map<string, Sum>(), new Map<string, Sum>()];
  const started = callsWithSession(counted);
  let usage = nothingSpent;
  const sessions = counted.map(({ info, figures }) => {
    let sessionUsage = nothingSpent;
    for (const request of figures.requests) {
      for (const sum of [sumIn(models, request.model), sumIn(days, localDay(request.at))])
        countRequest(sum, request.usage, request.ending === 'failed');
      if (request.usage !== null) sessionUsage = addUsage(sessionUsage, request.usage);
    }
    // what calls of tools spent on models of their own
    for (const { batchId, callId, tool, usage: spent, at } of figures.spending) {
      // a call that was copied from a deleted parent has started its task under the parent's id
      const ids = [info.sessionId, info.parent?.sessionId];
      if (ids.some((id) => started.has(`${id}/${batchId}/${callId}`))) continue;
      for (const sum of [sumIn(models, `(calls of ${tool})`), sumIn(days, localDay(at))])
        countRequest(sum, spent, false);
      sessionUsage = addUsage(sessionUsage, spent);
    }
    const { hookUsage } = figures;
    if (totalTokens(hookUsage) + hookUsage.costUsd > 0) {
      const day = localDay(info.changedAt); // of a hook's usage no time is known
      for (const sum of [sumIn(models, '(hooks)'), sumIn(days, day)])
        sum.usage = sumUsage([sum.usage, hookUsage]);
      sessionUsage = sumUsage([sessionUsage, hookUsage]);
    }
    if (figures.usage.atLeast) sessionUsage = { ...sessionUsage, atLeast: true };
    usage = sumUsage([usage, sessionUsage]);
    return {
      sessionId: info.sessionId,
      title: info.title,
      activeMs: figures.activeMs,
      ...sessionUsage,
    };
  });
  return {
    sessions: counted.length,
    forks: counted.filter(({ info }) => info.parent !== null).length,
    tasks: counted.filter(({ info }) => info.startedBy !== undefined).length,
    turns: counted.reduce((sum, { figures }) => sum + figures.turns, 0),
    activeMs: counted.reduce((sum, { figures }) => sum + figures.activeMs, 0),
    usage,
    models: spentRows(models),
    days: spentRows(days).toSorted((one, other) => (one.name < other.name ? 1 : -1)),
    tools: toolSums(counted),
    dearest: sessions.toSorted((one, other) => other.costUsd - one.costUsd).slice(0, DEAREST_SHOWN),
  };
};

type Stats = ReturnType<typeof sumSessions>;

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

const statsHead = (stats: Stats, asks: number): Safe =>
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
      stats.days.length > DAYS_SHOWN
        ? `The last ${DAYS_SHOWN} days of ${stats.days.length}`
        : 'Days',
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
      joinSafe(fitWords(statsHead(stats, asks), columns), safe`\n`),
      ...shown.map(([title, lines]) =>
        joinSafe([paint(look, 'bold', makeSafe(title)), ...lines], safe`\n`),
      ),
    ],
    safe`\n\n`,
  );
};

/**
 * `pawl sessions --stats`: sums over all stored sessions of the agent. Each journal is read once,
 * one after another.
 *
 * 1. Entries that a fork copied count with its parent. Those that it does not count, since it is
 *    gone or damaged, count with the fork.
 * 2. The spending of a task counts as its session; without its journal, as the call that started
 *    it.
 * 3. A damaged journal counts up to the damage, and is named.
 *
 * With `json`: one JSON object.
 */
export const showStats = async (json: boolean): Promise<number> => {
  const all = await allSessions();
  const agents = all.filter(({ kind }) => kind === 'agent');
  const counted: CountedSession[] = [];
  const lastSeqs = new Map<string, number>();
  const damaged: Damaged[] = [];
  // a parent before its forks
  for (const info of agents.toSorted((one, other) => one.createdAt - other.createdAt)) {
    try {
      const { figures, damage } = await readFigures(info, lastSeqs);
      counted.push({ info, figures });
      lastSeqs.set(info.sessionId, figures.seq);
      if (damage !== null) damaged.push({ sessionId: info.sessionId, why: damage.message });
    } catch (error) {
      // It is named with the reason, so nothing is skipped in silence.
      damaged.push({
        sessionId: info.sessionId,
        why: error instanceof Error ? error.message : String(error),
      });
    }
  }
  const stats = sumSessions(counted);
  const asks = all.length - agents.length;
  if (json) writeJson({ ...stats, runsOfAsk: asks, damaged });
  else writeOut(safe`${statsText(stats, asks, detectLook(process.stdout, process.env))}\n`);
  for (const { sessionId, why } of json ? [] : damaged)
    writeError(
      safe`pawl: not counted, or only up to its damage: ${makeSafe(sessionId)}: ${makeSafe(why)}\n`,
    );
  return exitCodes.done;
};

// The figures of one session: `pawl show --time`

/** Requests that are listed. */
const REQUESTS_MAX = 10;

type FiguresHeader = Pick<Header, 'sessionId' | 'createdAt' | 'settings' | 'workspace'>;
type Block = { readonly title: string; readonly lines: readonly Safe[] };

/** The sum of usages of single calls and of sums; null is not known. */
const sumUsage = (usages: readonly (UsageTotals | RequestFigures['usage'])[]): UsageTotals =>
  usages.reduce<UsageTotals>(
    (sum, usage) => (usage === null ? sum : addUsage(sum, usage)),
    nothingSpent,
  );

/** Where the money was spent, by the machine's state that spent it. */
const spentIn = ({
  requests,
  spending,
  hookUsage,
}: SessionFigures): Readonly<Record<string, UsageTotals>> => {
  const usages = (isSummary: boolean) =>
    requests
      .filter(({ purpose }) => (purpose === 'compaction') === isSummary)
      .map(({ usage }) => usage);
  return {
    CallingLlm: sumUsage(usages(false)),
    Compacting: sumUsage(usages(true)),
    ExecutingTools: sumUsage(spending.map(({ usage }) => usage)),
    PostToolsHook: hookUsage,
  };
};

// the keys of that very table
const kinds = Object.keys(SPAN_WORDS) as readonly (keyof typeof SPAN_WORDS)[];

const timeBlock = ({ time, elapsedMs }: SessionFigures, columns: number): Block => ({
  title: 'Time',
  lines: tableLines(
    kinds
      .filter((kind) => time[kind] > 0)
      .toSorted((one, other) => time[other] - time[one])
      .map((kind) => [
        left(makeSafe(SPAN_WORDS[kind])),
        right(formatDuration(time[kind])),
        right(makeSafe(shareText(elapsedMs === 0 ? null : time[kind] / elapsedMs))),
      ]),
    columns,
  ),
});

const costCell = (usage: UsageTotals): Safe => {
  if (usage.unpriced > 0) return safe`price unknown`;
  return usage.costUsd === 0 ? safe`` : formatTotal(usage);
};

const statesBlock = (figures: SessionFigures, columns: number): Block => {
  const spent = spentIn(figures);
  const rows = figures.states.filter(({ totalMs, state }) => totalMs > 0 || state in spent);
  return {
    title: 'States',
    lines: tableLines(
      rows.map(({ state, entered, totalMs }) => [
        left(makeSafe(state)),
        right(safe`×${entered}`),
        right(formatDuration(totalMs)),
        right(costCell(spent[state] ?? nothingSpent)),
      ]),
      columns,
    ),
  };
};

const endingsText = (endings: Readonly<Record<string, number>>): string =>
  Object.entries(endings)
    .filter(([status]) => status !== 'ok')
    .map(([status, count]) => `${count} ${status}`)
    .join(', ');

const toolsBlock = ({ tools }: SessionFigures, columns: number): Block => ({
  title: 'Tools',
  lines: tableLines(
    tools.map(({ tool, calls, endings, totalMs, longestMs, approvalMs, usage }) => [
      left(makeSafe(tool.replace(/\s+/g, ' '))),
      right(makeSafe(plural(calls, 'call'))),
      right(formatDuration(totalMs)),
      left(safe`longest ${formatDuration(longestMs)}`),
      left(approvalMs === 0 ? safe`` : safe`asked ${formatDuration(approvalMs)}`),
      left(costCell(usage)),
      left(makeSafe(endingsText(endings))),
    ]),
    columns,
  ),
});

/** What was unusual about a request. `sent`: a resumed process sends it again after a crash. */
const requestNotes = ({ attempt, sent, ending, why, purpose }: RequestFigures): string =>
  [
    purpose === 'compaction' ? 'summary' : '',
    attempt > 1 ? `attempt ${attempt}` : '',
    sent > 1 ? `sent ${sent} times` : '',
    ending === 'completed' ? '' : `${ending}${why === '' ? '' : ` (${why})`}`,
  ]
    .filter((note) => note !== '')
    .join(', ')
    .replace(/\s+/g, ' ');

/**
 * Orders requests, of which the dearest are shown: by cost, and by tokens where costs are
 * equal or unknown.
 */
const requestWeight = ({ usage }: RequestFigures): number =>
  usage === null ? 0 : (usage.costUsd ?? 0) * 1e9 + totalTokens(usage);

const requestsBlock = ({ requests }: SessionFigures, columns: number): Block => {
  const dearest = new Set(
    requests
      .toSorted((one, other) => requestWeight(other) - requestWeight(one))
      .slice(0, REQUESTS_MAX),
  );
  const rows = requests.filter((request) => dearest.has(request));
  const lines = tableLines(
    rows.map((request) => {
      const { id, seq, startMs, firstPieceMs, endMs, usage } = request;
      const wait = firstPieceMs === null ? null : formatDuration(firstPieceMs - startMs);
      return [
        left(makeSafe(id)),
        right(safe`seq ${seq}`),
        right(usage === null ? safe`` : formatCost(usage.costUsd)),
        right(formatDuration(endMs - startMs)),
        left(wait === null ? safe`` : safe`first piece ${wait}`),
        left(usage === null ? safe`` : formatUsage(usage)),
        left(makeSafe(requestNotes(request))),
      ];
    }),
    columns,
  );
  const others = requests.length - rows.length;
  return {
    title:
      others === 0
        ? 'Requests'
        : `The ${REQUESTS_MAX} dearest requests of ${requests.length} (--json has all)`,
    lines,
  };
};

const timeSummary = (figures: SessionFigures): Safe => {
  const { elapsedMs, turns, usage, clockSetBack } = figures;
  const share = getCacheShare(usage);
  const parts = [
    makeSafe(plural(turns, 'turn')),
    safe`${formatDuration(getWorkMs(figures))} of work in ${formatDuration(elapsedMs)}`,
    formatTotal(usage),
    formatUsage(usage),
    ...(share === null ? [] : [safe`cache share ${makeSafe(shareText(share))}`]),
    ...(clockSetBack === 0
      ? []
      : [makeSafe(`the clock was set back ${plural(clockSetBack, 'time')}`)]),
  ];
  return joinSafe(parts, safe` · `);
};

/** The figures of a session for people, in lines that fit the window. */
export const timeText = (header: FiguresHeader, figures: SessionFigures, look: Look): Safe => {
  const columns = Math.max(20, look.columns);
  const blocks = [
    timeBlock(figures, columns),
    statesBlock(figures, columns),
    toolsBlock(figures, columns),
    requestsBlock(figures, columns),
  ].filter(({ lines }) => lines.length > 0);
  const parts = [
    paint(look, 'dim', joinSafe(fitWords(headLine(header), columns), safe`\n`)),
    joinSafe(fitWords(timeSummary(figures), columns), safe`\n`),
    ...blocks.map(({ title, lines }) =>
      joinSafe([paint(look, 'bold', makeSafe(title)), ...lines], safe`\n`),
    ),
  ];
  return joinSafe(parts, safe`\n\n`);
};

/**
 * `pawl show --time`: where the time and the money of a stored session went.
 *
 * Prints the figures of an agent's session up to entry `at`; as one JSON object with `json`.
 */
export const showTime = async (
  { sessionId, parent }: Pick<SessionInfo, 'sessionId' | 'parent'>,
  at: number | undefined,
  json: boolean,
): Promise<number> => {
  const collector = new FigureCollector({ parent });
  const { header } = await foldStored(sessionId, at, (step) => collector.see(step));
  const figures = collector.figures();
  if (json)
    writeJson({ sessionId, model: header.settings.model, workspace: header.workspace, ...figures });
  else writeOut(safe`${timeText(header, figures, detectLook(process.stdout, process.env))}\n`);
  return exitCodes.done;
};

// Figures as text: durations, shares, dollars, and tables that fit the window.

/** Dollars of sums; the unpriced calls are named. */
const formatTotal = ({ costUsd, unpriced, ...bounds }: UsageTotals): Safe => {
  const known = formatSpent(costUsd, bounds);
  if (unpriced === 0) return known;
  return safe`${known} and ${makeSafe(plural(unpriced, 'call'))} of unknown price`;
};

/** `12.0k in (61% cached), 340 out`. */
const formatUsage = (usage: Omit<Usage, 'costUsd'>): Safe => {
  const prompt = totalTokens(usage) - usage.outputTokens;
  const share = getCacheShare(usage);
  const cached =
    share === null || share === 0 ? safe`` : safe` (${makeSafe(shareText(share))} cached)`;
  return safe`${formatTokens(prompt)} in${cached}, ${formatTokens(usage.outputTokens)} out`;
};

/** A text that stands at the left or the right of its column. */
type TableCell = { readonly text: Safe; readonly align: 'left' | 'right' };
const left = (text: Safe): TableCell => ({ text, align: 'left' });
const right = (text: Safe): TableCell => ({ text, align: 'right' });

const alignCell = ({ text, align }: TableCell, columns: number): Safe => {
  const space = safe` `.repeat(Math.max(0, columns - countColumns(text)));
  return align === 'left' ? safe`${text}${space}` : safe`${space}${text}`;
};

/** Rows with columns of equal width; each row is cut to the window. */
const tableLines = (rows: readonly (readonly TableCell[])[], columns: number): readonly Safe[] => {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, { text }] of row.entries())
      widths[index] = Math.max(widths[index] ?? 0, countColumns(text));
  return rows.map((row) => {
    const cells = row.map((cell, index) => alignCell(cell, widths[index] ?? 0));
    return cutLine(safe`  ${joinSafe(cells, safe`  `)}`, columns).trimEnd();
  });
};
