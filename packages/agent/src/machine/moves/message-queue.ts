import { changeCounter, changeSession } from '../change-state.js';
import type { On, QueuedInput } from '../event.js';
import type { Stay } from '../move-result.js';
import { go, ignore, withSession } from '../move-result.js';
import type { SessionData, State } from '../state.js';

/** The queue of inputs that the user typed while the machine was busy. */

export const isBlank = (_state: State, event: On<'UserInput'>): boolean => event.text.trim() === '';

/** Appends an input to the queue under a new id. */
export const enqueue = (session: SessionData, event: On<'UserInput'>): SessionData => {
  const input = session.counters.input + 1;
  const { text, mode, images } = event;
  const shown = images === undefined ? {} : { images };
  const item = { inputId: `input-${input}`, text, mode, ...shown };
  return changeCounter(changeSession(session, { queue: [...session.queue, item] }), 'input', input);
};

/** UserInput in a busy state is queued, never dropped (docs/rules.md#queue-input). */
export const queueInput = <S extends State>(state: S, event: On<'UserInput'>): Stay<S> => {
  if (isBlank(state, event)) return ignore(state, 'the input was blank');
  const session = enqueue(state.session, event);
  const text = `queued (${session.queue.length})`;
  return go(withSession(state, session), { type: 'DisplayNotice', kind: 'queued', text });
};

/** An edited input keeps its images. */
const withImagesOf = (known: QueuedInput | undefined, item: QueuedInput): QueuedInput =>
  known?.images === undefined ? item : { ...item, images: known.images };

/** EditQueue: items keep their ids; unknown and repeated ids are ignored (docs/rules.md#edit-queue). */
export const editQueue = <S extends State>(state: S, event: On<'EditQueue'>): Stay<S> => {
  const known = new Map(state.session.queue.map((item) => [item.inputId, item]));
  const isFirst = ({ inputId }: QueuedInput, index: number): boolean =>
    event.items.findIndex((other) => other.inputId === inputId) === index;
  const queue = event.items
    .filter((item, index) => known.has(item.inputId) && isFirst(item, index) && item.text.trim() !== '')
    .map(({ inputId, text, mode }) => withImagesOf(known.get(inputId), { inputId, text, mode }));
  const same =
    queue.length === state.session.queue.length &&
    queue.every((item, index) => {
      const old = state.session.queue[index];
      return old?.inputId === item.inputId && old.text === item.text && old.mode === item.mode;
    });
  return same
    ? ignore(state, 'the queue is as it was')
    : go(withSession(state, changeSession(state.session, { queue })));
};
