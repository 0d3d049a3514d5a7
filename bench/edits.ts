/**
 * `npm run bench -- edits`: results of edits with the mistakes of models, PAWL_EDIT_COUNT of each
 * kind.
 */

import { type Fate, measureEdits, type TriedEdit } from './edits/measure.js';

const COUNT = Number(process.env.PAWL_EDIT_COUNT ?? 180);
const SEED = Number(process.env.PAWL_EDIT_SEED ?? 20_261_122);
const FATES: readonly Fate[] = [
  'right',
  'rightAfterRefusal',
  'refused',
  'askedOtherwise',
  'otherwise',
  'wrongPlace',
];

const share = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`;

const row = (name: string, tried: readonly TriedEdit[]): string => {
  const counts = FATES.map((fate) => tried.filter((one) => one.fate === fate).length);
  const refusals = tried.filter((one) => one.named !== undefined);
  const named = share(refusals.filter((one) => one.named?.lines === true).length, refusals.length);
  const block = share(refusals.filter((one) => one.named?.block === true).length, refusals.length);
  const [right = 0, later = 0] = counts;
  const cells = [
    name,
    tried.length,
    ...counts,
    share(right, tried.length),
    share(right + later, tried.length),
    named,
    block,
  ];
  return `| ${cells.join(' | ')} |`;
};

export const benchEdits = async (): Promise<string> => {
  const tried = measureEdits(COUNT, Math.ceil(COUNT / 5), SEED);
  const names = [...new Set(tried.map(({ kind }) => kind))];
  const isMixture = ({ kind }: TriedEdit): boolean => kind.includes(' + ');
  const show = process.env.PAWL_EDIT_SHOW;
  const stories = tried.filter(
    (one) => show === one.fate || (show !== undefined && one.kind === show && one.fate !== 'right'),
  );
  return [
    `${tried.length} edits over real packages, seed ${SEED}`,
    '',
    '| mistake | edits | right at once | right after one refusal | refused twice | then asked for something else | right place, other text | wrong place | at once | at most one refusal | refusals that name lines | and show the block |',
    `|---|${'---:|'.repeat(11)}`,
    ...names.map((name) =>
      row(
        name,
        tried.filter((one) => one.kind === name),
      ),
    ),
    row(
      '**the twelve kinds**',
      tried.filter((one) => !isMixture(one)),
    ),
    row('**mixtures**', tried.filter(isMixture)),
    row('**all**', tried),
    ...stories.slice(0, 20).map(({ story, fate }) => `\n===== ${fate}\n${story}`),
  ].join('\n');
};
