/**
 * Finds where a session can go back to, and what a rewind changes. Reads the journal.
 *
 * From top to bottom: the types of points, requests and reports; `readTimeline`, which collects
 * turns, checkpoints (what calls changed in files) and earlier rewinds; `planRewind` and
 * `planRedo`; and `planUndoCompaction`, which takes a summary back. session.ts performs a plan.
 */

import { type JournalStep, steps } from '../journal/steps.js';
import { estimateTokens, messagesOf } from '../machine/conversation.js';
import type {
  ChangedPath,
  ChangeSummary,
  Event,
  FileLeft,
  On,
  RewoundConversation,
} from '../machine/event.js';
import { initialState, step } from '../machine/machine.js';
import type { Message } from '../machine/message.js';
import {
  beganFromQueue,
  isWhole,
  rewindConversation,
  withoutQueue,
} from '../machine/moves/rewind.js';
import type { State } from '../machine/state.js';
import { plural } from '../platform/text.js';
import { callTitle } from '../policy/judged-call.js';
import type {
  Checkpoints,
  FileVersion,
  MovedRef,
  NamedCheckpoint,
  RestorePlan,
} from '../ports/checkpoints.js';
import type { Entry, Header } from '../ports/journal.js';

/** A place to which the session can go back. */
export type RewindPoint = {
  /** The entry before the turn or the calls: going there takes them back. */
  readonly seq: number;
  readonly kind: 'turn' | 'calls';
  /** In ms since 1970. */
  readonly at: number;
  /** The user's words, or the titles of the calls. */
  readonly title: string;
  /** The user's words, to be edited and sent again; absent: the turn had none. */
  readonly text?: string;
  /** Files that the turn or the calls changed; null: none. */
  readonly changes: ChangeSummary | null;
  /**
   * Files among them that no rewind touches, in a session from elsewhere. Then `changes`
   * names all files, as the checkpoints do, whatever the journal says. Absent: it is from here.
   */
  readonly untouched?: readonly FileLeft[];
};

export type RewindRequest = {
  /** The entry to go back to. */
  readonly at: number;
  /** Default: true. */
  readonly files?: boolean;
  /** Default: true. */
  readonly conversation?: boolean;
  /** Also take back files with later changes of others; they are saved first. */
  readonly force?: boolean;
  /** Only what tools for files wrote, not what changed while commands ran. Default: false. */
  readonly editsOnly?: boolean;
  /** Also take back where HEAD and branches are, and what is staged. Default: false. */
  readonly refs?: boolean;
};

/** What a rewind changes, or has changed. */
export type RewindReport = {
  /** The entry to which the session goes, or went. */
  readonly to: number;
  /** Messages that leave the conversation. */
  readonly messages: number;
  readonly changes: ChangeSummary;
  /** Files, branches, HEAD and index that stay as they are. */
  readonly left: readonly FileLeft[];
  /** HEAD, branches and index that go back. */
  readonly refs: readonly MovedRef[];
  /** In words. */
  readonly text: string;
};

/** A rewind can't be made; the message says why, and what can. */
export class CannotRewind extends Error {
  override readonly name = 'CannotRewind';
}

type Checkpoint = NamedCheckpoint & { readonly seq: number };

/** A rewind from which the session can go forward again. */
type Undone = {
  readonly seq: number;
  /** Points that it has taken out of the timeline. */
  readonly points: readonly RewindPoint[];
};

/** What the journal tells of turns, checkpoints and rewinds. */
export type Timeline = {
  readonly points: readonly RewindPoint[];
  /** By the end of what they keep, the oldest first. */
  readonly checkpoints: readonly Checkpoint[];
  readonly undone: readonly Undone[];
  readonly seq: number;
};

export type ReadJournal = {
  readonly header: Pick<Header, 'settings'>;
  entries(): AsyncIterable<Entry>;
  /** The last entry to read. */
  readonly seq: number;
  /** The last entry that came from elsewhere; 0: none did. */
  readonly foreignUntil: number;
};

