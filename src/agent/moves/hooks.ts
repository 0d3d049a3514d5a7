import type { Action } from '../action.js';
import { changeSession } from '../change.js';
import type { On } from '../event.js';
import type { Next } from '../move.js';
import { go } from '../move.js';
import type { HookPhase } from '../purpose.js';
import type { In, Session } from '../state.js';
import { account, accountHook } from './account.js';
import { nextId } from './request.js';
import { tell } from './tell.js';

/** What happens between the results and the next model call (R40-R46). All phases fail open. */

type Hook = In<'PostToolsHook'>;
type Completed = On<'HookCompleted'>;

/** Asked on entry only: a batch that changed nothing passes through. */
export const hookNotWanted = (state: Hook): boolean => {
  if (state.phase !== 'CheckingGitCommits') return false;
  const { hooks } = state.session.settings;
  return hooks === 'never' || (hooks === 'mutating' && state.mutated.length === 0);
};

export const skipHook = (state: Hook): Next<'CheckingBudget'> =>
  go({ name: 'CheckingBudget', session: state.session });

/** Rest of PostToolsHook: the phase starts under a new id. */
export const runHook = (state: Hook): Next<'PostToolsHook'> => {
  const [hookId, numbered] = nextId(state.session, 'hook');
  const session = changeSession(numbered, { unaccounted: [...numbered.unaccounted, hookId] });
  return go({ ...state, session, hookId }, hookAction({ ...state, hookId }));
};

export const hookAction = (state: Hook): Action => ({
  type: 'RunHook',
  hookId: state.hookId,
  phase: state.phase,
  callIds: state.mutated,
});

export const isStaleHook = (state: Hook, event: Completed | On<'HookFailed'>): boolean =>
  event.hookId !== state.hookId;

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

const noticeOf = (kind: 'commits' | 'formatted', lines: readonly string[]): readonly Action[] =>
  lines.length === 0 ? [] : [{ type: 'DisplayNotice', kind, text: lines.join('\n') }];

/** A path as people read it: relative to the workspace where it lies in it. */
const shownPath = (file: string, workspace: string): string =>
  file.startsWith(`${workspace}/`) ? file.slice(workspace.length + 1) : file;

/** What the user is told of a phase that ended: commits, rewritten files, its warning. */
const shown = ({ phase, session }: Hook, event: Completed): readonly Action[] => {
  const whose = phase === 'AutoCommitting' ? 'committed' : 'new commit';
  const commits = event.commits.map(({ hash, subject }) => `${whose} ${hash.slice(0, 8)} ${subject}`);
  const { workspace } = session.settings;
  const rewritten = phase === 'RunningAutoformatters' ? event.changedFiles : [];
  const formatted = rewritten.map((file) => `formatted ${shownPath(file, workspace)}`);
  const warning: readonly Action[] =
    event.warning === '' ? [] : [{ type: 'DisplayWarning', kind: 'hook', text: event.warning }];
  return [...noticeOf('commits', commits), ...noticeOf('formatted', formatted), ...warning];
};

/** Books the phase; its note stands after the results, what it did is shown. */
const finished = (
  state: Hook,
  event: Completed,
): { readonly session: Session; readonly actions: readonly Action[] } => {
  const booked = accountHook(state.session, event);
  const session = event.note.trim() === '' ? booked : tell(booked, 'note', [event.note]);
  return { session, actions: shown(state, event) };
};

const nextPhase = (state: Hook, event: Completed, phase: HookPhase): Next<'PostToolsHook'> => {
  const { session, actions } = finished(state, event);
  return go({ ...state, session, phase, tree: event.dirty ? 'dirty' : 'clean' }, ...actions);
};
export const formatNext = (state: Hook, event: Completed): Next<'PostToolsHook'> =>
  nextPhase(state, event, 'RunningAutoformatters');
export const commitNext = (state: Hook, event: Completed): Next<'PostToolsHook'> =>
  nextPhase(state, event, 'AutoCommitting');

export const finishHooks = (state: Hook, event: Completed): Next<'CheckingBudget'> => {
  const { session, actions } = finished(state, event);
  return go({ name: 'CheckingBudget', session }, ...actions);
};

/** A hook says stop: the results stay (R46). */
export const stopForVeto = (state: Hook, event: Completed): Next<'Cancelled'> => {
  const { session, actions } = finished(state, event);
  return go({ name: 'Cancelled', session, cause: 'veto' }, ...actions);
};

const failure = (
  state: Hook,
  event: On<'HookFailed'>,
): { readonly session: Session; readonly warning: Action } => ({
  session: account(state.session, event.hookId, null),
  warning: {
    type: 'DisplayWarning',
    kind: 'hook',
    text: `${phaseWords[state.phase]} failed: ${event.message}`,
  },
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

export const commitAfterFailure = (state: Hook, event: On<'HookFailed'>): Next<'PostToolsHook'> => {
  const { session, warning } = failure(state, event);
  return go({ ...state, session, phase: 'AutoCommitting' }, warning);
};
export const goOnWithoutHook = (state: Hook, event: On<'HookFailed'>): Next<'CheckingBudget'> => {
  const { session, warning } = failure(state, event);
  return go({ name: 'CheckingBudget', session }, warning);
};
