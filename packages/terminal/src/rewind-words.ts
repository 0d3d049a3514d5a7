/**
 * Rewinds in words, for the terminal and the editors that Pawl runs in. A rewind takes back a part
 * of the conversation, of the files, or of both.
 */

import { conversationLength } from '@pawl/agent/machine/conversation';
import type { ChangedPath, ChangeSummary, FileLeft } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import { cut, plural } from '@pawl/agent/platform/text';
import type { Stepped } from '@pawl/agent/ports/session';

/** Files that are named; more are counted. */
const NAMED_MAX = 2;
const LEFT_NAMED_MAX = 3;

type Change = ChangedPath['change'];

const lineCounts = ({ added = 0, removed = 0 }: ChangedPath): string =>
  [added === 0 ? '' : `+${added}`, removed === 0 ? '' : `−${removed}`].filter(Boolean).join(' ');

/** A path on one line, so that a name with a line feed can't look like another line. */
const shownPath = (path: string): string => path.replace(/\s+/g, ' ');

/** Added and removed lines of all files; empty if some are not listed or are no texts. */
const totalLines = (files: readonly ChangedPath[], count: number): string => {
  if (files.length < count) return '';
  if (files.some(({ added, removed }) => added === undefined && removed === undefined)) return '';
  const sum = (counted: 'added' | 'removed'): number =>
    files.reduce((total, file) => total + (file[counted] ?? 0), 0);
  return lineCounts({ path: '', change: 'changed', added: sum('added'), removed: sum('removed') });
};

const listFiles = ({ files }: ChangeSummary, change: Change): readonly ChangedPath[] =>
  files.filter((file) => file.change === change);

export const countFiles = ({ created, changed, deleted }: ChangeSummary): number =>
  created + changed + deleted;

const changedText = (changes: ChangeSummary): string => {
  const files = listFiles(changes, 'changed');
  const count = changes.changed;
  if (count === 0) return '';
  if (count <= NAMED_MAX && files.length === count)
    return files
      .map((file) => `${lineCounts(file) || 'changed'} ${shownPath(file.path)}`)
      .join(', ');
  const lines = totalLines(files, count);
  return `${lines === '' ? '' : `${lines} in `}${plural(count, 'file')}${lines === '' ? ' changed' : ''}`;
};

/** `src/a.ts created` or `4 files created`. */
const countedText = (changes: ChangeSummary, change: Change, words: string): string => {
  const count = changes[change];
  if (count === 0) return '';
  const [first] = listFiles(changes, change);
  return `${count === 1 && first !== undefined ? shownPath(first.path) : plural(count, 'file')} ${words}`;
};

/**
 * Changes of files: `+12 −3 src/a.ts, 2 files deleted while npm run clean ran`. `during`: the call
 * in which all of them changed, if it is known. Empty without changes.
 */
export const changesText = (changes: ChangeSummary, during = 'commands'): string => {
  const text = [
    changedText(changes),
    countedText(changes, 'created', 'created'),
    countedText(changes, 'deleted', 'deleted'),
  ]
    .filter(Boolean)
    .join(', ');
  const { duringCommands = 0 } = changes;
  if (duringCommands === 0) return text;
  if (duringCommands < countFiles(changes))
    return `${text}; ${duringCommands} of them while commands ran`;
  return `${text} while ${during} ran`;
};

// ---- What a point of the session has changed ----

/**
 * A point that a rewind can go back to: a turn, or the calls of one reply in it. `seq`: its place
 * in the session. `changes`: null if no file was changed.
 */
type ChangePoint = {
  readonly seq: number;
  readonly kind: 'turn' | 'calls';
  readonly title: string;
  readonly changes: ChangeSummary | null;
  /** Of a point from elsewhere: files that stay as they are. Then `changes` names all. */
  readonly untouched?: readonly FileLeft[];
};

/** The calls of a turn: those before the next turn. The points may be in any order. */
const findCalls = <P extends ChangePoint>(turn: P, points: readonly P[]): readonly P[] => {
  const nextTurn = Math.min(
    ...points.filter(({ kind, seq }) => kind === 'turn' && seq > turn.seq).map(({ seq }) => seq),
  );
  return points.filter(({ kind, seq }) => kind === 'calls' && seq > turn.seq && seq < nextTurn);
};

const TITLE_MAX = 40;

/** A command without the name of its tool, which everybody guesses. */
const shortTitle = (title: string): string => {
  const line = title
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^bash /, '');
  return cut(line, TITLE_MAX);
};

/** The title of the only calls of a turn that changed files; undefined if several did. */
const changingCalls = (turn: ChangePoint, points: readonly ChangePoint[]): string | undefined => {
  const changing = findCalls(turn, points).filter(({ changes }) => changes !== null);
  const [first, ...more] = changing;
  return first === undefined || more.length > 0 ? undefined : shortTitle(first.title);
};

/** Each file by its name; of those that stay also why. Those that only stay come last. */
export const namedFiles = (
  { files }: ChangeSummary,
  untouched: readonly FileLeft[],
): readonly string[] => {
  const whys = new Map(untouched.map(({ path, why }) => [path, why]));
  const texts = files.map(({ path, change, duringCommands }) => {
    const why = whys.get(path);
    whys.delete(path);
    const during = duringCommands === undefined ? '' : ' while commands ran';
    return `${shownPath(path)} ${change}${during}${why === undefined ? '' : ` (stays as it is: ${why})`}`;
  });
  const others = [...whys].map(([path, why]) => `${shownPath(path)} (stays as it is: ${why})`);
  return [...texts, ...others];
};