type Describe = Pick<Checkpoints, 'describe'>;

/** A place where the conversation is whole: the state after an entry. */
type Whole = { readonly seq: number; readonly state: State };

/**
 * The state after a step, if the conversation is whole there. Where queued texts began a turn in
 * the step that ended another, it is the state between them.
 */
const wholeState = ({ event, before, state }: JournalStep): State | null => {
  if (!isWhole(state)) return null;
  return beganFromQueue(before, state) ? step(withoutQueue(before), event).state : state;
};

/**
 * The last entry up to `at` after which the conversation is whole. An entry within a batch of calls
 * leads to the beginning of the batch: its calls are not answered yet, or their files still change.
 * Null: the journal has no such entry.
 */
export const findWhole = async (
  { header, entries }: Pick<ReadJournal, 'header' | 'entries'>,
  at: number,
): Promise<Whole | null> => {
  let whole: Whole = { seq: 0, state: initialState(header.settings) };
  if (at === 0) return whole;
  for await (const passed of steps(header, entries())) {
    const state = wholeState(passed);
    if (state !== null) whole = { seq: passed.seq, state };
    if (passed.seq === at) return whole;
  }
  return null;
};

export const readTimeline = async (
  { header, entries, seq: last, foreignUntil }: ReadJournal,
  checkpoints: Describe | null,
): Promise<Timeline> => {
  const reader = new TimelineReader(foreignUntil);
  // `steps` runs the machine over the entries again: each comes with the states before and after
  // it.
  for await (const { seq, event, before, state } of steps(header, entries())) {
    const isForeign = seq <= foreignUntil;
    reader.see(seq, isForeign ? await asStored(event, checkpoints) : event, before, state);
    if (seq >= last) break;
  }
  const timeline = reader.read();
  return { ...timeline, points: await addDescription(timeline, checkpoints) };
};

/** The entry of a foreign checkpoint, with what its manifest says of changes, if it is here. */
const asStored = async (event: Event, checkpoints: Describe | null): Promise<Event> => {
  if (event.type !== 'CheckpointTaken' || event.checkpoint === '') return event;
  const described = await checkpoints?.describe([{ id: event.checkpoint, isForeign: true }]);
  return described ? { ...event, changes: described.changes } : event;
};

const ALL_FROM_ELSEWHERE = 'all changes that came from elsewhere';

/**
 * Adds what a journal from elsewhere can't hide: a point at the beginning with all that its
 * checkpoints name. The points of its calls say it as far as it is theirs.
 */
const addDescription = async (
  { points, checkpoints: all }: Timeline,
  checkpoints: Describe | null,
): Promise<readonly RewindPoint[]> => {
  const foreign = all.filter(({ isForeign }) => isForeign);
  const described = foreign.length === 0 ? null : ((await checkpoints?.describe(foreign)) ?? null);
  if (described === null) return points;
  const { changes, untouched } = described;
  const at = points.at(-1)?.at ?? 0;
  return [...points, { seq: 0, kind: 'calls', at, title: ALL_FROM_ELSEWHERE, changes, untouched }];
};

const NO_CHANGES: ChangeSummary = { created: 0, changed: 0, deleted: 0, files: [] };

const isNothing = ({ created, changed, deleted }: ChangeSummary): boolean =>
  created + changed + deleted === 0;

const LISTED_MAX = 20;

/** How many files changed during commands; `both`: those that both summaries count. */
const addDuring = (
  one: ChangeSummary,
  other: ChangeSummary,
  both: number,
): Pick<ChangeSummary, 'duringCommands'> => {
  const count = (one.duringCommands ?? 0) + (other.duringCommands ?? 0) - both;
  return count === 0 ? {} : { duringCommands: count };
};

