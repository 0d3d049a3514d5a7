import { realpath } from 'node:fs/promises';
import type { SessionHook } from '../extensions/user-hooks/session-hooks.js';
import { agentMachine } from '../journal/read/journaled-agent-machine.js';
import type { Grant, SandboxLevel, Settings } from '../machine/settings.js';
import { createRedactor, type Redactor } from '../platform/secrets/redactor.js';
import { secretsOf } from '../platform/secrets/secret-variables.js';
import type { Preset } from '../policy/preset-rules.js';
import type { Clock } from '../ports/clock.js';
import type { JournalStore } from '../ports/journal.js';
import type { Model } from '../ports/model.js';
import type { StoppingPolicy, Watcher } from '../ports/session-input-output.js';
import type { Tool } from '../ports/tool.js';
import { attempt } from '../session/attempt.js';
import { checkModel, checkTool } from '../session/check-outside-values.js';
import { systemClock } from '../session/clock.js';
import { createRuntime, type LocalRuntime } from '../session/in-process-runtime.js';
import { createModels, type Models } from '../session/model/connected-models.js';
import { newSessionId } from '../session/new-session-id.js';
import { createApprovals, type OnApproval, together } from './approvals.js';
import { reportThrough } from './guarded-report.js';
import { prepareSession } from './prepare-session.js';
import { refusalOfWorkspace } from './refuse-workspace.js';
import { connect, type Session } from './session.js';
import { equip } from './session-dependencies.js';
import { instruct } from './session-instructions.js';
import { type Fenced, missingText, probeFor } from './session-sandbox-level.js';
import {
  differences,
  refuseUnpriced,
  resumedSettings,
  type SettingsPatch,
  type Unpriced,
} from './session-settings.js';

export type { Session } from './session.js';

/** Connects models, tools, hooks, sandbox and journals to the runtime. Optional parts are loaded on first use. */

export type AgentOptions = {
  readonly model: Model;
  /** Finds another model by its id, `provider/name`, for `useModel`; rejects with the reason if there is none. */
  readonly connect?: (modelId: string) => Promise<Model>;
  readonly journals: JournalStore;
  /** Replaces the built-in tools. */
  readonly tools?: readonly Tool[];
  /** Tools in addition to `tools` or the built-in ones. */
  readonly moreTools?: readonly Tool[];
  /** Hooks at named moments: functions or commands (docs/user-hooks.md). Default: none. */
  readonly hooks?: readonly SessionHook[];
  /** Gives the model the tool `task`: other agents that only read, with sessions of their own. Default: no. */
  readonly tasks?: boolean;
  /** Added at the end of the instructions of each new session. Default: nothing. */
  readonly moreInstructions?: string;
  /** Names of environment variables that sandboxed commands get in addition to the usual ones. */
  readonly passEnvironment?: readonly string[];
  /**
   * Secrets in addition to those in the environment, for example keys read from files. Each key is the name shown in
   * place of its value wherever tool output contains it.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Receives faults that don't stop the session. Default: a process warning. */
  readonly report?: (fault: Error) => void;
};

export type SessionOptions = {
  /** The folder to work in. */
  readonly workspace: string;
  /**
   * The permission rules: what runs without asking. Default: `auto`; for a resumed session what it had, if that is narrower.
   */
  readonly preset?: Preset;
  /**
   * What commands can reach. Default: `workspace`, or `read-only` with the preset `plan`. If the sandbox does not work
   * here, each command needs approval or is denied; only `off` runs commands without a sandbox.
   */
  readonly sandbox?: SandboxLevel;
  /**
   * Patterns of hosts that tools may reach without asking (docs/permissions.md). Default: none. Not taken from the journal:
   * pass them again when you resume.
   */
  readonly hosts?: readonly string[];
  /** Settings to change. Limits that are left out have their defaults. */
  readonly settings?: SettingsPatch;
  /** Called with every step, beginning with the first. */
  readonly watcher?: Watcher;
  /** Answers approval questions for the user. Not stored: pass it again when you resume. */
  readonly onApproval?: OnApproval;
  /** Shuts the session down on abort, as `close` does. If it is already aborted, opening rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Called before every model call of the session. Not stored: pass it again when you resume. */
  readonly stoppingPolicy?: StoppingPolicy;
  /** With a limit in dollars: refuse a model without a price (default), or count its calls as free. */
  readonly unpriced?: Unpriced;
  /** With `resume`: what the user has allowed in this process, for example in the session that was forked. Default: nothing. */
  readonly grants?: readonly Grant[];
  /** Id of the session to resume; without it a new session starts. */
  readonly resume?: string;
  /** With `resume`: even if another process may have the session open. That process stops before it writes again. */
  readonly takeOver?: boolean;
};

export type Agent = {
  readonly runtime: LocalRuntime;
  open(options: SessionOptions): Promise<Session>;
};

/** The parts that all sessions of an agent share. */
type Parts = Required<Pick<AgentOptions, 'model' | 'journals' | 'clock' | 'report' | 'moreInstructions'>> & {
  readonly runtime: LocalRuntime;
  readonly models: Models;
  readonly redactor: Redactor;
};

/** The session's watcher: handles approvals if `onApproval` is given, and calls the caller's watcher. */
const watcherOf = (
  { runtime, report }: Parts,
  id: string,
  { watcher, onApproval }: SessionOptions,
): Watcher | undefined => {
  if (onApproval === undefined) return watcher;
  const answers = createApprovals({ onApproval, send: (input) => runtime.send(id, input), report });
  return watcher === undefined ? answers : together(answers, watcher, report);
};