/** What a point has changed; empty if no file. `points`: all points of the session. */
export const pointText = (point: ChangePoint, points: readonly ChangePoint[]): string => {
  if (point.changes === null) return '';
  if (point.untouched !== undefined) return namedFiles(point.changes, point.untouched).join(', ');
  return changesText(point.changes, point.kind === 'turn' ? changingCalls(point, points) : 'it');
};

// ---- What a rewind has done ----

/** What was taken back, or brought forward again. */
export type DoneRewind = {
  readonly direction: 'back' | 'forward';
  /**
   * Messages that left the conversation (forward: that came again); negative where a summary was
   * taken back or came again; null: the conversation stayed as it was.
   */
  readonly messages: number | null;
  /** What the rewind itself did to files; null: they stayed as they were. */
  readonly changes: ChangeSummary | null;
  /** Files that were not touched, and why. */
  readonly left: readonly FileLeft[];
  /** Why no file could be taken back; null: not known. */
  readonly note: string | null;
};

/**
 * What a rewind did to files: a file that it creates was deleted before, and one that it deletes
 * was created.
 */
const restoredText = (changes: ChangeSummary, direction: DoneRewind['direction']): string =>
  [
    countedText(changes, 'changed', direction === 'back' ? 'as before' : 'changed again'),
    countedText(changes, 'created', changes.created === 1 ? 'is back' : 'are back'),
    countedText(changes, 'deleted', 'removed'),
    duringText(changes),
  ]
    .filter(Boolean)
    .join(', ');

/** `3 of them changed while commands ran (some may be yours)`; empty if none of them did. */
const duringText = (changes: ChangeSummary): string => {
  const { duringCommands = 0 } = changes;
  if (duringCommands === 0) return '';
  const which =
    duringCommands === countFiles(changes) ? 'changed' : `${duringCommands} of them changed`;
  return `${which} while commands ran (some may be yours)`;
};

/** `left as they are: src/a.ts (changed since), b.ts (…) and 3 more`; empty if none was left. */
export const leftText = (left: readonly FileLeft[]): string => {
  if (left.length === 0) return '';
  const named = left
    .slice(0, LEFT_NAMED_MAX)
    .map(({ path, why }) => `${shownPath(path)} (${why})`)
    .join(', ');
  const more = left.length - LEFT_NAMED_MAX;
  const verb = left.length === 1 ? 'left as it is' : 'left as they are';
  return `${verb}: ${named}${more > 0 ? ` and ${more} more` : ''}`;
};

const messagesText = ({ messages, direction }: DoneRewind): string => {
  if (messages === null) return 'the conversation stays';
  if (messages < 0) return direction === 'back' ? 'a summary, its messages are back' : 'a summary';
  return messages === 0 ? '' : plural(messages, 'message');
};

const restoredFilesText = ({ changes, direction, left, note }: DoneRewind): string => {
  if (changes === null) return 'files stay as they are';
  if (countFiles(changes) > 0) return restoredText(changes, direction);
  return left.length > 0 ? '' : (note ?? 'no file had to change');
};

/**
 * What was taken back, what was left and why, in one line:
 * `taken back: 4 messages; src/a.ts as before, 2 files are back · left as it is: b.ts (…)`.
 */
export const rewoundText = (done: DoneRewind): string => {
  const texts = [messagesText(done), restoredFilesText(done)].filter(Boolean);
  // What stays is said last.
  const ordered = done.messages === null ? texts.reverse() : texts;
  const what = done.direction === 'back' ? 'taken back' : 'done again';
  return [`${what}: ${ordered.join('; ') || 'nothing'}`, leftText(done.left)]
    .filter(Boolean)
    .join(' · ');
};

/** Follows a session, and says what each of its rewinds has done. */
export type RewoundNotes = {
  /** The state before the next step: of a new session, or of a resumed one. */
  startFrom(state: State): void;
  /** The words of the step that ends a rewind; empty for all others. */
  see(stepped: Stepped): string;
};

const describeStep = (
  before: State,
  { event, state, diagnostics }: Stepped,
  direction: DoneRewind['direction'],
): string => {
  if (diagnostics.length > 0) return ''; // the event was refused
  const removed =
    conversationLength(before.session.conversation) -
    conversationLength(state.session.conversation);
  const messages = direction === 'back' ? removed : -removed;
  const none = { direction, changes: null, left: [], note: null };
  // A rewind of the conversation alone is done in this step; one of files ends with `Rewound`.
  if (event.type === 'RewindRequested' && state.name === 'WaitingForUserInput')
    return rewoundText({ ...none, messages: event.conversation === undefined ? null : messages });
  if (event.type !== 'Rewound' || before.name !== 'Rewinding') return '';
  const { changes, left, note } = event;
  return rewoundText({
    direction,
    // `conversation`: the messages after the rewind; absent: they stay
    messages: before.conversation === undefined ? null : messages,
    changes,
    left,
    note,
  });
};

export const createRewoundNotes = (): RewoundNotes => {
  let before: State | null = null;
  let direction: DoneRewind['direction'] = 'back';
  return {
    startFrom(state) {
      before = state;
    },
    see(stepped) {
      const { event, state } = stepped;
      if (event.type === 'RewindRequested') ({ direction } = event);
      const text = before === null ? '' : describeStep(before, stepped, direction);
      before = state;
      if (text === '' || direction === 'forward') return text;
      const isReplaced = event.type === 'Rewound' && countFiles(event.changes) > 0;
      const later = isReplaced ? ', later: pawl checkpoints ID --restore PATH' : '';
      return `${text} · forward again: /redo${later}`;
    },
  };
};
