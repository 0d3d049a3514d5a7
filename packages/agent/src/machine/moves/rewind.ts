/**
 * Going back to an earlier entry of the session, and forward again: conversation and files.
 *
 * The plan of a rewind is an event before the first file changes, so a later process continues with
 * the same plan if this one is killed.
 *
 * From top to bottom: whether the conversation to go to is whole; the rewind; the texts about it;
 * checkpoints; and, for the runtime, the conversation to go to.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import { AppendList } from '@pawl/machine/kernel/append-list';
import type { Action } from '../action.js';
import { type Conversation, conversationLength, messagesOf } from '../conversation.js';
import type { ChangeSummary, FileLeft, On, RewoundConversation } from '../event.js';
import type { Message } from '../message.js';
import {
  changeSession,
  changeTurn,
  go,
  type In,
  ignore,
  type MoveTo,
  NOTHING_COUNTED,
  type SessionData,
  type State,
  type Stay,
  turnRuns,
  withSession,
} from '../state.js';
import { noStreaks } from './budget.js';

type Waiting = In<'WaitingForUserInput'>;
type Rewinding = In<'Rewinding'>;

const callIds = (message: Message | undefined): readonly string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'call' ? [part.callId] : []));

const resultIds = (message: Message): readonly string[] =>
  message.parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));

/** Whether a message says something, with results before texts. */
const isWellFormed = ({ role, parts }: Message): boolean => {
  const firstText = parts.findIndex(({ type }) => type === 'text');
  const lastResult = parts.map(({ type }) => type).lastIndexOf('result');
  const isBlank = parts.some((part) => part.type === 'text' && part.text.trim() === '');
  return (
    // Stryker disable next-line EqualityOperator: the two places are never one
    parts.length > 0 && (firstText < 0 || firstText > lastResult) && !(role === 'user' && isBlank)
  );
};

/** Whether the roles alternate from the user on, and each call has its result behind it. */
const isAnswered = (messages: readonly Message[]): boolean =>
  messages.every((message, index) => {
    const isUsers = message.role === 'user';
    const calls = callIds(messages[index - 1]).join();
    const isNext = isUsers === (index % 2 === 0) && calls === resultIds(message).join();
    return isNext && isWellFormed(message);
  }) && callIds(messages.at(-1)).length === 0;

/** The messages as a conversation; a user message at the end is open. */
const toConversation = (messages: readonly Message[]): Conversation => {
  const last = messages.at(-1);
  if (last?.role !== 'user') return { closed: AppendList.from(messages), open: null };
  return { closed: AppendList.from(messages.slice(0, -1)), open: last };
};

/** The messages after a rewind. */
const joinMessages = (present: Conversation, { kept, messages }: RewoundConversation) => [
  ...messagesOf(present).slice(0, kept),
  ...messages,
];

/** The conversation of a rewind; null if it would be none that a provider accepts. */
export const rewoundConversation = (
  present: Conversation,
  rewound: RewoundConversation,
): Conversation | null => {
  if (rewound.kept > conversationLength(present)) return null;
  const messages = joinMessages(present, rewound);
  return isAnswered(messages) ? toConversation(messages) : null;
};

/** Whether the request changes nothing, or its conversation is invalid. */
export const isImpossible = (
  { session }: Waiting,
  { conversation, files }: On<'RewindRequested'>,
): boolean =>
  conversation === undefined
    ? files === undefined
    : rewoundConversation(session.conversation, conversation) === null;

export const refuseRewind = (state: Waiting): Stay<Waiting> => ({
  ...go(state),
  fault: 'it does not lead to a whole conversation',
});

export const changesFiles = (_state: Waiting, { files }: On<'RewindRequested'>): boolean =>
  files !== undefined;

/** The plan is in the journal before the first file changes (rules.md#rewind). */
export const beginRewind = (
  { session }: Waiting,
  { rewindId, to, files, conversation }: On<'RewindRequested'>,
): MoveTo<'Rewinding'> =>
  go({
    name: 'Rewinding',
    session,
    rewindId,
    to,
    // Stryker disable next-line OptionalChaining: asked before
    plan: files?.plan ?? '',
    ...(conversation === undefined ? {} : { conversation }),
  });

/** Rest of Rewinding; a resumed session continues with the same plan. */
export const restoreFiles = (state: Rewinding): MoveTo<'Rewinding'> =>
  go(state, { type: 'RestoreFiles', rewindId: state.rewindId, plan: state.plan });

/** Notes are those of the place that the session goes to. What was spent stays spent. */
const withConversation = (session: SessionData, rewound: RewoundConversation): SessionData =>
  changeSession(changeTurn(session, { streaks: noStreaks }), {
    conversation: toConversation(joinMessages(session.conversation, rewound)),
    contextTokens: rewound.contextTokens,
    measured: NOTHING_COUNTED,
    mayCompact: 'yes',
    notes: rewound.notes ?? [],
  });

const waiting = (session: SessionData): Waiting => ({
  name: 'WaitingForUserInput',
  session,
  reason: { kind: 'rewound' },
  next: 'rest',
});

const notice = (text: string): Action => ({ type: 'DisplayNotice', kind: 'rewound', text });

/** The note is for the model, with the next request. */
const addNote = (session: SessionData, note: string): SessionData =>
  note.trim() === '' ? session : changeSession(session, { notes: [...session.notes, note] });

/** Conversation alone: nothing has to be waited for. */
export const replaceConversation = (
  { session }: Waiting,
  { to, conversation, note = '' }: On<'RewindRequested'>,
): MoveTo<'WaitingForUserInput'> => {
  if (conversation === undefined) return go(waiting(addNote(session, note)));
  const text = `the conversation is as it was at ${to}; files stay as they are`;
  return go(waiting(addNote(withConversation(session, conversation), note)), notice(text));
};

