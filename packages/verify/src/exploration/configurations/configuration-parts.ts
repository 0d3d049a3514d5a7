import { noLimits } from '@pawl/agent/machine/settings';
import type { Bounds, Configuration, ExplorationSettings, ReplyKind } from './configuration.js';
import { windowTokens } from './model-replies.js';

/** Building blocks of configurations. */

/** Base settings of all configurations, chosen to keep the state small. */
const base: ExplorationSettings = {
  windowTokens,
  maxParallel: 2,
  formatter: 'onChanges',
  autoCommit: 'on',
  resultCutBytes: 200,
};

export const explorationSettings = (patch: ExplorationSettings): ExplorationSettings => ({
  ...base,
  ...patch,
  limits: { ...noLimits, ...patch.limits },
});

export const answer: ReplyKind = { text: 'yes' };
export const fullAnswer: ReplyKind = { text: 'yes', spending: 'filling' };
/** The largest batch that the bounds allow. */
export const largestBatch = ({ reads, edits }: Bounds): readonly ReplyKind[] =>
  reads + edits > 0 ? [{ calls: 'R'.repeat(reads) + 'E'.repeat(edits) }] : [];

/** Bounds without events that would only enlarge the exploration. */
export const quietBounds = {
  budgetStops: 0,
  compactions: 0,
  crashes: 0,
  late: 0,
  duplicates: 0,
} satisfies Partial<Bounds>;

/** Removes everything that a bound of 0 rules out. */
export const withinBounds = (configuration: Configuration): Configuration => {
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

/** A configuration that explores one subject in depth. `less` overrides bounds. */
export const smallConfiguration = (
  bounds: Bounds,
  own: Own,
  less: Partial<Bounds>,
  patch: ExplorationSettings = {},
): Configuration => {
  const smaller = { ...bounds, ...less };
  return withinBounds({
    preset: 'auto',
    replies: [answer, ...largestBatch(smaller)],
    failures: ['passing', 'final'],
    outcomes: ['ok'],
    hooks: ['clean'],
    scopes: ['once'],
    streams: false,
    changes: [],
    clockJumps: false,
    misplaced: false,
    ...own,
    patch: explorationSettings(patch),
    bounds: smaller,
  });
};
