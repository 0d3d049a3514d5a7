import { createSessionSandbox } from '../command/sandbox/session/session-sandbox.js';
import type { SessionHook } from '../extensions/user-hooks/session-hooks.js';
import { commitsPath } from '../journal/paths-and-durable-writes.js';
import { stateFolder } from '../platform/base/user-folders.js';
import type { Redactor } from '../platform/secrets/redactor.js';
import type { FindLosses } from '../policy/shell/unrecoverable-files.js';
import type { Tool } from '../ports/tool.js';
import type { SessionDependencies } from '../session/dependency-types.js';
import type { Models } from '../session/model/connected-models.js';

export type Wanted = {
  /** Replaces the built-in tools. */
  readonly tools: readonly Tool[] | undefined;
  /** Tools in addition to `tools` or the built-in ones. */
  readonly moreTools: readonly Tool[];
  /** Names of environment variables that sandboxed commands get in addition to the usual ones. */
  readonly passEnvironment: readonly string[];
  readonly redactor: Redactor;
  readonly sessionId: string;
  readonly workspace: string;
  readonly hooks: readonly SessionHook[];
  readonly startedBy: 'user' | 'task';
};

/** Creates the dependencies of one session. */
export const equip = async (
  models: Models,
  { tools, moreTools, passEnvironment, redactor, sessionId, workspace, hooks, startedBy }: Wanted,
): Promise<SessionDependencies> => {
  const [{ createFileMemory }, { createJobs }, { compactionInstructions }, { createLateHooks }, builtin] =
    await Promise.all([
      import('../tools/file-memory.js'),
      import('../command/job-registry.js'),
      import('../session/prompt/compaction-instructions.js'),
      import('../workspace/late-hooks.js'),
      tools === undefined ? import('../tools/builtin-tools.js') : null,
    ]);
  const environment = process.env;
  const sandbox = createSessionSandbox({ environment, passEnvironment, sessionId });
  const findLosses: FindLosses = async (folder, paths) =>
    (await import('../workspace/git/unrecoverable-paths.js')).lossesByGit(environment)(folder, paths);
  const jobs = createJobs();
  const userHooks =
    hooks.length === 0
      ? null
      : (await import('../extensions/user-hooks/session-hooks.js')).createSessionHooks(hooks, {
          workspace,
          environment,
          sandbox,
          sessionId,
          startedBy,
        });
  const own = tools ?? builtin?.builtinTools({ environment, sandbox, findLosses }) ?? [];
  return {
    model: models.get,
    tools: [...own, ...moreTools],
    files: createFileMemory(),
    jobs,
    compactionInstructions,
    hooks: createLateHooks({
      environment,
      sandbox,
      recordFile: commitsPath(stateFolder(environment), sessionId),
    }),
    userHooks,
    redactor,
    async takeOver(waited) {
      const { settleEarlier } = await import('../command/shell/earlier-commands.js');
      await settleEarlier(sandbox, jobs, workspace, environment.HOME ?? '', waited);
    },
    sentCalls: {
      announce: (place) => sandbox.announce(place),
      record: (place, call) => sandbox.recordSent(place, call),
      async find(place, call) {
        const earlier = await sandbox.earlier(place);
        if (earlier?.hasSent(call)) return 'sent';
        return earlier?.isComplete ? 'notSent' : 'unknown';
      },
    },
    close: (isFailed) => sandbox.close(isFailed),
  };
};
