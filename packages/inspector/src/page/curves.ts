/** Curves of context and cost so far, over the replies, with compactions and crashes. */

import { moneyText, tokensText } from '@pawl/agent/machine/settings';
import { eventWords } from '../model/event-words.js';
import { clockText, plural } from '../model/figure-text.js';
import type { SessionHistory } from '../model/session-history.js';
import { make, makeSvg } from './elements.js';

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
const replyPoints = (history: SessionHistory): readonly Point[] =>
  history.figures.requests.flatMap(({ endSeq, ending, at }): readonly Point[] => {
    if (endSeq === null || ending !== 'completed') return [];
    const { contextTokens, usage } = history.stateAt(endSeq).session;
    return [{ seq: endSeq, at, tokens: contextTokens, usd: usage.costUsd }];
  });

/** The points that are drawn: some of many, and two for one, which makes a line. */
const drawnPoints = (all: readonly Point[]): readonly Point[] => {
  const every = Math.ceil(all.length / POINTS_MAX);
  const some = all.filter((_, index) => index % every === 0 || index === all.length - 1);
  return some.length === 1 ? [...some, ...some] : some;
};

type Curve = {
  readonly name: string;
  readonly kind: 'tokens' | 'usd';
  readonly top: number;
  readonly lastText: string;
  /** What to say after the last value. */
  readonly topText: string;
};

/** A compaction or a crash. `x`: its place, from 0 to 1. */
type CurveMark = {
  readonly x: number;
  readonly kind: 'compaction' | 'crash';
  readonly text: string;
};

const drawCurve = (
  { name, kind, top, topText, lastText }: Curve,
  points: readonly Point[],
  marks: readonly CurveMark[],
  go: (seq: number) => void,
): HTMLElement => {
  const x = (index: number): number => (index / (points.length - 1)) * WIDTH;
  const y = (value: number): number => HEIGHT - (value / Math.max(top, 1e-9)) * (HEIGHT - 8);
  const line = points.map((point, index) => `${x(index).toFixed(1)} ${y(point[kind]).toFixed(1)}`);
  const pointed = make('span', { class: 'faint' });
  const find = (event: MouseEvent): Point | undefined => {
    const { left, width } = svg.getBoundingClientRect();
    return points[Math.round(((event.clientX - left) / width) * (points.length - 1))];
  };
  const svg = makeSvg(
    'svg',
    {
      class: `curve ${kind}`,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${name}: ${lastText} at the end${topText}`,
      onpointermove: (event) => {
        const point = find(event);
        if (point === undefined) return;
        const value = kind === 'usd' ? moneyText(point.usd) : `${tokensText(point.tokens)} tokens`;
        pointed.textContent = ` · ${clockText(point.at)}: ${value}, #${point.seq}`;
      },
      onpointerleave: () => pointed.replaceChildren(),
      onclick: (event) => {
        const point = find(event);
        if (point !== undefined) go(point.seq);
      },
    },
    makeSvg('path', { class: 'area', d: `M0 ${HEIGHT}L${line.join('L')}L${WIDTH} ${HEIGHT}Z` }),
    makeSvg('path', { class: 'line', d: `M${line.join('L')}` }),
    ...marks.map((mark) =>
      makeSvg(
        'path',
        { class: `curve-mark ${mark.kind}`, d: `M${mark.x * WIDTH} 0V${HEIGHT}` },
        makeSvg('title', {}, mark.text),
      ),
    ),
  );
  const last = make('strong', {}, lastText);
  return make('figure', {}, make('figcaption', {}, `${name}: `, last, topText, pointed), svg);
};

export const drawCurves = (history: SessionHistory, go: (seq: number) => void): HTMLElement => {
  const all = replyPoints(history);
  const last = all.at(-1);
  if (last === undefined) return make('p', { class: 'faint' }, 'No reply has come yet.');
  const points = drawnPoints(all);
  const { windowTokens } = history.stateAt(history.seq).session.settings;
  const top = all.reduce((most, { tokens }) => Math.max(most, tokens), 0);
  const marks = history.markers.flatMap(({ seq, kind }): readonly CurveMark[] => {
    const step = history.stepAt(seq);
    if (step === null || (kind !== 'compaction' && kind !== 'crash')) return [];
    if (step.event.type === 'CompactionFailed') return [];
    const after = points.findIndex((point) => point.seq >= seq);
    const index = after < 0 ? points.length - 1 : after;
    const x = index / (points.length - 1);
    return [{ x, kind, text: `${kind}: ${eventWords(step, history.index)}` }];
  });
  const compactions = marks.filter(({ kind }) => kind === 'compaction').length;
  const crashes = marks.length - compactions;
  // a window that is much larger says nothing
  const isLimited = Number.isFinite(windowTokens) && windowTokens < 100 * top;
  const share = isLimited ? ` of a window of ${tokensText(windowTokens)}` : '';
  const topText = `, at most ${tokensText(top)}${share}`;
  const lastText = `${tokensText(last.tokens)} tokens`;
  const spent = { top: last.usd, topText: '', lastText: moneyText(last.usd) };
  const keys = [
    ...(compactions === 0 ? [] : [drawKey('compaction'), plural(compactions, 'compaction')]),
    ...(crashes === 0 ? [] : [drawKey('crash'), plural(crashes, 'crash', 'crashes')]),
  ];
  return make(
    'div',
    { class: 'curves' },
    drawCurve({ name: 'Context', kind: 'tokens', top, topText, lastText }, points, marks, go),
    drawCurve({ name: 'Cost', kind: 'usd', ...spent }, points, marks, go),
    make('p', { class: 'faint', hidden: keys.length === 0 }, ...keys),
  );
};

const drawKey = (kind: string): HTMLElement => make('span', { class: `key-line ${kind}` });
