/**
 * Hooks: the phases after a batch of tools, and the verdicts of the user's hooks. A failed phase
 * does not stop the turn.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import {
  type HookVerdict,
  type HookVerdicts,
  hookNotes,
  hookRemarks,
  verdictReason,
} from '../../policy/judged-call.js';
import type { Action, HookPhase } from '../action.js';
import { openParts } from '../conversation.js';
import type { On } from '../event.js';
import {
  appendTexts,
  changeSession,
  go,
  type In,
  ignore,
  type MoveTo,
  nextId,
  type SessionData,
  type SessionUpdate,
  type State,
  type Stay,
  withSession,
} from '../state.js';
import { countHookUsage } from './request.js';
import { cancelledText } from './stop.js';

type Hook = In<'PostToolsHook'>;
type Completed = On<'HookCompleted'>;
type RunHook = Extract<Action, { readonly type: 'RunHook' }>;
type Prepared = On<'HookPrepared'>;

// ---- The phases after a batch ----

/** Whether the batch needs no hook, because it changed nothing. */
export const hookNotWanted = (state: Hook): boolean => {
  if (state.phase !== 'CheckingGitCommits') return false;
  const { hooks } = state.session.settings;
  switch (hooks) {
    case 'never':
      return true;
    case 'always':
      return false;
    case 'mutating':
    case 'mutatingOk':
      return state.mutated.length === 0;
    default:
      return hooks satisfies never;
  }
};

export const skipHook = (state: Hook): MoveTo<'CheckingBudget'> =>
  go({ name: 'CheckingBudget', session: state.session });

/**
 * Rest of PostToolsHook: starts the phase under a new id, without the effects that the phase before
 * was about to have (`prepared`).
 */
export const runHook = ({ prepared: _dropped, ...state }: Hook): MoveTo<'PostToolsHook'> => {
  const [hookId, numbered] = nextId(state.session, 'hook');
  const session = changeSession(numbered, { unaccounted: [...numbered.unaccounted, hookId] });
  return go({ ...state, session, hookId }, runAction({ ...state, hookId }));
};

const runAction = ({ hookId, phase, mutated }: Hook): RunHook => ({
  type: 'RunHook',
  hookId,
  phase,
  callIds: mutated,
});

/**
 * Starts the phase again under the same id. The phase first checks which of its prepared effects
 * happened.
 */
export const hookAgain = (state: Hook): Action => ({
  ...runAction(state),
  interrupted: state.prepared ?? [],
});

export const isStaleHook = (state: Hook, event: Completed | Prepared | On<'HookFailed'>): boolean =>
  event.hookId !== state.hookId;

export const ignorePrepared = (state: Hook): Stay<Hook> =>
  ignore(state, 'stale: it belongs to an old hook');
/**
 * Records the effect, so that a resumed phase can check whether it happened
 * (rules.md#hook-effects).
 */
export const recordPrepared = (state: Hook, { effect }: Prepared): Stay<Hook> =>
  go({ ...state, prepared: [...(state.prepared ?? []), effect] });

export const vetoed = (_state: Hook, event: Completed): boolean => !event.proceed;

export const formatterIsDue = (state: Hook, event: Completed): boolean => {
  if (state.phase !== 'CheckingGitCommits') return false;
  switch (state.session.settings.formatter) {
    case 'off':
      return false;
    case 'onChanges':
      return event.commits.length > 0 || event.changedFiles.length > 0;
    case 'onOneCommit':
      return event.commits.length === 1;
    default:
      return state.session.settings.formatter satisfies never;
  }
};

export const commitIsDue = (state: Hook, event: Completed): boolean =>
  state.phase !== 'AutoCommitting' && state.session.settings.autoCommit === 'on' && event.dirty;

const createNotice = (
  kind: 'commits' | 'formatted',
  lines: readonly string[],
): readonly Action[] =>
  lines.length === 0 ? [] : [{ type: 'DisplayNotice', kind, text: lines.join('\n') }];

/** Notices about a completed phase: commits, rewritten files, its warning. */
const phaseNotices = ({ phase, session }: Hook, event: Completed): readonly Action[] => {
  const whose = phase === 'AutoCommitting' ? 'committed' : 'new commit';
  const commits = event.commits.map(
    ({ hash, subject }) => `${whose} ${hash.slice(0, 8)} ${subject}`,
  );
  const folder = `${session.settings.workspace}/`;
  const rewritten = phase === 'RunningAutoformatters' ? event.changedFiles : [];
  const formatted = rewritten.map(
    (file) => `formatted ${file.startsWith(folder) ? file.slice(folder.length) : file}`,
  );
  const warning: readonly Action[] =
    event.warning === '' ? [] : [{ type: 'DisplayWarning', kind: 'hook', text: event.warning }];
  return [...createNotice('commits', commits), ...createNotice('formatted', formatted), ...warning];
};

/** Counts the usage of the phase, appends its note after the results and shows its effects. */
const finishPhase = (state: Hook, event: Completed): SessionUpdate => {
  const counted = countHookUsage(state.session, event);
  const session = event.note.trim() === '' ? counted : appendTexts(counted, 'note', [event.note]);
  return { session, actions: phaseNotices(state, event) };
};

