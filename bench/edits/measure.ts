/**
 * Draws edits, makes the mistakes of models in them, tries them with the tool `edit`, and sorts
 * the results by their fate. An edit that is refused is repaired once, as a model would do it
 * (repair.ts).
 */

import { planEdits } from '../../packages/agent/src/tools/edit/plan-edits.js';
import { corpusFiles, drawEdit, type TrueEdit } from './corpus.js';
import { KINDS, MIXTURES, type Mistake, type Texts } from './mistakes.js';
import { createRandom, type Random } from './random.js';
import { repair } from './repair.js';

export type Fate =
  /** The edit was applied as intended. */
  | 'right'
  /** Refused, and correct at the next attempt. */
  | 'rightAfterRefusal'
  /** Refused twice. */
  | 'refused'
  /** Refused, and then the model requested a different change than intended. */
  | 'askedOtherwise'
  /** The block was changed, but not as intended. */
  | 'otherwise'
  /** Something other than the block was changed. */
  | 'wrongPlace';

export type TriedEdit = {
  readonly kind: string;
  readonly fate: Fate;
  /** Details of a wrong result. */
  readonly story: string;
  /** For a refusal: whether it names lines, and whether they are those of the block. */
  readonly named?: { readonly lines: boolean; readonly block: boolean };
};

type Kind = {
  readonly name: string;
  readonly mistakes: readonly Mistake[];
  readonly lines: readonly [number, number];
};

const mistakeOf = (name: string): Mistake => {
  const kind = KINDS.find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no such kind of mistake: ${name}`);
  return kind.mistake;
};

/** A block of which a third is left out must be longer. */
const linesFor = (names: readonly string[]): readonly [number, number] =>
  names.includes('… existing code …') ? [9, 24] : [3, 14];

const kinds: readonly Kind[] = KINDS.map(({ name, mistake }) => ({
  name,
  mistakes: [mistake],
  lines: linesFor([name]),
}));
const mixtures: readonly Kind[] = MIXTURES.map((names) => ({
  name: names.join(' + '),
  mistakes: names.map(mistakeOf),
  lines: linesFor(names),
}));

const isInBlock = ({ text, oldLines, first, ending }: TrueEdit, after: string): boolean => {
  const all = text.split(ending);
  const head = all
    .slice(0, first)
    .map((line) => line + ending)
    .join('');
  const tail = all
    .slice(first + oldLines.length)
    .map((line) => ending + line)
    .join('');
  return (
    after.startsWith(head) && after.endsWith(tail) && after.length >= head.length + tail.length
  );
};

const fateOf = (edit: TrueEdit, after: string): Fate => {
  if (after === edit.wanted) return 'right';
  return isInBlock(edit, after) ? 'otherwise' : 'wrongPlace';
};

/** The lines that a refusal shows or names. */
const namedIn = (
  edit: TrueEdit,
  refusal: string,
): { readonly lines: boolean; readonly block: boolean } => {
  const numbers = [...refusal.matchAll(/^(\d+)\t/gm)].map(([, digits]) => Number(digits));
  const [from, until] = [edit.first + 1, edit.first + edit.oldLines.length];
  return {
    lines: numbers.length > 0 && /\blines? \d|\(lines/.test(refusal),
    block: numbers.some((number) => number >= from && number <= until),
  };
};

const tryEdit = (edit: TrueEdit, texts: Texts, kind: string, closed: boolean): TriedEdit => {
  const joinAll = (lines: readonly string[], joined: string): string =>
    lines.join(joined) + (closed ? joined : '');
  const attempt = {
    oldText: joinAll(texts.oldLines, texts.joined),
    newText: joinAll(texts.newLines, texts.newJoined),
  };
  const story = (what: string): string =>
    `${kind}: ${edit.file}:${edit.first + 1}\n--- oldText\n${attempt.oldText}\n--- newText\n${attempt.newText}\n--- ${what}`;
  const planned = planEdits(edit.text, [attempt]);
  if (planned.kind === 'planned') {
    const fate = fateOf(edit, planned.text);
    return { kind, fate, story: fate === 'right' ? '' : story(planned.remarks.join('\n')) };
  }
  const named = namedIn(edit, planned.why);
  const next = repair(attempt, planned.why, { line: edit.first + 1, count: edit.oldLines.length });
  if (next === null) return { kind, fate: 'refused', story: story(planned.why), named };
  const again = planEdits(edit.text, [next]);
  if (again.kind === 'refused')
    return {
      kind,
      fate: 'refused',
      story: story(`${planned.why}\n--- then\n${next.oldText}\n--- ${again.why}`),
      named,
    };
  const after = story(`${planned.why}\n--- then\n${next.oldText}\n--- as\n${next.newText}`);
  const fate = fateOf(edit, again.text);
  if (fate === 'right') return { kind, fate: 'rightAfterRefusal', story: after, named };
  const asAsked = edit.text.split(next.oldText).join(next.newText);
  const isAsAsked = again.text.replaceAll('\r\n', '\n') === asAsked.replaceAll('\r\n', '\n');
  return { kind, fate: isAsAsked ? 'askedOtherwise' : fate, story: after, named };
};

/**
 * A text with a mistake that stands exactly in another place is no mistake that anybody could see.
 */
const standsElsewhere = (
  { text, first, ending }: TrueEdit,
  { oldLines }: Texts,
  { name }: Kind,
): boolean => {
  const at = name === 'exact' ? -1 : text.indexOf(oldLines.join(ending)); // other line ends match
  return at >= 0 && text.slice(0, at).split(ending).length - 1 !== first;
};

const draw = (files: readonly string[], kind: Kind, random: Random): TriedEdit => {
  for (;;) {
    const edit = drawEdit(files, kind.lines, random);
    if (edit === null) continue;
    let texts: Texts | null = {
      oldLines: edit.oldLines,
      newLines: edit.newLines,
      joined: edit.ending,
      newJoined: edit.ending,
    };
    for (const mistake of kind.mistakes)
      texts = texts === null ? null : mistake(texts, edit, random);
    if (texts !== null && !standsElsewhere(edit, texts, kind))
      return tryEdit(edit, texts, kind.name, random.below(2) === 0 && edit.wanted !== '');
  }
};

/**
 * So many edits of each of the twelve kinds, and so many of each mixture; the same for the same
 * seed.
 */
export const measureEdits = (
  ofKind: number,
  ofMixture: number,
  seed: number,
): readonly TriedEdit[] => {
  const random = createRandom(seed);
  const files = corpusFiles();
  const tried: TriedEdit[] = [];
  for (const kind of kinds)
    for (let at = 0; at < ofKind; at++) tried.push(draw(files, kind, random));
  for (const kind of mixtures)
    for (let at = 0; at < ofMixture; at++) tried.push(draw(files, kind, random));
  return tried;
};