/** A file that was changed several times is listed once, with all its lines. */
const addChanges = (one: ChangeSummary | null, other: ChangeSummary): ChangeSummary => {
  if (one === null) return other;
  const files = new Map<string, ChangedPath>(one.files.map((file) => [file.path, file]));
  let repeated = 0;
  let during = 0;
  for (const file of other.files) {
    const before = files.get(file.path);
    if (before === undefined) {
      files.set(file.path, file);
      continue;
    }
    repeated += 1;
    const isDuring = file.duringCommands === 'yes' || before.duringCommands === 'yes';
    if (file.duringCommands === 'yes' && before.duringCommands === 'yes') during += 1;
    files.set(file.path, {
      path: file.path,
      ...(isDuring ? { duringCommands: 'yes' as const } : {}),
      change: before.change === 'created' ? 'created' : file.change,
      ...(before.added === undefined || file.added === undefined
        ? {}
        : {
            added: before.added + file.added,
            removed: (before.removed ?? 0) + (file.removed ?? 0),
          }),
    });
  }
  return {
    created: one.created + other.created,
    changed: Math.max(0, one.changed + other.changed - repeated),
    deleted: one.deleted + other.deleted,
    ...addDuring(one, other, during),
    files: [...files.values()].slice(0, LISTED_MAX),
  };
};

type Draft = { -readonly [K in keyof RewindPoint]: RewindPoint[K] } & {
  /** The batch of the calls; null for a turn. */
  readonly batchId: string | null;
};

/** The user's words with which a step began a turn: its own, and those that left the queue. */
const sentTexts = (event: Event, { session }: State, after: State): string => {
  const waiting = new Set(after.session.queue.map(({ inputId }) => inputId));
  const queued = session.queue.filter(({ inputId }) => !waiting.has(inputId));
  const own = event.type === 'UserInput' ? [event] : [];
  return [...queued, ...own].map(({ text }) => text).join('\n');
};

/** Collects a timeline from the steps of a session, in order. */
class TimelineReader {
  #points: Draft[] = [];
  readonly #checkpoints: Checkpoint[] = [];
  /** The entry with which a batch ended, by its id. */
  readonly #ends = new Map<string, number>();
  #undone: { seq: number; points: Draft[] }[] = [];
  #seq = 0;
  readonly #foreignUntil: number;

  constructor(foreignUntil: number) {
    this.#foreignUntil = foreignUntil;
  }

