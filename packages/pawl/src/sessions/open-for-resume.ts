import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { Settings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JournalStore, OpenJournal } from '@pawl/agent/ports/journal';
import type { SessionOrigin } from '@pawl/agent/session/in-process-runtime';
import { storedJournals } from './stored-sessions.js';

/**
 * A session that is resumed. Its journal is opened before the flags are applied, since they depend on its settings: so
 * its entries are read and folded once, for the settings, the session and the turns that are printed again.
 */

/** `left`: whether earlier turns are left out. */
export type RecentTurns = {
  readonly before: State;
  readonly steps: readonly JournalStep[];
  readonly left: 'some' | 'none';
};

/** Limits on what is kept. While reading, up to twice as many steps are kept. */
const TURNS_MAX = 4;
const STEPS_MAX = 1_000;
/** Steps that are folded at least where a snapshot saves folding more. */
const STEPS_MIN = 500;

type RecentTurnsCollector = { see(stepped: JournalStep): void; past(): RecentTurns | null };

type Turn = { readonly before: State; readonly steps: JournalStep[] };

/** Collects the last turns while a session's steps are folded. */
export const collectRecentTurns = (): RecentTurnsCollector => {
  let turns: Turn[] = [];
  let left: RecentTurns['left'] = 'none';
  let turn = 0;
  let seq = 0;
  const stepsIn = (): number => turns.reduce((sum, one) => sum + one.steps.length, 0);
  /** Drops the first turn if there are too many, and the first steps of a turn that is too long. */
  const shorten = (): void => {
    const [first, ...later] = turns;
    if (first === undefined || (turns.length <= TURNS_MAX && stepsIn() <= 2 * STEPS_MAX)) return;
    left = 'some';
    if (later.length > 0) turns = later;
    else
      turns = [
        { before: first.steps[STEPS_MAX - 1]?.state ?? first.before, steps: first.steps.slice(STEPS_MAX) },
      ];
  };
  return {
    see(stepped: JournalStep): void {
      const { before, state } = stepped;
      if (stepped.seq <= seq) turns = []; // the fold has begun again
      if (seq === 0 || stepped.seq <= seq) left = stepped.seq > 1 ? 'some' : 'none';
      ({ seq } = stepped);
      const isNewTurn = turns.length === 0 || state.session.counters.turn !== turn;
      turn = state.session.counters.turn;
      if (seq === 1) return; // the session is new
      if (isNewTurn) turns.push({ before, steps: [] });
      turns.at(-1)?.steps.push(stepped);
      shorten();
    },
    /** null for a session without a turn. */
    past(): RecentTurns | null {
      const [first] = turns;
      if (first === undefined) return null;
      return { before: first.before, steps: turns.flatMap((one) => one.steps), left };
    },
  };
};

/**
 * Texts that went back to the input line, and that a crash took from there: nothing was sent since, and the session was
 * not closed.
 */
export const returnedTexts = (
  steps: readonly Pick<JournalStep, 'event' | 'actions'>[],
): readonly string[] => {
  let texts: readonly string[] = [];
  for (const { event, actions } of steps) {
    if (event.type === 'UserInput' || event.type === 'ShutdownRequested') texts = [];
    for (const action of actions) if (action.type === 'RestoreQueue') texts = [...action.texts, ...texts];
  }
  return texts;
};

export type HeldSession = {
  /** The current settings. */
  readonly settings: Settings;
  readonly origin: SessionOrigin;
  readonly recent: RecentTurns | null;
  readonly tornTail: OpenJournal['tornTail'];
  /** The store whose `open` hands out the journal of this session, which is open already. */
  readonly journals: JournalStore;
  /** Closes the journal. For a failure before a session runs. */
  release(): Promise<void>;
};

export type HoldOptions = {
  readonly takeOver: boolean;
  /** Called with every step of the session, in order. Then no turns are collected. */
  readonly visit?: (step: JournalStep) => void;
};

/** Opens the journal of a session and keeps it for the session to come. Takes the session's lock. */
export const holdSession = async (
  sessionId: string,
  { takeOver, visit }: HoldOptions,
): Promise<HeldSession> => {
  const store = storedJournals();
  const { see, past } = collectRecentTurns();
  const visited = visit === undefined ? { visit: see, visitLast: STEPS_MIN } : { visit };
  const opened = await store.open(sessionId, { takeOver, ...visited });
  return {
    settings: opened.state.session.settings,
    origin: opened.isForeign === undefined ? 'own' : 'foreign',
    recent: past(),
    tornTail: opened.tornTail,
    journals: {
      ...store,
      open: async (id, options) => (id === sessionId ? opened : store.open(id, options)),
    },
    release: () => opened.journal.close(),
  };
};
