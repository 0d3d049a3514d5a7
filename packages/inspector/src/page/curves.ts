/** Curves of the context and of the cost so far, over the rounds, with compactions and crashes. */

import { clockText, moneyText, plural, shortCount } from '../model/figure-text.js';
import type { SessionHistory } from '../model/session-history.js';
import { draw, make } from './elements.js';

const WIDTH = 1_000;
const HEIGHT = 130;
const POINTS_MAX = 500;

type Point = {
  readonly seq: number;
  readonly at: number;
  readonly tokens: number;
  readonly usd: number;
};

/** What each reply left: the size of the context, and the money spent so far. */
const replyPoints = (history: SessionHistory): readonly Point[] => {
  const all = history.figures.requests.flatMap(({ endSeq, ending, at }): readonly Point[] => {
    if (endSeq === null || ending !== 'completed') return [];
    const { contextTokens, usage } = history.stateAt(endSeq).session;
    return [{ seq: endSeq, at, tokens: contextTokens, usd: usage.costUsd }];
  });
  const every = Math.ceil(all.length / POINTS_MAX);
  return all.filter((_, index) => index % every === 0 || index === all.length - 1);
};

type Curve = {
  readonly name: string;
  readonly kind: 'tokens' | 'usd';
  readonly top: number;
  readonly topText: string;
  readonly lastText: string;
};

const drawCurve = (
  { name, kind, top, topText, lastText }: Curve,
  points: readonly Point[],
  marks: readonly { readonly x: number; readonly kind: string; readonly text: string }[],
  go: (seq: number) => void,
): HTMLElement => {
  const x = (index: number): number =>
    points.length < 2 ? WIDTH / 2 : (index / (points.length - 1)) * WIDTH;
  const y = (value: number): number => HEIGHT - (value / Math.max(top, 1e-9)) * (HEIGHT - 8);
  const line = points.map((point, index) => `${x(index).toFixed(1)} ${y(point[kind]).toFixed(1)}`);
  const area = `M0 ${HEIGHT}L${line.join('L')}L${WIDTH} ${HEIGHT}Z`;
  const svg = draw(
    'svg',
    {
      class: `curve ${kind}`,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${name}: ${lastText} at the end${topText === '' ? '' : `, ${topText} at most`}`,
    },
    draw('path', { class: 'area', d: area }),
    draw('path', { class: 'line', d: `M${line.join('L')}` }),
    ...marks.map((mark) =>
      draw(
        'line',
        {
          class: `curve-mark ${mark.kind}`,
          x1: mark.x * WIDTH,
          x2: mark.x * WIDTH,
          y1: 0,
          y2: HEIGHT,
        },
        draw('title', {}, mark.text),
      ),
    ),
  );
  const caption = make(
    'figcaption',
    {},
    `${name}: `,
    make('strong', {}, lastText),
    topText === '' ? '' : `, at most ${topText}`,
  );
  const pointed = make('span', { class: 'faint' });
  const find = (event: PointerEvent | MouseEvent): Point | undefined => {
    const { left, width } = svg.getBoundingClientRect();
    return points[Math.round(((event.clientX - left) / width) * (points.length - 1))];
  };
  svg.addEventListener('pointermove', (event) => {
    const point = find(event);
    if (point === undefined) return;
    const value = kind === 'usd' ? moneyText(point.usd) : `${shortCount(point.tokens)} tokens`;
    pointed.textContent = ` · ${clockText(point.at)}: ${value}, #${point.seq}`;
  });
  svg.addEventListener('pointerleave', () => pointed.replaceChildren());
  svg.addEventListener('click', (event) => {
    const point = find(event);
    if (point !== undefined) go(point.seq);
  });
  caption.append(pointed);
  return make('figure', { class: 'curve-figure' }, caption, svg);
};

export const drawCurves = (history: SessionHistory, go: (seq: number) => void): HTMLElement => {
  const points = replyPoints(history);
  if (points.length === 0) return make('p', { class: 'faint' }, 'No reply has come yet.');
  const { windowTokens } = history.header.settings;
  const tokensMax = Math.max(...points.map(({ tokens }) => tokens));
  const last = points.at(-1) ?? { tokens: 0, usd: 0 };
  const marks = history.markers
    .filter(({ kind }) => kind === 'compaction' || kind === 'crash')
    .map(({ seq, kind, text }) => {
      const after = points.findIndex((point) => point.seq >= seq);
      const index = after < 0 ? points.length - 1 : after;
      return { x: index / Math.max(1, points.length - 1), kind, text: `${kind}: ${text}` };
    });
  const compactions = marks.filter(({ kind }) => kind === 'compaction').length;
  const crashes = marks.length - compactions;
  const isLimited = Number.isFinite(windowTokens) && windowTokens < 100 * tokensMax;
  const share = isLimited ? ` of a window of ${shortCount(windowTokens)}` : '';
  return make(
    'div',
    { class: 'curves' },
    drawCurve(
      {
        name: 'Context',
        kind: 'tokens',
        top: tokensMax,
        topText: `${shortCount(tokensMax)}${share}`,
        lastText: `${shortCount(last.tokens)} tokens`,
      },
      points,
      marks,
      go,
    ),
    drawCurve(
      {
        name: 'Cost',
        kind: 'usd',
        top: last.usd,
        topText: '',
        lastText: moneyText(last.usd),
      },
      points,
      marks,
      go,
    ),
    marks.length === 0
      ? null
      : make(
          'p',
          { class: 'legend' },
          ...(compactions === 0
            ? []
            : [make('span', { class: 'key-line compaction' }), plural(compactions, 'compaction')]),
          ...(crashes === 0
            ? []
            : [make('span', { class: 'key-line crash' }), plural(crashes, 'crash', 'crashes')]),
        ),
  );
};