  /** Takes the next entry, with the states before and after it. */
  see(seq: number, event: Event, before: State, state: State): void {
    const turn = state.session.turn.turnId;
    // A turn of queued texts begins where the turn before it ends.
    if (turn !== before.session.turn.turnId)
      this.#beginTurn(
        beganFromQueue(before, state) ? seq : seq - 1,
        event.at,
        sentTexts(event, before, state),
      );
    if (
      state.name === 'ExecutingTools' &&
      before.session.counters.batch < state.session.counters.batch
    )
      this.#beginBatch(seq, event.at, state);
    if (before.name === 'ExecutingTools' && state.name !== 'ExecutingTools')
      this.#ends.set(before.batchId, seq);
    this.#seeRewind(seq, event, before, state);
    this.#seq = seq;
  }

  #beginTurn(seq: number, at: number, texts: string): void {
    this.#undone = []; // after new work there is no way forward any more
    this.#points.push({
      seq,
      kind: 'turn',
      at,
      title: texts === '' ? '(sent again)' : texts,
      ...(texts === '' ? {} : { text: texts }),
      changes: null,
      batchId: null,
    });
  }

  #beginBatch(
    seq: number,
    at: number,
    { batchId, calls, session }: Extract<State, { readonly name: 'ExecutingTools' }>,
  ): void {
    const titles = calls.map(({ judged }) => {
      const { workspace } = session.settings;
      return `${judged.tool} ${callTitle(judged, workspace)}`;
    });
    const title = titles.join('; ');
    this.#points.push({ seq: seq - 1, kind: 'calls', at, title, changes: null, batchId });
  }

  #seeRewind(seq: number, event: Event, before: State, state: State): void {
    if (event.type === 'CheckpointTaken') {
      const { batchId, checkpoint, changes } = event;
      const end = (batchId === null ? undefined : this.#ends.get(batchId)) ?? seq;
      // A process that is killed right after this event is followed by one that posts it again.
      if (checkpoint !== '' && this.#checkpoints.at(-1)?.id === checkpoint) return;
      const isForeign = seq <= this.#foreignUntil;
      if (checkpoint !== '') this.#checkpoints.push({ id: checkpoint, seq: end, isForeign });
      if (event.by === 'agent') this.#addTo(batchId, changes);
    }
    if (event.type === 'RewindRequested' && state !== before) this.#seeDirection(seq, event);
    // What a rewind changes in files is a checkpoint, too, so it can itself be taken back.
    if (event.type === 'Rewound' && before.name === 'Rewinding' && event.checkpoint !== null)
      this.#checkpoints.push({ id: event.checkpoint, seq, isForeign: seq <= this.#foreignUntil });
  }

  #addTo(batchId: string | null, changes: ChangeSummary): void {
    if (isNothing(changes)) return;
    const calls = this.#points.findLast((point) => point.batchId === batchId && batchId !== null);
    // The next turn may have begun before the checkpoint was taken.
    const turn = this.#points.findLast(
      ({ kind, seq }) => kind === 'turn' && (calls === undefined || seq <= calls.seq),
    );
    for (const point of [calls, turn])
      if (point !== undefined) point.changes = addChanges(point.changes, changes);
  }

  #seeDirection(seq: number, { to, direction, conversation }: On<'RewindRequested'>): void {
    if (direction === 'forward') {
      const undone = this.#undone.pop();
      if (undone !== undefined) this.#points.push(...undone.points);
      return;
    }
    const points = conversation === undefined ? [] : this.#points.filter((one) => one.seq >= to);
    this.#points = this.#points.filter((point) => !points.includes(point));
    this.#undone.push({ seq, points });
  }

  read(): Timeline {
    return {
      points: this.#points.filter(({ kind, changes }) => kind === 'turn' || changes !== null),
      checkpoints: this.#checkpoints,
      undone: this.#undone,
      seq: this.#seq,
    };
  }
}

export type PlannedRewind = {
  readonly to: number;
  /** The entry that was asked for, if another one is the place where the conversation is whole. */
  readonly asked?: number;
  readonly direction: 'back' | 'forward';
  /** How the conversation changes; null: not at all. */
  readonly conversation: RewoundConversation | null;
  /** Key of the stored plan by which files are restored; null: none changes. */
  readonly plan: string | null;
  /** Why nothing may be taken back here, and what to do instead; null: it may. */
  readonly refusal: string | null;
  /** For the model, where its files are not what the conversation says. */
  readonly note?: string | null;
  readonly report: RewindReport;
};

const countMessages = ({ session }: State): number => messagesOf(session.conversation).length;

const isUnchanged = (present: State, rewound: RewoundConversation | null): boolean =>
  rewound?.kept === countMessages(present) && rewound.messages.length === 0;

/** Up to so many files are named. */
const NAMED_FILES = 3;

/** In words for the user. */
const reportRewind = (
  { to, asked = to }: Pick<PlannedRewind, 'to' | 'asked'>,
  messages: number,
  files: Pick<RewindReport, 'changes' | 'left' | 'refs'>,
): RewindReport => {
  const { created, changed, deleted, duringCommands = 0 } = files.changes;
  const total = created + changed + deleted;
  const names =
    total > NAMED_FILES ? '' : `: ${files.changes.files.map(({ path }) => path).join(', ')}`;
  const group =
    duringCommands === 0
      ? ''
      : ` (${duringCommands === total ? '' : `${duringCommands} of them `}changed while commands ` +
        'ran, so some may be yours)';
  const words = [
    ...(asked === to ? [] : [movedText(asked, to)]),
    ...(messages > 0 ? [`${plural(messages, 'message')} taken back`] : []),
    ...(messages < 0 ? [`${plural(-messages, 'message')} back again`] : []),
    ...(total > 0 ? [`${plural(total, 'file')} changed back${names}${group}`] : []),
    ...files.refs.map((moved) => moved.text),
    ...files.left.map(({ path, why }) => `${path} is left as it is: ${why}`),
  ];
  const changesNothing =
    messages === 0 && total === 0 && files.refs.length + files.left.length === 0;
  const text = [...words, ...(changesNothing ? ['nothing changed since'] : [])].join('; ');
  return { to, messages, ...files, text };
};

