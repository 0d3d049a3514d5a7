/**
 * Requests of an editor that take back what was done: an extension of the protocol, which is
 * announced as `_meta.pawl.rewind` among the capabilities (docs/use/editors.md).
 */

import { RequestError } from '@agentclientprotocol/sdk';
import type { ChangeSummary } from '@pawl/agent/machine/event';
import type { RewindPoint, RewindRequest } from '@pawl/agent/session/rewind';
import { pointText } from '@pawl/terminal/rewind-words';

export const rewindMethods = {
  timeline: '_pawl/session/timeline',
  plan: '_pawl/session/plan_rewind',
  rewind: '_pawl/session/rewind',
  redo: '_pawl/session/redo',
  undoCompaction: '_pawl/session/undo_compaction',
} as const;

type SessionParameters = { readonly sessionId: string };

const INVALID_PARAMS = -32602;

const badParameters = (why: string): RequestError => new RequestError(INVALID_PARAMS, `${why}.`);

export const readSessionId = (params: unknown): SessionParameters => {
  if (typeof params === 'object' && params !== null && 'sessionId' in params) {
    const { sessionId } = params;
    if (typeof sessionId === 'string') return { sessionId };
  }
  throw badParameters('sessionId is missing');
};

const SWITCHES = ['files', 'conversation', 'force', 'editsOnly', 'refs'] as const;

export const readRewindParameters = (
  params: unknown,
): SessionParameters & { readonly request: RewindRequest } => {
  const { sessionId } = readSessionId(params);
  // an object, since it has a sessionId
  const fields = params as Readonly<Record<string, unknown>>;
  const { at } = fields;
  if (typeof at !== 'number') throw badParameters('at must be the number of an entry');
  const wrong = SWITCHES.find((name) => !['boolean', 'undefined'].includes(typeof fields[name]));
  if (wrong !== undefined) throw badParameters(`${wrong} must be true or false`);
  const chosen = SWITCHES.filter((name) => typeof fields[name] === 'boolean');
  const request = Object.fromEntries(chosen.map((name) => [name, fields[name] === true]));
  return { sessionId, request: { ...request, at } };
};

type ListedPoint = {
  readonly seq: number;
  readonly kind: RewindPoint['kind'];
  /** ISO 8601. */
  readonly at: string;
  readonly title: string;
  readonly text: string | null;
  readonly changes: ChangeSummary | null;
  /** The changes in words. */
  readonly summary: string;
};

/** The newest first. */
export const timelineAnswer = (
  points: readonly RewindPoint[],
): { readonly points: readonly ListedPoint[] } => ({
  points: points
    .toSorted((a, b) => b.seq - a.seq)
    .map((point) => ({
      seq: point.seq,
      kind: point.kind,
      at: new Date(point.at).toISOString(),
      title: point.title,
      text: point.text ?? null,
      changes: point.changes,
      summary: pointText(point, points),
    })),
});
