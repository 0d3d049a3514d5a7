import { realpath } from 'node:fs/promises';
import type { Preset } from './agent/settings.js';
import { createApprovals, type OnApproval, together } from './agent-api/approvals.js';
import { equip } from './agent-api/equip.js';
import { instruct } from './agent-api/instruct.js';
import { connect, type Session } from './agent-api/session.js';
import {
  differences,
  newSettings,
  refuseUnpriced,
  type SettingsPatch,
  settingsFrom,
  type Unpriced,
} from './agent-api/settings.js';
import { agentMachine } from './journal/replay.js';
import type { Clock, JournalStore, Model, StoppingPolicy, Tool, Watcher } from './needs.js';
import { systemClock } from './runtime/clock.js';
import { createModels, type Models } from './runtime/models.js';
import { createRuntime, type LocalRuntime } from './runtime/runtime.js';
import { newSessionId } from './runtime/session-id.js';
import { attempt } from './runtime/wall.js';

export type { Session } from './agent-api/session.js';

/** Wires the world to the runtime. What a session may not need is loaded when it is needed. */

export type AgentOptions = {
  readonly model: Model;
  /** Finds another model by its id, `provider/name`, for `useModel`; rejects with why there is none. */
  readonly connect?: (modelId: string) => Promise<Model>;
  readonly journals: JournalStore;
  /** The agent's own tools, if not given. */
  readonly tools?: readonly Tool[];
  readonly clock?: Clock;
  /** Told of faults that stop nothing; a process warning, if not given. */
  readonly report?: (fault: Error) => void;
};

export type SessionOptions = {
  /** The folder to work in. */
  readonly workspace: string;
  /** What may be done without asking; `auto` if not given (of a session that is resumed: as it was). */
  readonly preset?: Preset;
  /** Hosts that tools may reach without a question, as patterns (docs/permissions.md); of a session that is resumed: as it was. */
  readonly hosts?: readonly string[];
  /** What is to be set otherwise; a limit that is not named stays as it is. */
  readonly settings?: SettingsPatch;
  /** Called with every step, from the first. */
  readonly watcher?: Watcher;
  /** Answers for the user what the session asks before it changes something; it is to be given again when resumed. */
  readonly onApproval?: OnApproval;
  /** Shuts the session down when it is aborted, as `close` does; opening rejects with its reason if that was before. */
  readonly signal?: AbortSignal;
  /** Asked before every model call of the session; it is to be given again when the session is resumed. */
  readonly stoppingPolicy?: StoppingPolicy;
  /** Whether a limit in dollars refuses a model without a price (so if not given), or counts its calls as nothing. */
  readonly unpriced?: Unpriced;
  /** The session to go on with, in place of a new one. */
  readonly resume?: string;
};

export type Agent = {
  readonly runtime: LocalRuntime;
  open(options: SessionOptions): Promise<Session>;
};

/** What all sessions of an agent have in common. */
type Parts = Required<Pick<AgentOptions, 'model' | 'journals' | 'clock' | 'report'>> & {
  readonly runtime: LocalRuntime;
  readonly models: Models;
};

/** Who looks on: the program that answers for the user, and its own watcher. */
const watcherOf = (
  { runtime, report }: Parts,
  id: string,
  { watcher, onApproval }: SessionOptions,
): Watcher | undefined => {
  if (onApproval === undefined) return watcher;
  const answers = createApprovals({ onApproval, send: (input) => runtime.send(id, input), report });
  return watcher === undefined ? answers : together(answers, watcher, report);
};

const openAgain = async (
  parts: Parts,
  id: string,
  workspace: string,
  session: SessionOptions,
): Promise<Session> => {
  const { runtime, models, model, journals } = parts;
  const { stoppingPolicy, unpriced } = session;
  const watcher = watcherOf(parts, id, session);
  const { tornTail } = await runtime.open(id, {
    patch: (before) => {
      const wanted = settingsFrom(model, workspace, session, before);
      refuseUnpriced(model, wanted.limits, unpriced);
      return differences(before, wanted);
    },
    ...(watcher === undefined ? {} : { watcher }),
    ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
  });
  return connect({ runtime, blobs: journals.blobs, models, id, tornTail, unpriced });
};

const openNew = async (parts: Parts, workspace: string, session: SessionOptions): Promise<Session> => {
  const { runtime, models, model, journals, clock, report } = parts;
  const settings = newSettings(model, workspace, session);
  const { preset = 'auto', stoppingPolicy, unpriced } = session;
  const instructions = await instruct({ workspace, preset, clock }, report);
  const id = await runtime.create({
    settings,
    instructions,
    ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
  });
  const watcher = watcherOf(parts, id, session);
  if (watcher !== undefined) runtime.watch(id, watcher);
  return connect({ runtime, blobs: journals.blobs, models, id, tornTail: null, unpriced });
};

/** Closes the session when the signal is aborted, now or later. */
const closeOn = (signal: AbortSignal | undefined, session: Session): Session => {
  // a session that can't be closed says so to whoever waits for its end
  const end = (): void => void attempt(() => session.close());
  signal?.addEventListener('abort', end, { once: true });
  const forget = (): void => signal?.removeEventListener('abort', end);
  session.ended.then(forget, forget);
  if (signal?.aborted) end();
  return session;
};

/** An agent: one model, one place for journals, any number of sessions. */
export const createAgent = (options: AgentOptions): Agent => {
  const {
    model,
    journals,
    clock = systemClock,
    tools,
    report = (fault) => process.emitWarning(fault),
  } = options;
  const models = createModels(model, options.connect);
  const runtime = createRuntime({
    journals,
    clock,
    machine: agentMachine.fingerprint,
    equip: () => equip(models, tools),
    newSessionId: () => newSessionId(clock),
    random: Math.random,
    report,
  });
  const parts: Parts = { model, journals, clock, report, runtime, models };
  return {
    runtime,
    open: async (session) => {
      session.signal?.throwIfAborted();
      refuseUnpriced(model, session.settings?.limits, session.unpriced);
      model.prepare?.();
      const workspace = await realpath(session.workspace);
      const opened =
        session.resume === undefined
          ? openNew(parts, workspace, session)
          : openAgain(parts, session.resume, workspace, session);
      return closeOn(session.signal, await opened);
    },
  };
};

/** A session of an agent of its own. */
export const openSession = (options: AgentOptions & SessionOptions): Promise<Session> =>
  createAgent(options).open(options);
