import path from 'node:path';
import type { Settings } from '../machine/settings.js';
import { readTextOrEmpty } from '../platform/files/regular-file.js';
import { matchesPath } from '../policy/paths/path-patterns.js';
import type { Preset, WrittenRule } from '../policy/preset-rules.js';
import type { Clock } from '../ports/clock.js';

const HEAD_BYTES_MAX = 4_096;

/** The current git branch; undefined if the workspace is not the root of a repository, or HEAD is detached. */
const readBranch = async (workspace: string): Promise<string | undefined> => {
  // A missing or unreadable HEAD file gives an empty text, and so no branch.
  const head = await readTextOrEmpty(path.join(workspace, '.git', 'HEAD'), HEAD_BYTES_MAX);
  return /^ref: refs\/heads\/(.+)\n?$/.exec(head)?.[1];
};

type Place = {
  readonly workspace: string;
  readonly preset: Preset;
  readonly clock: Clock;
  /** Files that they forbid or ask about are not imported by an AGENTS.md file. */
  readonly writtenRules?: readonly WrittenRule[] | undefined;
  /** A promise, since the sandbox probe takes as long as reading the files; both run at the same time. */
  readonly sandbox: Promise<NonNullable<Settings['sandbox']>>;
};

const isGuarded = (file: string, workspace: string, rules: readonly WrittenRule[]): boolean =>
  rules.some(
    (rule) => rule.kind === 'path' && rule.decision !== 'allow' && matchesPath(rule.pattern, file, workspace),
  );

/** Builds the system prompt; reports AGENTS.md files that could not be used. */
export const instruct = async (
  { workspace, preset, clock, sandbox, writtenRules = [] }: Place,
  report: (fault: Error) => void,
): Promise<string> => {
  const [{ instructionsFor }, { loadAgentsFiles }] = await Promise.all([
    import('../session/prompt/instructions.js'),
    import('../session/prompt/agents-files.js'),
  ]);
  const [{ files, warnings }, gitBranch] = await Promise.all([
    loadAgentsFiles(workspace, (file) => !isGuarded(file, workspace, writtenRules)),
    readBranch(workspace),
  ]);
  for (const warning of warnings) report(new Error(warning));
  return instructionsFor({
    workspace,
    platform: process.platform,
    dateIso: new Date(clock.now()).toISOString().slice(0, 10),
    agentsFiles: files,
    preset,
    sandbox: await sandbox,
    ...(gitBranch === undefined ? {} : { gitBranch }),
  });
};