export const isOtherRewind = ({ rewindId }: Rewinding, event: On<'Rewound'>): boolean =>
  event.rewindId !== rewindId;
export const ignoreRewound = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'stale: it belongs to an old rewind');
export const ignoreRewind = <S extends State>(state: S): Stay<S> => ignore(state, whyNotNow(state));

/** Why the session can't go back now. */
export const whyNotNow = ({ name }: State): string => {
  switch (name) {
    case 'Ready':
      return 'the session has not been opened';
    case 'Rewinding':
      return 'files are being taken back; it takes a moment';
    case 'ShuttingDown':
      return 'the session is over';
    case 'Compacting':
      return 'the conversation is being summarised: wait, or stop it first';
    default:
      return 'a turn is running: stop it first';
  }
};

const LISTED_MAX = 10;

/** The first of the items, and how many more there are. */
const listFirst = <T>(items: readonly T[], total: number, show: (item: T) => string): string => {
  const shown = items.slice(0, LISTED_MAX).map(show);
  const more = total - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
};

const countFiles = ({ created, changed, deleted }: ChangeSummary): number =>
  created + changed + deleted;

const filesText = (number: number): string => (number === 1 ? '1 file' : `${number} files`);

const leftText = (left: readonly FileLeft[]): string =>
  listFirst(left, left.length, ({ path, why }) => `${path} (${why})`);

/** A rewind that changed and left nothing says why, if it knows. */
const rewoundText = (
  { to, conversation }: Rewinding,
  { changes, left, note, refs = [] }: On<'Rewound'>,
): string => {
  const what = conversation === undefined ? '' : `the conversation is as it was at ${to}; `;
  const total = countFiles(changes);
  const git = refs.length === 0 ? [] : [`in git, ${listFirst(refs, refs.length, (ref) => ref)}`];
  const stays = left.length === 0 ? [] : [`left as they are: ${leftText(left)}`];
  if (total === 0 && git.length + stays.length === 0)
    return `${what}${note ?? 'no file had to be changed'}`;
  return `${what}${[`${filesText(total)} changed back`, ...git, ...stays].join('; ')}`;
};

export const finishRewind = (
  state: Rewinding,
  event: On<'Rewound'>,
): MoveTo<'WaitingForUserInput'> => {
  const { session, conversation } = state;
  const rewound = conversation === undefined ? session : withConversation(session, conversation);
  return go(waiting(addNote(rewound, event.note ?? '')), notice(rewoundText(state, event)));
};

/** The session was closed while files were taken back: the model must not trust what it knows. */
export const noteCutRewind = (session: SessionData): SessionData =>
  changeSession(session, {
    notes: [
      ...session.notes,
      'The session was closed while the user took back changes of files. Some may be as before: ' +
        'read a file again before you edit it.',
    ],
  });

const deletedText = ({ deleted, files }: ChangeSummary): string => {
  const names = files.filter(({ change }) => change === 'deleted').map(({ path }) => path);
  const what = `${filesText(deleted)} deleted`;
  return `${what} (${listFirst(names, deleted, (name) => name)}): a rewind takes it back`;
};

/** A checkpoint changes nothing in the session; the user hears of what is deleted or not kept. */
export const noteCheckpoint = <S extends State>(
  state: S,
  { by, changes, leftOut }: On<'CheckpointTaken'>,
): Stay<S> => {
  const texts = [
    ...(by === 'agent' && changes.deleted > 0 ? [deletedText(changes)] : []),
    ...leftOut,
  ];
  return go(
    state,
    ...texts.map((text): Action => ({ type: 'DisplayNotice', kind: 'checkpoint', text })),
  );
};

// ---- For the runtime, which finds the conversation to go to ----

/**
 * Whether the session can go back to this state, or a fork begin with it: all calls are answered,
 * and the files are those after the last batch. No result is missing there, and none made up.
 */
export const isWhole = (state: State): boolean => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
    case 'CallingLlm':
    case 'Error':
    case 'Compacting':
    case 'ShuttingDown':
      return true;
    case 'ExecutingTools':
    case 'PostToolsHook':
    case 'Rewinding':
    case 'ProcessingLlmResponse':
    case 'EndOfTurn':
    case 'ToolUseRequested':
    case 'CheckingForCancellation':
    case 'CheckingBudget':
    case 'GatheringAdditionalMessages':
    case 'Cancelled':
    case 'BudgetExceeded':
    case 'Failed':
      return false;
    default:
      return state satisfies never;
  }
};

/** Whether a turn began in the step that ended another one: with texts that were queued. */
export const beganFromQueue = (before: State, { session: { turn } }: State): boolean =>
  turnRuns(before) && turn.turnId !== before.session.turn.turnId;

/** The state before a step, without queued texts: so no turn begins with them. */
export const withoutQueue = (state: State): State =>
  withSession(state, changeSession(state.session, { queue: [] }));

/** What stays of the present conversation, and what follows it in the one to go to. */
export const rewindConversation = (
  present: Conversation,
  target: Conversation,
): Pick<RewoundConversation, 'kept' | 'messages'> => {
  const before = messagesOf(present);
  const after = messagesOf(target);
  let kept = 0;
  // Stryker disable next-line all: past the end all differs
  while (kept < before.length && kept < after.length && isSame(before[kept], after[kept])) kept++;
  return { kept, messages: after.slice(kept) };
};

/** Two replays of one journal make different objects of the same message. */
const isSame = (one: Message | undefined, other: Message | undefined): boolean =>
  // Stryker disable next-line ConditionalExpression: a shortcut
  one === other || JSON.stringify(one) === JSON.stringify(other);
