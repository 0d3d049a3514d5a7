import type { HookReport } from '../../ports/after-tool-hooks.js';

/** Results of formatting, and the report about them for the model and the user. */

export type FileOutcome =
  /** Unchanged: already formatted, or not to be formatted. */
  | { readonly kind: 'untouched' }
  /** `shown` is the name for people, `file` the real path. */
  | {
      readonly kind: 'rewritten';
      readonly file: string;
      readonly shown: string;
      readonly formatter: string;
      readonly before: string;
      readonly after: string;
    }
  /** Rewritten by a run of this phase that was interrupted. */
  | { readonly kind: 'formattedEarlier'; readonly file: string; readonly shown: string }
  /** The formatter accepted the file before the batch and rejects it now. */
  | { readonly kind: 'refused'; readonly shown: string; readonly formatter: string; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };

type Rewritten = Extract<FileOutcome, { readonly kind: 'rewritten' }>;

const DIFF_CHARACTERS_MAX = 3_000;
const DIFFS_CHARACTERS_MAX = 8_000;
const DIFF_EDITS_MAX = 500;
const WHY_CHARACTERS_MAX = 200;

/** The hunks of a unified diff without its header; null if the change is too large to show. */
const hunksOf = async ({ shown, before, after }: Rewritten): Promise<string | null> => {
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch(shown, shown, before, after, undefined, undefined, {
    context: 1,
    maxEditLength: DIFF_EDITS_MAX,
  });
  const at = patch?.indexOf('@@') ?? -1;
  const hunks = patch === undefined || at < 0 ? '' : patch.slice(at).trimEnd();
  return hunks === '' || hunks.length > DIFF_CHARACTERS_MAX ? null : hunks;
};

const tellRewritten = async (rewritten: readonly Rewritten[]): Promise<readonly string[]> => {
  if (rewritten.length === 0) return [];
  const lines = [
    'Files that you changed were formatted, as shown here. Base your next edits on the formatted text.',
  ];
  let room = DIFFS_CHARACTERS_MAX;
  for (const one of rewritten) {
    const hunks = await hunksOf(one);
    const isShown = hunks !== null && hunks.length <= room;
    lines.push(`${one.shown} (${one.formatter})${isShown ? ':' : ': read it again before you edit it'}`);
    if (!isShown) continue;
    room -= hunks.length;
    lines.push(hunks);
  }
  return lines;
};

const firstLine = (why: string): string => (why.split('\n')[0] ?? '').slice(0, WHY_CHARACTERS_MAX);

const isKind =
  <K extends FileOutcome['kind']>(kind: K) =>
  (outcome: FileOutcome): outcome is Extract<FileOutcome, { readonly kind: K }> =>
    outcome.kind === kind;

/** `wasDirty`: whether the working tree had changes before formatting. */
export const reportOf = async (
  outcomes: readonly FileOutcome[],
  warnings: readonly string[],
  wasDirty: boolean,
): Promise<HookReport> => {
  const rewritten = outcomes.filter(isKind('rewritten'));
  const refused = outcomes.filter(isKind('refused'));
  const earlier = outcomes.filter(isKind('formattedEarlier'));
  const note = [
    ...(await tellRewritten(rewritten)),
    ...earlier.map(
      ({ shown }) => `${shown} was formatted before an interruption: read it again before you edit it`,
    ),
    ...refused.map(({ shown, formatter, why }) => `${formatter} can't format ${shown} as it is now: ${why}`),
  ];
  const failed = outcomes.filter(isKind('failed')).map(({ why }) => why);
  const told = refused.map(
    ({ shown, formatter, why }) => `${formatter} can't format ${shown}: ${firstLine(why)}`,
  );
  return {
    commits: [],
    changedFiles: [...rewritten, ...earlier].map(({ file }) => file),
    dirty: wasDirty || rewritten.length + earlier.length > 0,
    note: note.length === 0 ? '' : `[formatters] ${note.join('\n')}`,
    warning: [...warnings, ...told, ...failed].join('\n'),
    proceed: true,
  };
};