/**
 * What a rewind did, by its event. `left` names files, and refs as in the plan; '.' means that all
 * of it failed.
 */
export const reportRewound = (
  planned: PlannedRewind,
  { changes, left }: On<'Rewound'>,
): RewindReport => {
  const { messages, refs } = planned.report;
  const failed = new Set(left.map(({ path }) => path));
  const moved = failed.has('.') ? [] : refs.filter(({ name }) => !failed.has(name));
  return reportRewind(planned, messages, { changes, left, refs: moved });
};

const NO_RESTORE: RestorePlan = {
  plan: null,
  refusal: null,
  changes: NO_CHANGES,
  left: [],
  refs: [],
};

/**
 * A note for the model: the conversation goes back, and files stay as they are. Null: they are as
 * the conversation says.
 */
const noteForKeptFiles = ({ changes, left }: RestorePlan): string | null => {
  const paths = new Set([...changes.files, ...left].map(({ path }) => path));
  if (paths.size === 0) return null;
  const shown = [...paths].slice(0, 10).join(', ');
  return (
    'The user took earlier work back from the conversation, not from the files. They are as ' +
    `that work, or somebody else, left them: ${shown}${paths.size > 10 ? ' and more' : ''}. ` +
    'Read them again before you edit.'
  );
};

/** What a rewind would do. Changes nothing. */
export const planRewind = async (
  journal: ReadJournal,
  present: State,
  checkpoints: Checkpoints | null,
  request: RewindRequest,
  direction: 'back' | 'forward' = 'back',
): Promise<PlannedRewind> => {
  const { at, files = true, conversation = true, force = false, refs = false } = request;
  if (!files && !conversation)
    throw new CannotRewind('Nothing is to be taken back: name files, conversation, or both.');
  if (!Number.isInteger(at) || at < 0 || at > journal.seq)
    throw new CannotRewind(
      `There is no entry ${at}: the journal has the entries 0 to ${journal.seq}.`,
    );
  const whole = await findWhole(journal, at);
  if (whole === null) throw new CannotRewind(`The entry ${at} can’t be read.`);
  const { seq: to, state } = whole;
  const timeline = await readTimeline(journal, null);
  const takeBack = timeline.checkpoints.filter(({ seq }) => seq > to);
  // Also planned if the files are to stay: the note then tells the model which ones differ.
  const planned =
    checkpoints !== null && takeBack.length > 0
      ? await checkpoints.plan({
          takeBack,
          force,
          editsOnly: request.editsOnly === true,
          refs: refs && files,
        })
      : NO_RESTORE;
  const restore = files ? planned : NO_RESTORE;
  const target = state.session;
  const rewound = conversation
    ? {
        ...rewindConversation(present.session.conversation, target.conversation),
        contextTokens: target.contextTokens,
        ...(target.notes.length === 0 ? {} : { notes: target.notes }),
      }
    : null;
  const messages = rewound === null ? 0 : countMessages(present) - countMessages(state);
  // a way back that changes nothing would be one more step for redo
  const isNeeded =
    restore.plan !== null || direction === 'forward' || !isUnchanged(present, rewound);
  return {
    to,
    asked: at,
    direction,
    conversation: isNeeded ? rewound : null,
    plan: restore.plan,
    refusal: restore.refusal,
    note: restore.plan === null && conversation ? noteForKeptFiles(planned) : null,
    report: reportRewind({ to, asked: at }, messages, restore),
  };
};

