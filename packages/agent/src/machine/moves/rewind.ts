/** Going back to an earlier entry of the session, and forward again: conversation and files. */

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
  type SessionData,
  type State,
  type Stay,
} from '../state.js';
import { noStreaks } from './tool-batch.js';

type Waiting = In<'WaitingForUserInput'>;
type Rewinding = In<'Rewinding'>;

const callIds = (message: Message | undefined): readonly string[] =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'call' ? [part.callId] : []));

const resultIds = (message: Message): readonly string[] =>
  message.parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));

/** Whether the roles alternate from the user on, and each call has its result in the next message. */
const isWhole = (messages: readonly Message[]): boolean =>
  messages.every((message, index) => {
    const isUsers = message.role === 'user';
    const calls = callIds(messages[index - 1]).join();
    return isUsers === (index % 2 === 0) && calls === resultIds(message).join();
  }) && callIds(messages.at(-1)).length === 0;

const toConversation = (messages: readonly Message[]): Conversation => {
  const last = messages.at(-1);
  if (last?.role !== 'user') return { closed: AppendList.from(messages), open: null };
  return { closed: AppendList.from(messages.slice(0, -1)), open: last };
};

const joined = (present: Conversation, { kept, messages }: RewoundConversation) => [
  ...messagesOf(present).slice(0, kept),
  ...messages,
];

/** Whether the request names a conversation that is none. */
export const isImpossible = ({ session }: Waiting, event: On<'RewindRequested'>): boolean => {
  const { conversation } = event;
  if (conversation === undefined) return event.plan === undefined;
  const { kept } = conversation;
  if (kept > conversationLength(session.conversation)) return true;
  return !isWhole(joined(session.conversation, conversation));
};

export const refuseRewind = (state: Waiting): MoveTo<'WaitingForUserInput'> =>
  ignore(state, 'there is no such conversation to go to');

export const changesFiles = (_state: Waiting, { plan }: On<'RewindRequested'>): boolean =>
  plan !== undefined;

/** The plan is in the journal before the first file changes (docs/rules.md#rewind). */
export const beginRewind = (
  { session }: Waiting,
  { rewindId, to, plan = '', conversation }: On<'RewindRequested'>,
): MoveTo<'Rewinding'> =>
  go({
    name: 'Rewinding',
    session,
    rewindId,
    to,
    plan,
    ...(conversation === undefined ? {} : { conversation }),
  });

/** Rest of Rewinding; a resumed session goes on with the same plan. */
export const restoreFiles = (state: Rewinding): MoveTo<'Rewinding'> =>
  go(state, { type: 'RestoreFiles', rewindId: state.rewindId, plan: state.plan });

/** Notes about what came later are dropped with it. What was spent stays spent. */
const withConversation = (session: SessionData, rewound: RewoundConversation): SessionData =>
  changeSession(changeTurn(session, { streaks: noStreaks }), {
    conversation: toConversation(joined(session.conversation, rewound)),
    contextTokens: rewound.contextTokens,
    mayCompact: 'yes',
    notes: [],
  });

const waiting = (session: SessionData): Waiting => ({
  name: 'WaitingForUserInput',
  session,
  reason: { kind: 'rewound' },
  next: 'rest',
});

const notice = (text: string): Action => ({ type: 'DisplayNotice', kind: 'rewound', text });

export const rewindConversation = (
  { session }: Waiting,
  { to, conversation }: On<'RewindRequested'>,
): MoveTo<'WaitingForUserInput'> => {
  if (conversation === undefined) return go(waiting(session));
  const text = `the conversation is as it was at ${to}; files stay as they are`;
  return go(waiting(withConversation(session, conversation)), notice(text));
};

export const isOtherRewind = ({ rewindId }: Rewinding, event: On<'Rewound'>): boolean =>
  event.rewindId !== rewindId;
export const ignoreRewound = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'stale: it belongs to an old rewind');
export const ignoreRewind = <S extends State>(state: S): Stay<S> =>
  ignore(state, 'nothing can be taken back now: stop the turn first');

const LISTED_MAX = 10;

const listed = <T>(items: readonly T[], total: number, show: (item: T) => string): string => {
  const shown = items.slice(0, LISTED_MAX).map(show);
  const more = total - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
};

const count = ({ created, changed, deleted }: ChangeSummary): number => created + changed + deleted;

const filesText = (number: number): string => (number === 1 ? '1 file' : `${number} files`);

const leftText = (left: readonly FileLeft[]): string =>
  listed(left, left.length, ({ path, why }) => `${path} (${why})`);

/** What the model has to know about its files. */
const rewoundNote = ({ changes, left }: On<'Rewound'>, keepsConversation: boolean): string => {
  const total = count(changes);
  const back =
    total === 0 || !keepsConversation
      ? ''
      : `The user took back changes of ${filesText(total)}, which are now as they were before: ` +
        `${listed(changes.files, total, ({ path }) => path)}. Read them again before you edit.`;
  const stay =
    left.length === 0
      ? ''
      : `The user took back earlier work, but these files stay as they are: ${leftText(left)}.`;
  return [back, stay].filter((text) => text !== '').join(' ');
};

const rewoundText = ({ to, conversation }: Rewinding, { changes, left }: On<'Rewound'>): string => {
  const what = conversation === undefined ? '' : `the conversation is as it was at ${to}; `;
  const files = `${filesText(count(changes))} changed back`;
  return left.length === 0
    ? `${what}${files}`
    : `${what}${files}; left as they are: ${leftText(left)}`;
};

export const finishRewind = (
  state: Rewinding,
  event: On<'Rewound'>,
): MoveTo<'WaitingForUserInput'> => {
  const { session, conversation } = state;
  const rewound = conversation === undefined ? session : withConversation(session, conversation);
  const note = rewoundNote(event, conversation === undefined);
  const noted = note === '' ? rewound : changeSession(rewound, { notes: [...rewound.notes, note] });
  return go(waiting(noted), notice(rewoundText(state, event)));
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

/** A checkpoint changes nothing in the session; the user hears of files that are not kept. */
export const noteCheckpoint = <S extends State>(state: S, event: On<'CheckpointTaken'>): Stay<S> =>
  go(
    state,
    ...event.leftOut.map((text): Action => ({ type: 'DisplayNotice', kind: 'checkpoint', text })),
  );

// ---- For the runtime, which finds the conversation to go to ----

/** What stays of the present conversation, and what follows it in the one to go to. */
export const rewoundConversation = (
  present: Conversation,
  target: Conversation,
  contextTokens: number,
): RewoundConversation => {
  const [before, after] = [messagesOf(present), messagesOf(target)];
  let kept = 0;
  while (kept < before.length && kept < after.length && isSame(before[kept], after[kept])) kept++;
  return { kept, messages: after.slice(kept), contextTokens };
};

/** Messages of two folds of one journal are other objects. */
const isSame = (one: Message | undefined, other: Message | undefined): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
