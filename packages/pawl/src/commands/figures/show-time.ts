import { addUsage } from '@pawl/agent/machine/moves/common/count-usage';
import type { UsageTotals } from '@pawl/agent/machine/state';
import { plural } from '@pawl/agent/platform/base/plural';
import type { Header, SessionInfo } from '@pawl/agent/ports/journal';
import { FigureCollector } from '@pawl/inspector/figures/collect-figures';
import {
  cacheShareOf,
  type ProcessGap,
  type RequestFigures,
  type SessionFigures,
  type TimeSpanKind,
} from '@pawl/inspector/figures/session-figures';
import { NO_USAGE } from '@pawl/inspector/figures/tool-log';
import { formatCost, formatWhen, type Look, lookOf, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { wrapWords } from '@pawl/terminal/width';
import { writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../../exit-codes.js';
import { foldStored } from '../../sessions/stored-sessions.js';
import {
  formatDuration,
  formatShare,
  formatTotal,
  formatUsage,
  kindWords,
  left,
  right,
  tableLines,
} from './figure-texts.js';
import { waterfallLines } from './waterfall.js';

/** `pawl show --time`: where the time and the money of a stored session went. */

const REQUESTS_MAX = 30;

type HeadOfText = Pick<Header, 'sessionId' | 'createdAt' | 'settings' | 'workspace'>;
type Block = { readonly title: string; readonly lines: readonly Safe[] };

const sumOf = (usages: readonly (UsageTotals | RequestFigures['usage'])[]): UsageTotals =>
  usages.reduce<UsageTotals>((sum, usage) => {
    if (usage === null) return sum;
    if (!('unpriced' in usage)) return addUsage(sum, usage);
    const added = addUsage(sum, usage);
    return { ...added, unpriced: sum.unpriced + usage.unpriced };
  }, NO_USAGE);

/** Where the money was spent, by the state that spent it. */
const spentIn = ({
  requests,
  spending,
  hookUsage,
}: SessionFigures): Readonly<Record<string, UsageTotals>> => {
  const usagesOf = (isSummary: boolean) =>
    requests.filter(({ purpose }) => (purpose === 'compaction') === isSummary).map(({ usage }) => usage);
  return {
    CallingLlm: sumOf(usagesOf(false)),
    Compacting: sumOf(usagesOf(true)),
    ExecutingTools: sumOf(spending.map(({ usage }) => usage)),
    PostToolsHook: hookUsage,
  };
};

const kinds = Object.keys(kindWords) as readonly (TimeSpanKind | 'other')[]; // the keys of that very record

const timeBlock = ({ time, elapsedMs }: SessionFigures, columns: number): Block => ({
  title: 'Time',
  lines: tableLines(
    kinds
      .filter((kind) => time[kind] > 0)
      .toSorted((one, other) => time[other] - time[one])
      .map((kind) => [
        left(makeSafe(kindWords[kind])),
        right(formatDuration(time[kind])),
        right(formatShare(time[kind], elapsedMs)),
      ]),
    columns,
  ),
});

const costCell = ({ costUsd, unpriced }: UsageTotals): Safe => {
  if (unpriced > 0) return safe`price unknown`;
  return costUsd === 0 ? safe`` : formatCost(costUsd);
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
        right(costCell(spent[state] ?? NO_USAGE)),
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

/** What a request cost or, without a price, its tokens decide which are shown of many. */
const weightOf = ({ usage }: RequestFigures): number =>
  usage === null ? 0 : (usage.costUsd ?? 0) * 1e9 + usage.inputTokens + usage.outputTokens;

const requestsBlock = ({ requests }: SessionFigures, columns: number): Block => {
  const dearest = new Set(
    requests.toSorted((one, other) => weightOf(other) - weightOf(one)).slice(0, REQUESTS_MAX),
  );
  const rows = requests.filter((request) => dearest.has(request));
  const cells = rows.map(({ id, seq, startMs, firstPieceMs, endMs, usage }) => [
    left(makeSafe(id)),
    right(safe`seq ${seq}`),
    right(usage === null ? safe`` : formatCost(usage.costUsd)),
    right(formatDuration(endMs - startMs)),
    left(firstPieceMs === null ? safe`` : safe`first piece ${formatDuration(firstPieceMs - startMs)}`),
    left(usage === null ? safe`` : formatUsage(usage)),
  ]);
  const lines = tableLines(cells, columns).flatMap((line, index) => {
    const request = rows[index];
    const notes = request === undefined ? '' : requestNotes(request);
    const wrapped = notes === '' ? [] : wrapWords(makeSafe(notes), columns - 6);
    return [line, ...wrapped.map((note) => safe`      ${note}`)];
  });
  const others = requests.length - rows.length;
  return {
    title:
      others === 0
        ? 'Requests'
        : `The ${REQUESTS_MAX} dearest requests of ${requests.length} (--json has all)`,
    lines,
  };
};

const gapText = ({ cause, seq, startMs, endMs, state, doing }: ProcessGap): string => {
  const away = formatDuration(endMs - startMs);
  if (cause === 'closed') return `closed, and opened again after ${away} (seq ${seq})`;
  if (cause === 'forked') return `forked here from its parent, ${away} later (seq ${seq})`;
  const work = doing.length === 0 ? '' : `: ${doing.join(', ')}`;
  return `crashed in ${state}${work}; opened again after ${away} (seq ${seq})`;
};

const gapsBlock = ({ gaps }: SessionFigures, columns: number): Block => ({
  title: 'Between processes',
  lines: gaps.flatMap((gap) =>
    wrapWords(makeSafe(gapText(gap).replace(/\s+/g, ' ')), columns - 2).map((line) => safe`  ${line}`),
  ),
});

const summaryOf = ({ elapsedMs, time, turns, usage, clockSetBack }: SessionFigures): Safe => {
  const active = elapsedMs - time.idle - time.between;
  const share = cacheShareOf(usage);
  const parts = [
    makeSafe(plural(turns, 'turn')),
    safe`${formatDuration(active)} of work in ${formatDuration(elapsedMs)}`,
    formatTotal(usage),
    formatUsage(usage),
    ...(share === null ? [] : [safe`cache share ${formatShare(share, 1)}`]),
    ...(clockSetBack === 0 ? [] : [makeSafe(`the clock was set back ${plural(clockSetBack, 'time')}`)]),
  ];
  return joinSafe(parts, safe` · `);
};

/** The figures of a session for people, in lines that fit the window. */
export const timeText = (header: HeadOfText, figures: SessionFigures, look: Look): Safe => {
  const columns = Math.max(20, look.columns);
  const head = makeSafe(
    `${header.sessionId} · ${formatWhen(header.createdAt)} · ${header.settings.model} · ${header.workspace}`,
  );
  const blocks = [
    timeBlock(figures, columns),
    statesBlock(figures, columns),
    toolsBlock(figures, columns),
    requestsBlock(figures, columns),
    gapsBlock(figures, columns),
    { title: 'In order', lines: waterfallLines(look, figures.spans) },
  ].filter(({ lines }) => lines.length > 0);
  const parts = [
    paint(look, 'dim', joinSafe(wrapWords(head, columns), safe`\n`)),
    joinSafe(wrapWords(summaryOf(figures), columns), safe`\n`),
    ...blocks.map(({ title, lines }) => joinSafe([paint(look, 'bold', makeSafe(title)), ...lines], safe`\n`)),
  ];
  return joinSafe(parts, safe`\n\n`);
};

/** Prints the figures of an agent's session up to entry `at`; as one JSON object with `json`. */
export const showTime = async (
  { sessionId, parent }: Pick<SessionInfo, 'sessionId' | 'parent'>,
  at: number | undefined,
  json: boolean,
): Promise<number> => {
  const collector = new FigureCollector({ parent });
  const { header } = await foldStored(sessionId, at, (step) => collector.see(step));
  const figures = collector.figures();
  if (json) writeJson({ sessionId, model: header.settings.model, workspace: header.workspace, ...figures });
  else writeOut(safe`${timeText(header, figures, lookOf(process.stdout, process.env))}\n`);
  return exitCodes.done;
};