const tellMissing = (sandbox: Settings['sandbox'], fenced: Fenced, report: (fault: Error) => void): void => {
  const text = missingText(sandbox, fenced);
  if (text !== null) report(new Error(text));
};

const openAgain = async (
  parts: Parts,
  id: string,
  workspace: string,
  session: SessionOptions,
): Promise<Session> => {
  const { runtime, models, model, journals, report, redactor } = parts;
  const { stoppingPolicy, unpriced, takeOver = false, grants = [] } = session;
  const fenced = await probeFor(session.sandbox, workspace);
  const watcher = watcherOf(parts, id, session);
  const { tornTail } = await runtime.open(id, {
    patch: (before, origin) => {
      const wanted = resumedSettings(model, workspace, session, { settings: before, origin }, fenced);
      tellMissing(wanted.sandbox, fenced, report);
      refuseUnpriced(model, wanted.limits, unpriced);
      return differences(before, wanted);
    },
    takeOver,
    grants,
    ...(watcher === undefined ? {} : { watcher }),
    ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
  });
  return connect({ runtime, blobs: journals.blobs, models, id, tornTail, unpriced, redactor });
};

const openNew = async (parts: Parts, workspace: string, session: SessionOptions): Promise<Session> => {
  const { runtime, models, journals, report, redactor } = parts;
  const { stoppingPolicy, unpriced } = session;
  const { prepared, fenced } = await prepareSession(parts, workspace, session);
  tellMissing(prepared.settings.sandbox, fenced, report);
  const id = await runtime.create({
    ...prepared,
    ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
  });
  const watcher = watcherOf(parts, id, session);
  if (watcher !== undefined) runtime.watch(id, watcher);
  return connect({ runtime, blobs: journals.blobs, models, id, tornTail: null, unpriced, redactor });
};

/** The tool `task` of a session. */
const taskToolOf = async (parts: Parts, parentId: string): Promise<Tool> => {
  const { clock, journals, report, redactor } = parts;
  const [{ createTaskTool }, { createTaskSessions }, { taskInstructions }] = await Promise.all([
    import('./tasks/task-tool.js'),
    import('./tasks/task-sessions.js'),
    import('../session/prompt/task-instructions.js'),
  ]);
  const instructTask = async ({ workspace, sandbox = 'off', writtenRules }: Settings): Promise<string> => {
    const place = {
      ...({ workspace, preset: 'plan', clock, writtenRules } as const),
      sandbox: Promise.resolve(sandbox),
    };
    return redactor.clean(`${await instruct(place, report)}\n\n${taskInstructions}`);
  };
  return createTaskTool(
    createTaskSessions({ parentId, clock, journals, runtime: () => parts.runtime, instruct: instructTask }),
  );
};

/** Closes the session when the signal is aborted, now or later. */
const closeOn = (signal: AbortSignal | undefined, session: Session): Session => {
  // an error while closing also rejects `ended`, so it can be ignored here
  const end = (): void => void attempt(() => session.close());
  signal?.addEventListener('abort', end, { once: true });
  const forget = (): void => signal?.removeEventListener('abort', end);
  session.ended.then(forget, forget);
  if (signal?.aborted) end();
  return session;
};

/**
 * Creates an agent: one model, one journal store, any number of sessions. Throws a TypeError if the model or a tool is
 * invalid.
 */
export const createAgent = (options: AgentOptions): Agent => {
  const {
    model,
    journals,
    clock = systemClock,
    tools,
    moreTools = [],
    hooks = [],
    tasks = false,
    moreInstructions = '',
    passEnvironment = [],
    secrets = {},
  } = options;
  checkModel(model);
  for (const tool of [...(tools ?? []), ...moreTools]) checkTool(tool);
  const report = reportThrough(options.report ?? ((fault) => process.emitWarning(fault)));
  const models = createModels(model, options.connect);
  const redactor = createRedactor(secretsOf(process.env, secrets));
  const runtime = createRuntime({
    journals,
    clock,
    machine: agentMachine.fingerprint,
    equip: async ({ workspace }, sessionId, startedBy) => {
      const own = tasks && startedBy === null ? [await taskToolOf(parts, sessionId)] : [];
      const all = [...moreTools, ...own];
      const from = startedBy === null ? 'user' : 'task';
      return equip(models, {
        tools,
        moreTools: all,
        passEnvironment,
        redactor,
        sessionId,
        workspace,
        hooks,
        startedBy: from,
      });
    },
    newSessionId: () => newSessionId(clock),
    random: Math.random,
    report,
  });
  const parts: Parts = { model, journals, clock, report, runtime, models, redactor, moreInstructions };
  return {
    runtime,
    open: async (session) => {
      session.signal?.throwIfAborted();
      refuseUnpriced(model, session.settings?.limits, session.unpriced);
      model.prepare?.();
      const workspace = await realpath(session.workspace);
      const refusal = refusalOfWorkspace(workspace, process.env);
      if (refusal !== null) throw new Error(refusal);
      const opened =
        session.resume === undefined
          ? openNew(parts, workspace, session)
          : openAgain(parts, session.resume, workspace, session);
      return closeOn(session.signal, await opened);
    },
  };
};

/** Opens a single session: creates an agent just for it. */
export const openSession = async (options: AgentOptions & SessionOptions): Promise<Session> =>
  createAgent(options).open(options);
