/**
 * Changes the limits of a tree that is not running, so that a run that reached a limit can
 * continue. A piece is one prompt of a sub-call; it is refused if the remaining budget could not
 * pay for it. A draft collects the results of one step.
 */

import { addUserText } from '../run/conversation.js';
import type { ChangedLimits, LimitsChanged } from '../run/event.js';
import { nextId, withRun } from '../run/move-result.js';
import { firstDecision } from '../run/moves/model-call.js';
import { NO_REPLY } from '../run/moves/read-reply.js';
import { postpone, stoppedMs } from '../run/moves/resume.js';
import { readRunLimits } from '../run/settings.js';
import type { CodeState, Living, Run } from '../run/state.js';
import { raisedWords } from '../run/texts-for-model.js';
import { limitAccount, ROOT } from './ledger.js';
import { addDiagnostic, changeTree, setLedger, setNode, type TreeDraft } from './step-draft.js';
import { piecesOf, type Tree } from './tree-state.js';

/** Number of refused pieces. A run with refused pieces may still have answered. */
const refusedIn = ({ pieces }: Tree): number => piecesOf(pieces).refused;

/**
 * Whether an ended tree can continue with higher limits: a limit ended it or refused some of its
 * pieces.
 */
export const canGoOn = (tree: Tree): boolean => {
  const root = tree.nodes[ROOT];
  if (root?.name !== 'DONE') return true;
  // the root was one plain call: it has no iterations to go on with
  if (root.run.depth >= root.run.depthMax) return false;
  if (root.stoppedIn !== null) return true;
  const { outcome } = root;
  return outcome.status === 'answered' && (outcome.closing === 'iterations' || refusedIn(tree) > 0);
};

/** Changes the limits and the deadlines. A tree that a limit ended can be resumed afterwards. */
export const changeLimits = (draft: TreeDraft, event: LimitsChanged): void => {
  const { tree } = draft;
  if (tree.nodes[ROOT] === undefined || !canGoOn(tree)) {
    addDiagnostic(draft, event, tree.name, 'the run is over, and no limit ended it');
    return;
  }
  // deadlines and retries move by the time in which nobody ran
  for (const [node, state] of Object.entries(tree.nodes))
    setNode(draft, node, postpone(state, stoppedMs(event)));
  const root = draft.tree.nodes[ROOT];
  if (root === undefined) return;
  const living = livingWith(root, tree, (run) =>
    withDeadline(withSettings(run, event.limits), event),
  );
  setNode(draft, ROOT, living);
  setLedger(draft, limitAccount(draft.tree.ledger, ROOT, living.run.settings.limits));
  moveDeadlines(draft, root.run, living.run);
  // so Resumed, which follows, starts it again
  if (root.name === 'DONE') changeTree(draft, { name: 'ShutDown' });
};

const withSettings = (run: Run, limits: ChangedLimits): Run => {
  const { iterations, ...others } = limits;
  const changed = readRunLimits({ ...run.settings.limits, ...others });
  return {
    ...run,
    settings: { ...run.settings, limits: changed },
    iterationsMax: iterations ?? run.iterationsMax,
  };
};

/**
 * The time limit, counted from now, if it is changed, or the run had ended with an answer and so
 * without its old one.
 */
const withDeadline = (run: Run, { limits, at }: LimitsChanged): Run => {
  if (limits.timeMs === undefined && run.deadline !== null) return run;
  const limit = run.settings.limits.timeMs;
  if (limit === 'unlimited') return { ...run, deadline: null };
  const [timerId, counted] = nextId(run, 'timer');
  return { ...counted, deadline: { dueAt: at + limit, timerId } };
};

/**
 * The state without open work. A program then runs again and repeats the calls that were not
 * answered.
 */
const withoutOpenWork = (state: Living): Living => {
  const { work } = state;
  switch (work.kind) {
    case 'running':
      // Only EXECUTING has a running cell. The spread keeps all other fields.
      return { ...state, work: { ...work, open: [] } } as Living;
    case 'calling':
    case 'retrying':
    case 'asking':
      // In every state that waits for a model call, `work` may be a decision.
      return { ...state, work: firstDecision } as Living;
    case 'new':
    case 'next':
    case 'reading':
    case 'deciding':
      return state;
    default:
      return work satisfies never;
  }
};

/** Reopens a run that has answered, and tells the model that it may continue. */
const reopen = (run: Run, refused: number): Living => ({
  name: 'EXECUTING',
  run: addUserText(
    { ...run, environment: 'ready', closing: null },
    'note',
    raisedWords(run, refused),
  ),
  reply: NO_REPLY,
  started: 0,
  cells: [],
  answer: null,
  work: firstDecision,
});

/** The root with a changed run. A root that ended is alive again. */
const livingWith = (root: CodeState, tree: Tree, changeRun: (run: Run) => Run): Living => {
  if (root.name !== 'DONE') return withRun(root, changeRun(root.run));
  const { stoppedIn } = root;
  if (stoppedIn === null) return reopen(changeRun(root.run), refusedIn(tree));
  return withoutOpenWork(withRun(stoppedIn, changeRun(stoppedIn.run)));
};

/** Moves the deadlines that children have from the root: those without a timer of their own. */
const moveDeadlines = (draft: TreeDraft, before: Run, after: Run): void => {
  const [old, now] = [before.deadline?.dueAt, after.deadline?.dueAt];
  if (old === now) return;
  for (const [node, state] of Object.entries(draft.tree.nodes)) {
    const { deadline } = state.run;
    if (node === ROOT || deadline === null || deadline.timerId !== null || deadline.dueAt !== old)
      continue;
    const moved = now === undefined ? null : { ...deadline, dueAt: now };
    setNode(draft, node, withRun(state, { ...state.run, deadline: moved }));
  }
};
