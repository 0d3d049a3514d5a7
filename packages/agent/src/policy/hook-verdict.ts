/** What a hook of the user says, and how it reaches the model. */

export type HookDecision = 'allow' | 'ask' | 'deny';

export type HookVerdict = {
  /** The hook's name in the configuration. */
  readonly hook: string;
  /** A hook can only tighten: `allow` overrides nothing. */
  readonly decision: HookDecision;
  /** Why it asks or denies. */
  readonly reason?: string;
  /** Text for the model. */
  readonly note?: string;
  /** The hook failed in this way; `decision` is then the one that it declares for this case. */
  readonly fault?: string;
};

/** Moments without an event of their own. The verdicts of the others are part of the event that they belong to. */
export type ReportedMoment = 'session-start' | 'session-end' | 'after-batch' | 'before-request' | 'ask-user';

export type HookVerdicts = readonly HookVerdict[];

const NONE: HookVerdicts = [];
export const verdictsIn = (verdicts: HookVerdicts | undefined): HookVerdicts => verdicts ?? NONE;

export const verdictReason = ({ reason }: HookVerdict): string => reason ?? 'it gave no reason';

export const objects = (verdicts: HookVerdicts): boolean =>
  verdicts.some(({ decision }) => decision === 'deny');

/** Notes for the model. */
export const hookNotes = (verdicts: HookVerdicts): readonly string[] =>
  verdicts.flatMap(({ hook, note }) => (note === undefined ? [] : [`[hook ${hook}] ${note}`]));

/** Notes and objections for the model, about something that has happened and can't be denied any more. */
export const hookRemarks = (verdicts: HookVerdicts): readonly string[] => [
  ...hookNotes(verdicts),
  ...verdicts
    .filter(({ decision }) => decision === 'deny')
    .map((verdict) => `[hook ${verdict.hook}] objects: ${verdictReason(verdict)}`),
];

/** A text with what hooks add to it. */
export const withRemarks = (text: string, remarks: readonly string[]): string =>
  remarks.length === 0 ? text : [text, ...remarks].join('\n');
