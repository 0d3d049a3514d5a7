import {
  type Executable,
  TRUSTED_CHARACTERS_MAX,
  type TrustStore,
} from '@pawl/agent/extensions/trust/trust-store';
import type { HookDeclaration } from '@pawl/agent/extensions/user-hooks';
import type { CommandHook } from '@pawl/agent/extensions/user-hooks/session-hooks';
import type { ProcessEnvironment } from '@pawl/agent/platform/base/process-environment-type';
import { repositoryFolders } from '@pawl/agent/platform/files/repository-folders';
import { loadConfig, type ProjectHook } from '../settings/load.js';
import { notRunText } from './ask-trust.js';
import { namedFiles } from './files-named-by-command.js';
import { settleExecutables } from './project-executables.js';

/** The hooks that a project has in `.pawl/config.toml`. None runs before the user has allowed exactly this hook. */

type Level = NonNullable<HookDeclaration['sandbox']>;

const GRANTED: Readonly<Record<Level, string>> = {
  'read-only': 'granted: it runs in the sandbox, reads the workspace, writes nothing, and has no network.',
  workspace: 'granted: it runs in the sandbox, writes in the workspace, and has no network.',
  'workspace+net': 'granted: it runs in the sandbox, writes in the workspace, and has the network.',
  off: 'granted: it runs as you, outside the sandbox, with the network.',
};

/** What it may do beside that. */
const READS =
  'It reads what the session does at its moments, it can hold that back, and its notes are for the model.';

/** What the user would allow; null if nobody would read it. */
const executableOf = async (
  { declaration, folder }: ProjectHook,
  workspace: string,
  environment: ProcessEnvironment,
): Promise<Executable | null> => {
  const { name, command } = declaration;
  const [program = '', ...args] = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
  const top = repositoryFolders(workspace).folders.at(-1) ?? workspace;
  const files = await namedFiles(
    { command: program, args, env: {}, cwd: folder },
    { workspace, top, environment },
  );
  if (files === null) return null;
  const shown = { folder, ...declaration, sandbox: declaration.sandbox ?? 'workspace' };
  const content = [JSON.stringify(shown, null, 2), ...files, GRANTED[shown.sandbox], READS].join('\n');
  return content.length > TRUSTED_CHARACTERS_MAX ? null : { kind: 'hook', name, content };
};

type Described = { readonly hook: ProjectHook; readonly executable: Executable };

const describe = async (
  hooks: readonly ProjectHook[],
  workspace: string,
  environment: ProcessEnvironment,
  warn: (text: string) => void,
): Promise<readonly Described[]> => {
  const described: Described[] = [];
  for (const hook of hooks.filter(({ declaration }) => declaration.enabled)) {
    const executable = await executableOf(hook, workspace, environment);
    if (executable !== null) described.push({ hook, executable });
    else warn(`the hook ${hook.declaration.name} of this project has more words than anybody would read.`);
  }
  return described;
};

export const hookSource = async (
  workspace: string,
  environment: ProcessEnvironment = process.env,
): Promise<readonly Executable[]> => {
  const { projectHooks } = await loadConfig(workspace, environment);
  const described = await describe(projectHooks, workspace, environment, () => undefined); // opening the session warns
  return described.map(({ executable }) => executable);
};

/** The hooks that the user has allowed. `tellNotRun` gets one line for those that wait for an answer. */
export const allowedHooks = async (
  workspace: string,
  hooks: readonly ProjectHook[],
  trust: TrustStore,
  warn: (text: string) => void,
  environment: ProcessEnvironment = process.env,
  tellNotRun: (text: string) => void = warn,
): Promise<readonly CommandHook[]> => {
  const described = await describe(hooks, workspace, environment, warn);
  const { allowed, open } = await settleExecutables(trust, workspace, [
    async () => described.map(({ executable }) => executable),
  ]);
  const text = notRunText(open);
  if (text !== null) tellNotRun(text);
  return described
    .filter(({ executable }) => allowed.some((one) => one.executable === executable))
    .map(({ hook, executable }) => ({
      ...hook.declaration,
      sandbox: hook.declaration.sandbox ?? 'workspace',
      folder: hook.folder,
      // The model could change its files while the session runs.
      whyNot: async () =>
        (await executableOf(hook, workspace, environment))?.content === executable.content
          ? null
          : 'its files have changed since you allowed it. The next session asks again, or pawl trust allows it',
    }));
};
