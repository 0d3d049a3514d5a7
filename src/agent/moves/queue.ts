import { changeCounter, changeSession } from '../change.js';
import type { On, QueuedInput } from '../event.js';
import type { Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Session, State } from '../state.js';

/** What the user typed while the machine was busy. */

export const isBlank = (_state: State, event: On<'UserInput'>): boolean => event.text.trim() === '';

/** Puts a text at the end of the queue, under an id of its own. */
export const enqueue = (session: Session, event: On<'UserInput'>): Session => {
  const input = session.counters.input + 1;
  const { text, mode, images } = event;
  const shown = images === undefined ? {} : { images };
  const item = { inputId: `input-${input}`, text, mode, ...shown };
  return changeCounter(changeSession(session, { queue: [...session.queue, item] }), 'input', input);
};

/** UserInput in a busy state: queued, never dropped (R56). */
export const queueInput = <S extends State>(state: S, event: On<'UserInput'>): Same<S> => {
  if (isBlank(state, event)) return ignore(state, 'the input was blank');
  const session = enqueue(state.session, event);
  const text = `queued (${session.queue.length})`;
  return go(withSession(state, session), { type: 'DisplayNotice', kind: 'queued', text });
};

/** What was shown with an input stays with it. */
const withImagesOf = (known: QueuedInput | undefined, item: QueuedInput): QueuedInput =>
  known?.images === undefined ? item : { ...item, images: known.images };

/** EditQueue: items keep their ids; unknown ids and repetitions are not taken (R57). */
export const editQueue = <S extends State>(state: S, event: On<'EditQueue'>): Same<S> => {
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
