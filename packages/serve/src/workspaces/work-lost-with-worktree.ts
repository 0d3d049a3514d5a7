import { createHash } from 'node:crypto';
import path from 'node:path';
import { collectPastFiles } from '@pawl/agent/machine/file-hashes-from-events';
import { isWithin } from '@pawl/agent/platform/files/is-within';
import { openRegular } from '@pawl/agent/platform/files/regular-file';
import type { Entry } from '@pawl/agent/ports/journal';
import { attempt } from '@pawl/agent/session/attempt';

/** What a session loses with its worktree, from its journal. */

/** A command that may have changed files. `commits`: how many commits were made before it. */
type PastCommand = { readonly text: string; readonly commits: number };

export type PastWork = {
  /** sha256 of the files that its tools read or wrote, by real path. */
  readonly seen: ReadonlyMap<string, string>;
  /** The commits that were found after its calls, the oldest first. */
  readonly commits: readonly string[];
  readonly commands: readonly PastCommand[];
};

/** Commands that were started. */
const collectCommands = () => {
  const judged = new Map<string, string>();
  const started: PastCommand[] = [];
  return {
    started,
    see(event: Entry['event'], commits: number): void {
      if (event.type === 'LlmCompleted') {
        judged.clear();
        for (const { callId, facts, traits } of event.calls)
          if (facts.shell !== undefined && traits.effect !== 'pure') judged.set(callId, facts.shape);
      } else if (event.type === 'ToolStarted') {
        const text = judged.get(event.callId);
        if (text !== undefined) started.push({ text, commits });
      }
    },
  };
};

/** Reads the entries up to `last`. */
export const collectPastWork = async (entries: AsyncIterable<Entry>, last: number): Promise<PastWork> => {
  const files = collectPastFiles();
  const commits: string[] = [];
  const commands = collectCommands();
  if (last > 0)
    for await (const { seq, event } of entries) {
      files.see(event);
      commands.see(event, commits.length);
      if (event.type === 'HookCompleted') commits.push(...event.commits.map(({ hash }) => hash));
      if (seq >= last) break;
    }
  return { seen: files.past().seen, commits, commands: commands.started };
};

const FILE_BYTES_MAX = 64 * 1024 * 1024;

const hashOf = async (file: string): Promise<string | null> => {
  const read = await attempt(async () => {
    const { file: opened, status } = await openRegular(file);
    try {
      return status.size > FILE_BYTES_MAX
        ? null
        : createHash('sha256')
            .update(await opened.readFile())
            .digest('hex');
    } finally {
      await opened.close();
    }
  });
  return read.kind === 'done' ? read.value : null;
};

/** The files of the worktree that are not as the session last saw them, relative to it and sorted. */
export const lostFiles = async ({ seen }: PastWork, worktree: string): Promise<readonly string[]> => {
  const lost: string[] = [];
  for (const [file, sha256] of seen) {
    if (!isWithin(file, worktree) || (await hashOf(file)) === sha256) continue;
    lost.push(path.relative(worktree, file));
  }
  return lost.toSorted();
};

/** The commands that ran after the commit that the fresh worktree has: what they changed may be lost. */
export const lostCommands = ({ commits, commands }: PastWork, commit: string): readonly string[] => {
  const kept = commits.lastIndexOf(commit) + 1;
  return [...new Set(commands.filter((command) => command.commits >= kept).map(({ text }) => text))];
};

export type LostWork = {
  readonly commit: string;
  readonly files: readonly string[];
  readonly commands: readonly string[];
};

const LISTED_MAX = 100;
const TEXT_MAX = 200;

const inOneLine = (text: string): string => {
  const quoted = JSON.stringify(text).slice(1, -1);
  return quoted.length > TEXT_MAX ? `${quoted.slice(0, TEXT_MAX)}…` : quoted;
};

/** The last ones count most. */
const list = (texts: readonly string[]): readonly string[] => {
  const more = texts.length - LISTED_MAX;
  return [
    ...texts.slice(-LISTED_MAX).map((text) => `- ${inOneLine(text)}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
  ];
};

/** What the model is told before the next input. */
export const moveNotice = ({ commit, files, commands }: LostWork): string =>
  [
    `[The workspace was lost. It is now a fresh worktree at commit ${commit.slice(0, 12)}, at the same path.`,
    ...(files.length === 0
      ? ['No file that you read or wrote with a tool is lost.']
      : [
          'These files are not as you last saw them, since their changes were not committed:',
          ...list(files),
        ]),
    ...(commands.length === 0
      ? []
      : ['What these commands changed since that commit may be lost too:', ...list(commands)]),
    'Ignored files such as installed packages are gone, and background commands have ended. Read files again before you rely on them.]',
  ].join('\n');
