/**
 * The first view of a session: what became of it in six answers, where time and money went, curves,
 * the story of each crash, and its turns.
 */

import { shareText, tokensText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { groupDigits, localTime } from '@pawl/agent/platform/text';
import {
  getCacheShare,
  getWorkMs,
  promptTokens,
  type SessionFigures,
  SPAN_WORDS,
} from '../figures/session-figures.js';
import { crashStories } from '../model/crash-story.js';
import { clockText, costText, oneLine, partText, plural } from '../model/figure-text.js';
import {
  changedFiles,
  countRounds,
  findHighlights,
  type Highlight,
  QUESTIONS,
  sessionOutcome,
  type TurnFigures,
  turnFigures,
} from '../model/highlights.js';
import type { SessionHistory } from '../model/session-history.js';
import { drawCurves } from './curves.js';
import { make, seqLink, table } from './elements.js';
import type { PageState, Panel } from './page-state.js';

const TURNS_MAX = 100;
const TITLE_MAX = 300;

/** The first words of the user, in one line; the id of a session without any. */
export const sessionTitle = (history: SessionHistory): string => {
  const prompt = history.index.turns.find((turn) => turn.prompt.trim() !== '')?.prompt ?? '';
  return prompt === '' ? history.header.sessionId : oneLine(prompt, TITLE_MAX);
};

/** Figures of a whole session, as rows that two sessions can share. */
const sessionFacts = (history: SessionHistory): readonly (readonly [string, string])[] => {
  const { figures, index } = history;
  const { usage, requests, startedAt } = figures;
  const atLeast = usage.atLeast ? 'at least ' : '';
  const ended = [...index.calls.values()].filter(({ end }) => end !== null);
  const estimated =
    usage.estimated === undefined
      ? ''
      : `; estimated: ${usage.estimated.join(', ')} reports no usage`;
  const failed = ended.filter(({ end }) => end?.status !== 'ok');
  const share = shareText(getCacheShare(usage));
  return [
    ['Cost', `${atLeast}${costText(usage.costUsd, usage.unpriced)}${estimated}`],
    ['Worked', durationText(getWorkMs(figures))],
    ['Turns, rounds', `${groupDigits(figures.turns)}, ${groupDigits(countRounds(requests))}`],
    ['Calls', `${groupDigits(ended.length)}, ${groupDigits(failed.length)} not ok`],
    [
      'Tokens',
      `${tokensText(promptTokens(usage))} in (${share} cached), ${tokensText(usage.outputTokens)} out`,
    ],
    ['Files changed', groupDigits(changedFiles(history))],
    ['Began', localTime(startedAt)],
    ['Last entry', localTime(history.stepAt(history.seq)?.event.at ?? startedAt)],
  ];
};

const markWords: Readonly<Record<string, string>> = {
  error: '✗',
  'failed call': '✗',
  retry: '↻',
  approval: '?',
  cancel: '■',
  limit: '■',
  compaction: '⤓',
  rewind: '↶',
  crash: '☠',
};

const drawMarks = ({ marks }: TurnFigures): HTMLElement =>
  make(
    'span',
    {},
    ...[...marks].map(([kind, count]) =>
      make(
        'span',
        { class: `turn-mark ${kind.replace(' ', '-')}` },
        `${markWords[kind] ?? ''} ${plural(count, kind)}`,
      ),
    ),
  );

export class OverviewPanel implements Panel {
  readonly element = make('section', { class: 'overview' });
  readonly #pageState: PageState;
  #drawn: SessionFigures | null = null;
  #other: SessionHistory | null = null;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
  }

  render(): void {
    const { history, other } = this.#pageState;
    if (this.#drawn === history.figures && this.#other === other) return;
    this.#drawn = history.figures;
    this.#other = other;
    this.element.replaceChildren(
      make('h2', { class: 'hidden' }, 'Overview'),
      ...(other === null ? [] : [this.#comparison(history, other)]),
      this.#answers(history),
      this.#share(history.figures),
      this.#facts(history),
      ...this.#stories(history),
      make('h3', {}, 'Context and cost'),
      drawCurves(history, this.#open),
      make('h3', {}, 'Turns'),
      this.#turns(history),
      make('h3', {}, 'Tools'),
      this.#tools(history.figures),
    );
  }

  readonly #open = (seq: number): void => {
    this.#pageState.go(seq);
    this.#pageState.update({ panel: 'conversation' });
  };

  #facts(history: SessionHistory): HTMLElement {
    return make(
      'dl',
      { class: 'facts-list' },
      ...sessionFacts(history).map(([name, text]) =>
        make('div', {}, make('dt', { class: 'faint' }, name), make('dd', {}, text)),
      ),
    );
  }

  #comparison(history: SessionHistory, other: SessionHistory): HTMLElement {
    const [own = [], others = []] = [history, other].map((one) => [
      ['Outcome', sessionOutcome(one).text] as const,
      ...sessionFacts(one),
    ]);
    const rows = own.map(([name, text], index) => [name, text, others[index]?.[1] ?? '']);
    const ids = [history.header.sessionId, other.header.sessionId];
    return make(
      'div',
      { class: 'comparison' },
      table(
        'Comparison',
        'figures',
        ['', ...ids],
        [['First prompt', sessionTitle(history), sessionTitle(other)], ...rows],
      ),
      make(
        'p',
        { class: 'faint' },
        'Where they part: ',
        make('code', {}, `pawl diff ${ids.join(' ')}`),
      ),
    );
  }

  #answers(history: SessionHistory): HTMLElement {
    const all = findHighlights(history);
    const questions = Object.keys(QUESTIONS) as (keyof typeof QUESTIONS)[]; // its own keys
    return make(
      'dl',
      { class: 'highlights' },
      ...questions.map((question) => {
        const answers = all.filter((one) => one.question === question);
        const kind = question === 'ended' ? sessionOutcome(history).kind : null;
        return make(
          'div',
          { class: `answer ${question}` },
          make('dt', {}, QUESTIONS[question]),
          ...(answers.length === 0
            ? [make('dd', { class: 'faint' }, NO_ANSWER[question])]
            : answers.map((one) => this.#answer(one, kind))),
        );
      }),
    );
  }

  /** `kind`: whether it is good or bad; null for neither. */
  #answer({ seq, answer }: Highlight, kind: string | null): HTMLElement {
    return make(
      'dd',
      {},
      ...answer.map((part) =>
        typeof part === 'string' ? part : make('strong', { class: kind }, partText(part)),
      ),
      ' ',
      seq === null ? null : seqLink(seq, this.#open),
    );
  }

  /** The time as one bar, with a legend. */
  #share({ time, elapsedMs }: SessionFigures): HTMLElement {
    const kinds = Object.keys(SPAN_WORDS) as (keyof typeof SPAN_WORDS)[]; // its own keys
    const parts = kinds.filter((kind) => time[kind] > 0);
    const pieces = parts.map((kind) =>
      make('span', { class: `swatch ${kind}`, style: { 'flex-grow': String(time[kind]) } }),
    );
    const legend = parts.map((kind) => {
      const share = shareText(elapsedMs === 0 ? null : time[kind] / elapsedMs);
      return make(
        'li',
        {},
        make('span', { class: `swatch ${kind}` }),
        `${SPAN_WORDS[kind]} `,
        make('strong', {}, durationText(time[kind])),
        make('span', { class: 'faint' }, ` ${share}`),
      );
    });
    return make(
      'div',
      {},
      make('div', { class: 'share-bar', 'aria-hidden': 'true' }, ...pieces),
      make('ul', { class: 'shares' }, ...legend),
    );
  }

  #stories(history: SessionHistory): readonly HTMLElement[] {
    return crashStories(history).flatMap(({ seq, sentences }, index, { length }) => [
      make('h3', {}, length === 1 ? 'The crash' : `Crash ${index + 1} of ${length}`),
      make(
        'ol',
        { class: 'story', 'data-seq': seq },
        ...sentences.map(({ label, at, seq: entry, text }) =>
          make(
            'li',
            {},
            make('span', { class: 'clock' }, at === null ? '' : clockText(at)),
            make('strong', {}, label),
            make(
              'span',
              {},
              text.map(partText).join(''),
              ' ',
              entry === null ? null : seqLink(entry, this.#open),
            ),
          ),
        ),
      ),
    ]);
  }

  #turns(history: SessionHistory): HTMLElement {
    const turns = turnFigures(history);
    const rows = turns
      .slice(0, TURNS_MAX)
      .map((turn) => [
        seqLink(turn.seq, this.#open, String(turn.number)),
        clockText(turn.at),
        make('span', { class: 'prompt' }, turn.prompt.slice(0, 400) || '(begun without a prompt)'),
        groupDigits(turn.rounds),
        durationText(turn.workMs),
        turn.waitedMs === 0 ? '–' : durationText(turn.waitedMs),
        costText(turn.usd, turn.unpriced),
        drawMarks(turn),
      ]);
    const head = ['turn', 'at', 'you asked', 'rounds', 'worked', 'waited for you', 'cost', 'marks'];
    const rest = turns.length - TURNS_MAX;
    return make(
      'div',
      { class: 'turns' },
      table('Turns', 'figures', head, rows),
      rest > 0 ? make('p', { class: 'faint' }, `${plural(rest, 'more turn')}.`) : null,
    );
  }

  #tools({ tools }: SessionFigures): HTMLElement {
    const head = ['tool', 'calls', 'endings', 'time', 'longest', 'approval', 'cost'];
    const rows = tools.map(({ tool, calls, endings, totalMs, longestMs, approvalMs, usage }) => [
      tool,
      String(calls),
      Object.entries(endings)
        .map(([ending, count]) => `${count} ${ending}`)
        .join(', '),
      durationText(totalMs),
      durationText(longestMs),
      durationText(approvalMs),
      usage.costUsd === 0 && usage.unpriced === 0 ? '–' : costText(usage.costUsd, usage.unpriced),
    ]);
    return table('Tools', 'figures', head, rows);
  }
}

const NO_ANSWER: Readonly<Record<keyof typeof QUESTIONS, string>> = {
  happened: 'The model has not said anything yet.',
  ended: '',
  time: 'Nothing has taken time yet.',
  money: 'Nothing was spent.',
  failed: 'Nothing failed.',
  crashed: 'It never crashed.',
};