/** Why it is another entry than the one that was asked for. */
export const movedText = (asked: number, to: number): string =>
  `${asked} lies within a batch of calls, so it is ${to}, before them`;

/** The way forward from the last rewind. */
export const planRedo = async (
  journal: ReadJournal,
  present: State,
  checkpoints: Checkpoints | null,
): Promise<PlannedRewind> => {
  const timeline = await readTimeline(journal, null);
  const undone = timeline.undone.at(-1);
  if (undone === undefined)
    throw new CannotRewind(
      'There is nothing to go forward to: nothing was taken back since the last turn began. ' +
        'Every entry of the journal can still be reached with pawl rewind ID --at SEQ.',
    );
  // The rewind is taken back: the session goes to the entry before it, with branches and index,
  // which stay where the rewind has not moved them.
  const request = { at: undone.seq - 1, refs: true };
  return planRewind(journal, present, checkpoints, request, 'forward');
};

/** Brings a version of a file back. Its present content can be brought back the same way. */
export const planFile = async (
  { seq }: ReadJournal,
  checkpoints: Checkpoints | null,
  version: FileVersion,
): Promise<PlannedRewind> => {
  const planned = (await checkpoints?.planFile(version)) ?? NO_RESTORE;
  const { plan, refusal } = planned;
  const report = reportRewind({ to: seq }, 0, planned);
  return { to: seq, direction: 'back', conversation: null, plan, refusal, report };
};

const isSummary = (part: Message['parts'][number], text: string): boolean =>
  part.type === 'text' && 'origin' in part && part.origin === 'summary' && part.text === text;

/** The conversation with the messages that the summary has replaced; null if it is not in it. */
const withoutSummary = (
  present: readonly Message[],
  replaced: readonly Message[],
  summary: string,
): readonly Message[] | null => {
  const [first, ...others] = present;
  if (first?.role !== 'user' || !first.parts.some((part) => isSummary(part, summary))) return null;
  const parts = first.parts.filter((part) => !isSummary(part, summary));
  return [...replaced, ...(parts.length === 0 ? [] : [{ ...first, parts }]), ...others];
};

/**
 * Takes the last summary back: the messages that it has replaced come again, what was said since
 * stays.
 */
export const planUndoCompaction = async (
  { header, entries, seq: last }: ReadJournal,
  { session }: State,
): Promise<PlannedRewind> => {
  const present = messagesOf(session.conversation);
  let messages: readonly Message[] | null = null;
  let contextTokens = 0;
  for await (const { seq, event, before, state } of steps(header, entries())) {
    if (event.type === 'CompactionCompleted' && before.name === 'Compacting' && state !== before) {
      const replaced = messagesOf(before.session.conversation).slice(0, before.length);
      const summary = messagesOf(state.session.conversation)[0]?.parts[0];
      const text = summary?.type === 'text' ? summary.text : '';
      const found = withoutSummary(present, replaced, text);
      if (found !== null) [messages, contextTokens] = [found, before.session.contextTokens];
    }
    if (seq >= last) break;
  }
  if (messages === null)
    throw new CannotRewind('There is no summary to take back: the conversation is whole.');
  const tokens = Math.max(contextTokens, estimateTokens(messages));
  const { windowTokens } = session.settings;
  if (tokens > windowTokens)
    throw new CannotRewind(
      `The messages of before no longer fit: about ${tokens} tokens, and the window of the model ` +
        `has ${windowTokens}. The journal keeps them: pawl export writes them.`,
    );
  const files = { changes: NO_CHANGES, left: [], refs: [] };
  return {
    to: last,
    direction: 'back',
    // none of the present messages, then these
    conversation: { kept: 0, messages, contextTokens: tokens, notes: session.notes },
    plan: null,
    refusal: null,
    report: reportRewind({ to: last }, present.length - messages.length, files),
  };
};
