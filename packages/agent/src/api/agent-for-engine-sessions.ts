import { realpath } from 'node:fs/promises';
import type { Settings } from '../machine/settings.js';
import { createRedactor } from '../platform/secrets/redactor.js';
import { secretsOf } from '../platform/secrets/secret-variables.js';
import type { StoppingPolicy } from '../ports/session-input-output.js';
import type { NewSession } from '../ports/session-runtime.js';
import { checkModel, checkTool } from '../session/check-outside-values.js';
import { systemClock } from '../session/clock.js';
import type { SessionDependencies } from '../session/dependency-types.js';
import { createModels } from '../session/model/connected-models.js';
import type { AgentOptions, SessionOptions } from './create-agent.js';
import { reportThrough } from './guarded-report.js';
import { prepareSession } from './prepare-session.js';
import { equip } from './session-dependencies.js';
import { missingText } from './session-sandbox-level.js';

/** The agent for sessions that an engine keeps. It has no tool `task`: an engine's sessions start no others. */

export type EngineAgentOptions = Omit<AgentOptions, 'journals' | 'tasks'> & {
  /** Asked before every model call of each session that is prepared here. All nodes must have it. */
  readonly stoppingPolicy?: StoppingPolicy;
  /** Whether `moreTools` work only where they are connected, as those of MCP servers do. */
  readonly isBound?: boolean;
};

export type EngineAgent = {
  /** The settings and instructions of a new session. Call it where the workspace is: it reads its files. */
  prepare(
    session: Pick<SessionOptions, 'workspace' | 'preset' | 'sandbox' | 'hosts' | 'settings'>,
  ): Promise<NewSession>;
  /** What a session works with on this node. */
  equip(session: {
    readonly settings: Settings;
    readonly sessionId: string;
    readonly startedBy?: unknown;
  }): Promise<SessionDependencies>;
};

/** The same model, tools, hooks after tools and sandbox as `createAgent` gives to sessions in this process. */
export const agentOnEngine = (options: EngineAgentOptions): EngineAgent => {
  const {
    model,
    clock = systemClock,
    tools,
    moreTools = [],
    moreInstructions = '',
    passEnvironment = [],
    hooks = [],
    stoppingPolicy,
    isBound = false,
  } = options;
  const stopping = stoppingPolicy === undefined ? {} : { stoppingPolicy };
  checkModel(model);
  for (const tool of [...(tools ?? []), ...moreTools]) checkTool(tool);
  const report = reportThrough(options.report ?? ((fault) => process.emitWarning(fault)));
  const models = createModels(model, options.connect);
  const redactor = createRedactor(secretsOf(process.env, options.secrets ?? {}));
  return {
    async prepare(session) {
      const workspace = await realpath(session.workspace);
      const parts = { model, clock, redactor, moreInstructions, report };
      const { prepared, fenced } = await prepareSession(parts, workspace, { ...session, ...stopping });
      const text = missingText(prepared.settings.sandbox, fenced);
      if (text !== null) report(new Error(text));
      return prepared;
    },
    async equip({ settings: { workspace, model: modelId }, sessionId, startedBy }) {
      if (modelId !== model.id) await models.connect(modelId);
      const needs = await equip(models, {
        tools,
        moreTools,
        passEnvironment,
        redactor,
        sessionId,
        workspace,
        hooks,
        startedBy: startedBy === undefined ? 'user' : 'task',
      });
      return { ...needs, ...stopping, ...(isBound ? { isBound } : {}) };
    },
  };
};
