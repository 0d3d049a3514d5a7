import type { InputMode } from '../machine/event.js';
import type { Image } from '../machine/message.js';
import type { State } from '../machine/state.js';
import type { Redactor } from '../platform/secrets/redactor.js';
import type { Blobs, Entry, OpenJournal } from '../ports/journal.js';
import type { Model } from '../ports/model.js';
import type { Input, Watcher } from '../ports/session-input-output.js';
import type { Job } from '../ports/tool.js';
import { attempt } from '../session/attempt.js';
import type { LocalRuntime } from '../session/in-process-runtime.js';
import { type Models, settingsOfModel } from '../session/model/connected-models.js';
import { refuseUnpriced, type Unpriced } from './session-settings.js';
import { type Turn, turnOf } from './turn-result.js';

export type PromptOptions = {
  /** Cancels the turn on abort; the turn's reason is then `cancelled`. */
  readonly signal?: AbortSignal;
  /** If a turn is running: send the text with its next tool results (`steer`, the default), or after the turn. */
  readonly mode?: InputMode;
};

export type Session = {
  readonly id: string;
  /** The incomplete last line that was cut off the journal of a resumed session; null if there was none. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Sends a user event. When it resolves, the event is durable and applied; `seq` is its number in the journal. */
  send(input: Input): Promise<{ readonly seq: number }>;
  state(): Promise<State>;
  /**
   * Sends a prompt, waits until the session is idle and returns the turn. A failed model call is a result, not an
   * exception. Rejects with the error that stopped the session. If the signal is already aborted, rejects with its
   * reason and sends nothing.
   */
  prompt(text: string, options?: PromptOptions): Promise<Turn>;
  /** The journal's entries from `from` on (default: the first), then new ones as they come; ends with the session. */
  events(from?: number): AsyncIterable<Entry>;
  /** Calls `watcher` with every step from now on; the returned function removes it. */
  watch(watcher: Watcher): () => void;
  /** Cancels the running turn. */
  cancel(): Promise<void>;
  /**
   * Switches to another model from the next call on, with its own window and prices; a reply that is streaming comes
   * from the old one. When it resolves, the change is durable. Rejects, and changes nothing, if the model can't be
   * connected, or if its price is unknown and there is a limit in dollars.
   */
  useModel(wanted: string | Model): Promise<Model>;
  /** The model that answers the next call. */
  model(): Promise<Model>;
  /** Background commands of the session, oldest first: their output and status, and `kill`. */
  jobs(): readonly Job[];
  /**
   * Stores a picture so that an input can include it (`UserInput.images`). Rejects if the format is not supported or the
   * picture is too large.
   */
  keepPicture(bytes: Uint8Array): Promise<Image>;
  /** Replaces secrets in a text, as is done with tool output. */
  redact(text: string): string;
  /** Resolves when the session waits for the user; rejects with the error that stopped it, for example a full disk. */
  idle(): Promise<State>;
  /** Resolves when the session is shut down; rejects if an error stopped it. */
  readonly ended: Promise<void>;
  /** Stops all running work and shuts the session down. When it resolves, the journal's lock is released. */
  close(): Promise<void>;
};

export type ConnectedSession = {
  readonly runtime: LocalRuntime;
  readonly blobs: Blobs;
  readonly models: Models;
  readonly id: string;
  readonly tornTail: OpenJournal['tornTail'];
  readonly unpriced: Unpriced | undefined;
  readonly redactor: Redactor;
};

/** The public interface of a session that is open in the runtime. */
export const connect = (connected: ConnectedSession): Session => {
  const { runtime, blobs, models, id, tornTail, unpriced, redactor } = connected;
  const session = runtime.find(id);
  const prompt = async (text: string, { signal, mode = 'steer' }: PromptOptions = {}): Promise<Turn> => {
    signal?.throwIfAborted();
    const before = session.state.session.usage;
    await session.send({ type: 'UserInput', text, mode });
    // `send` rejects if the session has ended; then there is nothing to cancel
    const cancel = (): void => void attempt(() => session.send({ type: 'CancelTurn' }));
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      return turnOf(before, await session.idle());
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  };
  const useModel = async (wanted: string | Model): Promise<Model> => {
    const model = await models.connect(wanted);
    refuseUnpriced(model, session.state.session.settings.limits, unpriced);
    await session.send({ type: 'SettingsChanged', patch: settingsOfModel(model) });
    return model;
  };
  const keepPicture = async (bytes: Uint8Array): Promise<Image> => {
    const picture = await import('../tools/files/picture.js');
    const kept = await picture.keepPicture(Buffer.from(bytes), blobs);
    if (kept.kind === 'kept') return kept.image;
    const why = kept.kind === 'none' ? 'it is no PNG, JPEG, GIF or WebP' : kept.why;
    throw new Error(`the picture can't be shown to a model: ${why}`);
  };
  return {
    id,
    tornTail,
    ended: session.ended,
    prompt,
    useModel,
    keepPicture,
    send: (input) => session.send(input),
    state: async () => session.state,
    events: (from) => session.read(from),
    watch: (watcher) => runtime.watch(id, watcher),
    cancel: async () => void (await session.send({ type: 'CancelTurn' })),
    model: async () => models.get(session.state.session.settings.model),
    jobs: () => (session.isOver ? [] : session.jobs),
    redact: (text) => redactor.clean(text),
    idle: () => session.idle(),
    close: () => session.close(),
  };
};
