import type { Bounds, Configuration, ReplyKind, SettingsPatch } from './configuration.js';
import { windowTokens } from './replies.js';

/** What configurations are made of. */

/** Settings that every one begins with: no count that nobody asked for makes the state larger. */
const base: SettingsPatch = {
  windowTokens,
  maxParallel: 2,
  formatter: 'onChanges',
  autoCommit: 'on',
  resultCutBytes: 200,
};
const noLimits = { rounds: 0, truncation: 0, repeats: 0, errors: 0, sameResults: 0 };

export const patched = (patch: SettingsPatch): SettingsPatch => ({
  ...base,
  ...patch,
  limits: { ...noLimits, ...patch.limits },
});

export const answer: ReplyKind = { text: 'yes' };
export const fullAnswer: ReplyKind = { text: 'yes', spending: 'filling' };
/** A batch of as many calls as the bounds allow. */
export const largest = ({ reads, edits }: Bounds): readonly ReplyKind[] =>
  reads + edits > 0 ? [{ calls: 'R'.repeat(reads) + 'E'.repeat(edits) }] : [];

/** Without what only makes the others larger. */
export const quiet = {
  budgetStops: 0,
  compactions: 0,
  crashes: 0,
  late: 0,
  duplicates: 0,
} satisfies Partial<Bounds>;

/** What a bound of 0 rules out does not happen. */
export const within = (configuration: Configuration): Configuration => {
  const { bounds, preset, replies, failures } = configuration;
  const fills = ({ spending }: ReplyKind): boolean => spending === 'filling' || spending === 'overfull';
  return {
    ...configuration,
    preset: bounds.approvals === 0 ? 'auto' : preset,
    replies: bounds.compactions > 0 ? replies : replies.filter((reply) => !fills(reply)),
    failures: bounds.compactions > 0 ? failures : failures.filter((word) => word !== 'tooLong'),
  };
};

type Own = Pick<Configuration, 'name' | 'about'> & Partial<Omit<Configuration, 'bounds' | 'patch'>>;

/** One thing in depth, the rest small: `less` is what it changes of the bounds. */
export const narrow = (
  bounds: Bounds,
  own: Own,
  less: Partial<Bounds>,
  patch: SettingsPatch = {},
): Configuration => {
  const smaller = { ...bounds, ...less };
  return within({
    preset: 'auto',
    replies: [answer, ...largest(smaller)],
    failures: ['passing', 'final'],
    outcomes: ['ok'],
    hooks: ['clean'],
    scopes: ['once'],
    streams: false,
    changes: [],
    misplaced: false,
    ...own,
    patch: patched(patch),
    bounds: smaller,
  });
};
