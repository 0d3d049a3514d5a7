import type { Executable, TrustKind, TrustStore } from '@pawl/agent/extensions/trust/trust-store';
import type { CommandLevel } from '@pawl/agent/policy/call-sandbox-level';

/** What the files of a project want to run, and which of it the user has allowed. */

/** Reads the project's files. It runs nothing, and rejects only for a fault of the program. */
export type ExecutableSource = (workspace: string) => Promise<readonly Executable[]>;

/** `before`: the content that the user had allowed. */
export type OpenQuestion = { readonly executable: Executable; readonly before: string | null };

/** `level`: the sandbox level that the user granted. */
export type AllowedExecutable = { readonly executable: Executable; readonly level: CommandLevel | null };

export type SettledExecutables = {
  readonly allowed: readonly AllowedExecutable[];
  /** The user has not been asked, or not about this content. */
  readonly open: readonly OpenQuestion[];
};

export const kindText: Readonly<Record<TrustKind, string>> = {
  'mcp-server': 'MCP server',
  hook: 'hook',
  'skill-script': 'script of a skill',
  formatter: 'formatter',
};

export const settleExecutables = async (
  trust: TrustStore,
  workspace: string,
  sources: readonly ExecutableSource[],
): Promise<SettledExecutables> => {
  const found = (await Promise.all(sources.map((source) => source(workspace)))).flat();
  const allowed: AllowedExecutable[] = [];
  const open: OpenQuestion[] = [];
  for (const executable of found) {
    const judged = await trust.judge(workspace, executable);
    if (judged.kind === 'trusted') allowed.push({ executable, level: judged.level ?? null });
    else if (judged.kind === 'unknown') open.push({ executable, before: null });
    else if (judged.kind === 'changed') open.push({ executable, before: judged.before });
  }
  return { allowed, open };
};
