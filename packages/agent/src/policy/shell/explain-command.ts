/** Explains the policy's decision about a shell text, without a session. */

import { onlyReads } from '../command-options.js';
import {
  type CommandLevel,
  commandPlace,
  decide,
  levelOfCall,
  type PolicyDecision,
  type PolicySettings,
  withExpectedNeeds,
} from '../decide.js';
import type { CallFacts, JudgedCall, Needs, ShellFacts } from '../judged-call.js';
import type { CommandPlace } from '../presets.js';
import { expectedNeeds } from './expected-needs.js';
import { commandFinder, type ShellLookup, shellFacts } from './shell-facts.js';
import {
  type AskGit,
  type FindLosses,
  unrecoverableFiles,
  withGitReadings,
} from './unrecoverable-files.js';

export type Explained = PolicyDecision & {
  /**
   * Files that the command would delete or overwrite and git could not restore; absent: not looked
   * up, or it deletes and overwrites none.
   */
  readonly unrecoverable?: readonly string[];
  readonly facts: ShellFacts;
  /** Where the command would run, and what it could change and reach there. */
  readonly place: CommandPlace;
  readonly level: CommandLevel;
};

type LookedUp = {
  readonly shell: ShellFacts;
  /** The access outside the sandbox that the call asks for itself. */
  readonly needs: Needs | undefined;
  /** Null: not looked up, or none is lost. */
  readonly unrecoverable: readonly string[] | null;
  /** The access that the words are expected to need, although the call does not ask for it. */
  readonly expects: CallFacts['expects'] | null;
};

/** The call that the shell tool would make for a text. */
const shellCall = (
  text: string,
  { shell, needs, unrecoverable, expects }: LookedUp,
  workspace: string,
): JudgedCall => ({
  callId: 'explained',
  tool: 'shell',
  input: { command: text },
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  facts: {
    argv: [text],
    paths: [workspace],
    hosts: [],
    shape: text,
    shell,
    ...(needs === undefined ? {} : { needs }),
    ...(unrecoverable === null ? {} : { unrecoverable }),
    ...(expects == null ? {} : { expects }),
  },
});

type ExplainOptions = {
  readonly needs?: Needs;
  readonly find?: ShellLookup;
  /**
   * Looks up which files git could not restore. Without it every file that the words name counts.
   */
  readonly losses?: FindLosses;
  readonly askGit?: AskGit;
};

/**
 * Decides about a text as for a call of the shell tool. Searches programs in the PATH of this
 * process unless `find` is given.
 */
export const explainCommand = async (
  text: string,
  settings: PolicySettings,
  { needs, find, losses, askGit }: ExplainOptions = {},
): Promise<Explained> => {
  const findProgram = find ?? commandFinder(process.env.PATH ?? '', settings.workspace);
  const read = await shellFacts(text, findProgram);
  const facts =
    askGit === undefined ? read : await withGitReadings(read, settings.workspace, askGit);
  const unrecoverable =
    losses === undefined ? null : await unrecoverableFiles(facts, settings.workspace, losses);
  const { workspace } = settings;
  const expects = needs === undefined ? expectedNeeds(facts, workspace) : null;
  const written = shellCall(text, { shell: facts, needs, unrecoverable, expects }, workspace);
  // with the access that the words need, if it would be allowed or asked about
  const call = withExpectedNeeds(settings, [], written);
  const place = commandPlace(settings, call) ?? 'unfenced';
  const reads = place === 'sandboxed' && !call.facts.needs && onlyReads(facts, workspace);
  return {
    ...decide(settings, [], call),
    ...(unrecoverable === null ? {} : { unrecoverable }),
    facts,
    place,
    level: reads ? 'reads' : levelOfCall(settings.sandbox, call.facts.needs),
  };
};
