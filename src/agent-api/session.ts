import type { InputMode } from '../agent/event.js';
import type { Image } from '../agent/message.js';
import type { State } from '../agent/state.js';
import type { Blobs, Entry, Input, Job, Model, OpenJournal, Watcher } from '../needs.js';
import { type Models, settingsOfModel } from '../runtime/models.js';
import type { LocalRuntime } from '../runtime/runtime.js';
import { attempt } from '../runtime/wall.js';
import { waitForRest } from './rest.js';
import { refuseUnpriced, type Unpriced } from './settings.js';
import { type Turn, turnOf } from './turn.js';

export type PromptOptions = {
  /** Cancels the turn when it is aborted; the turn's reason is then `cancelled`. */
  readonly signal?: AbortSignal;
  /** While a turn runs: with its next results (`steer`, if not given), or after it. */
  readonly mode?: InputMode;
};

export type Session = {
  readonly id: string;
  /** What was cut off the journal's end, of a session that is resumed. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Durable and applied when it resolves. */
  send(input: Input): Promise<{ readonly seq: number }>;
  state(): Promise<State>;
  /**
   * Says something and waits until the session rests again: what came of it. A model that fails is an outcome and no
   * exception. Rejects with what stopped the session, and with the signal's reason if that was aborted before: then
   * nothing was said.
   */
  prompt(text: string, options?: PromptOptions): Promise<Turn>;
  /** The journal from an entry on (the first, if not given), then what comes live; ends with the session. */
  events(from?: number): AsyncIterable<Entry>;
  /** Calls with every step from now on; the returned function ends that. */
  watch(watcher: Watcher): () => void;
  /** Cancels the turn that runs. */
  cancel(): Promise<void>;
  /**
   * Has another model answer from the next call on, with its own window and prices; a reply that streams in is still
   * the old one's. Durable when it resolves, with the model; rejects if it can't be connected, or if its price is
   * unknown and dollars are limited: then nothing has changed.
   */
  useModel(wanted: string | Model): Promise<Model>;
  /** The model that answers the next call. */
  model(): Promise<Model>;
  /** The commands that it has started in the background, the oldest first: what they said, how they ended, `kill`. */
  jobs(): readonly Job[];
  /**
   * Keeps a picture so that it can go with an input (`UserInput.images`); rejects with why where it is none that models
   * take, or is too large.
   */
  keepPicture(bytes: Uint8Array): Promise<Image>;
  /** Resolves when nothing happens until the user acts; rejects with what stopped the session, e.g. a full disk. */
  idle(): Promise<State>;
  /** Resolves when the session was shut down; rejects with what stopped it otherwise. */
  readonly ended: Promise<void>;
  /** Shuts down: what runs is ended, the journal's lock is free when it resolves. */
  close(): Promise<void>;
};

export type Open = {
  readonly runtime: LocalRuntime;
  readonly blobs: Blobs;
  readonly models: Models;
  readonly id: string;
  readonly tornTail: OpenJournal['tornTail'];
  readonly unpriced: Unpriced | undefined;
};

/** The session as its user holds it, of one that is open in the runtime. */
export const connect = ({ runtime, blobs, models, id, tornTail, unpriced }: Open): Session => {
  const ended = runtime.ended(id);
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  ended.then(end, end);
  /** What stopped a session is what every later wish is answered with. */
  const whileOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isOver) await ended;
    return work();
  };
  const state = async (): Promise<State> => (await runtime.state(id)).state;
  const idle = (): Promise<State> => whileOpen(() => (isOver ? state() : waitForRest(runtime, id, ended)));
  const prompt = async (text: string, { signal, mode = 'steer' }: PromptOptions = {}): Promise<Turn> => {
    signal?.throwIfAborted();
    const before = (await state()).session.usage;
    await runtime.send(id, { type: 'UserInput', text, mode });
    // refused where the turn, and with it the session, has ended: then there is nothing to cancel
    const cancel = (): void => void attempt(() => runtime.send(id, { type: 'CancelTurn' }));
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      return turnOf(before, await idle());
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  };
  const useModel = async (wanted: string | Model): Promise<Model> => {
    const model = await models.connect(wanted);
    refuseUnpriced(model, (await state()).session.settings.limits, unpriced);
    await runtime.send(id, { type: 'SettingsChanged', patch: settingsOfModel(model) });
    return model;
  };
  const keepPicture = async (bytes: Uint8Array): Promise<Image> => {
    const picture = await import('../tools/picture.js');
    const kept = await picture.keepPicture(Buffer.from(bytes), blobs);
    if (kept.kind === 'kept') return kept.image;
    const why = kept.kind === 'none' ? 'it is no PNG, JPEG, GIF or WebP' : kept.why;
    throw new Error(`the picture can't be shown to a model: ${why}`);
  };
  return {
    id,
    keepPicture,
    jobs: () => (isOver ? [] : runtime.jobs(id)),
    tornTail,
    ended,
    state,
    model: async () => models.get((await state()).session.settings.model),
    useModel: (wanted) => whileOpen(() => useModel(wanted)),
    send: (input) => whileOpen(() => runtime.send(id, input)),
    watch: (watcher) => runtime.watch(id, watcher),
    cancel: async () => void (await whileOpen(() => runtime.send(id, { type: 'CancelTurn' }))),
    prompt: (text, options) => whileOpen(() => prompt(text, options)),
    events: (from = 1) => runtime.read(id, from),
    idle,
    close: () => (isOver ? ended : runtime.close(id)),
  };
};