/** Begins the next phase after a completed one. */
const nextPhase = (state: Hook, event: Completed, phase: HookPhase): MoveTo<'PostToolsHook'> => {
  const { session, actions } = finishPhase(state, event);
  return go({ ...state, session, phase, tree: event.dirty ? 'dirty' : 'clean' }, ...actions);
};
export const formatNext = (state: Hook, event: Completed): MoveTo<'PostToolsHook'> =>
  nextPhase(state, event, 'RunningAutoformatters');
export const commitNext = (state: Hook, event: Completed): MoveTo<'PostToolsHook'> =>
  nextPhase(state, event, 'AutoCommitting');

export const finishHooks = (state: Hook, event: Completed): MoveTo<'CheckingBudget'> => {
  const { session, actions } = finishPhase(state, event);
  return go({ name: 'CheckingBudget', session }, ...actions);
};

/** A hook stops the turn; the results stay (rules.md#hook-veto). */
export const stopForVeto = (state: Hook, event: Completed): MoveTo<'Cancelled'> => {
  const { session, actions } = finishPhase(state, event);
  return go({ name: 'Cancelled', session, cause: 'veto', text: cancelledText('veto') }, ...actions);
};

/** A warning, and nothing is counted: the usage of a failed phase may still come. */
const failureWarning = ({ phase }: Hook, { message }: On<'HookFailed'>): Action => ({
  type: 'DisplayWarning',
  kind: 'hook',
  text: `${phaseWords[phase]} failed: ${message}`,
});

const phaseWords: Readonly<Record<HookPhase, string>> = {
  CheckingGitCommits: 'looking for new commits',
  RunningAutoformatters: 'formatting the changed files',
  AutoCommitting: 'committing the changes',
};

export const commitIsDueAnyway = (state: Hook, _event: On<'HookFailed'>): boolean =>
  state.phase === 'RunningAutoformatters' &&
  state.tree === 'dirty' &&
  state.session.settings.autoCommit === 'on';

export const commitAfterFailure = (state: Hook, event: On<'HookFailed'>): MoveTo<'PostToolsHook'> =>
  go({ ...state, phase: 'AutoCommitting' }, failureWarning(state, event));
export const goOnWithoutHook = (state: Hook, event: On<'HookFailed'>): MoveTo<'CheckingBudget'> =>
  go({ name: 'CheckingBudget', session: state.session }, failureWarning(state, event));

// ---- Hooks of the user, at moments that have no other event ----

type HooksRan = On<'UserHooksRan'>;

/**
 * Texts for the model: notes, and after a batch (`hookRemarks`) also objections. The start of a
 * session can't be denied, so objections to it are for the user alone.
 */
const modelTexts = ({ moment, verdicts }: HooksRan): readonly string[] => {
  switch (moment) {
    case 'after-batch':
      return hookRemarks(verdicts);
    case 'before-request':
    case 'session-start':
      return hookNotes(verdicts);
    case 'session-end':
    case 'ask-user':
      return [];
    default:
      return moment satisfies never;
  }
};

/**
 * Whether the model reads the text already: in the next request, or with what is waiting for it.
 */
const isNoted = ({ notes, conversation }: SessionData, text: string): boolean =>
  notes.includes(text) ||
  openParts(conversation).some(
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    (part) => part.type === 'text' && part.origin === 'note' && part.text === text,
  );

/**
 * Texts for the request that waits for the hooks, or else for the next one. The event can come
 * twice; the model reads the same text once.
 */
const addTexts = (state: State, event: HooksRan): SessionData => {
  const { session } = state;
  const texts = modelTexts(event).filter((text) => !isNoted(session, text));
  if (texts.length === 0) return session;
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  const waits = state.name === 'CallingLlm' && state.requestId === event.requestId;
  return waits
    ? appendTexts(session, 'note', texts)
    : changeSession(session, { notes: [...session.notes, ...texts] });
};

/** Records what hooks said (rules.md#user-hooks-report). */
export const hearHooks = <S extends State>(state: S, event: HooksRan): Stay<S> => {
  const session = addTexts(state, event);
  const shown = showObjections(event.verdicts);
  if (session === state.session && shown.length === 0)
    return ignore(state, 'the hooks had nothing to say');
  return go(session === state.session ? state : withSession(state, session), ...shown);
};

// ---- What the user sees of hooks ----

const showVerdict = ({ hook, note, fault }: HookVerdict): readonly Action[] => [
  ...(fault === undefined
    ? []
    : [{ type: 'DisplayWarning', kind: 'hook', text: `hook ${hook}: ${fault}` } as const]),
  ...(note === undefined
    ? []
    : [{ type: 'DisplayNotice', kind: 'hook', text: `hook ${hook}: ${note}` } as const]),
];

/** For the user: the failures of hooks, and their notes. */
export const showHooks = (verdicts: HookVerdicts): readonly Action[] =>
  // Stryker disable next-line ConditionalExpression: a shortcut
  verdicts.length === 0 ? [] : verdicts.flatMap(showVerdict);

/** Failures, notes and objections. The objection to a call is in its result already. */
export const showObjections = (verdicts: HookVerdicts): readonly Action[] =>
  verdicts.flatMap((verdict) => {
    const { hook, decision, fault } = verdict;
    if (decision === 'allow' || fault !== undefined) return showVerdict(verdict);
    return [
      ...showVerdict(verdict),
      {
        type: 'DisplayWarning',
        kind: 'hook',
        text: `hook ${hook}: ${verdictReason(verdict)}`,
      } as const,
    ];
  });
