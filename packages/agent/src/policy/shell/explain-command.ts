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
import { markSensitivePaths, type UserPlaces } from '../paths.js';
import type { CommandPlace } from '../presets.js';
import { type CommandLookups, commandFacts } from './command-facts.js';
import { commandFinder } from './shell-facts.js';

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

/** The call that the shell tool would make for a text. */
const shellCall = (text: string, facts: CallFacts): JudgedCall => ({
  callId: 'explained',
  tool: 'shell',
  input: { command: text },
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
  facts,
});

type ExplainOptions = Partial<CommandLookups> & {
  readonly needs?: Needs;
  /** The user's places that count as protected. Default: none. */
  readonly userPlaces?: UserPlaces;
};

const NO_PLACES: UserPlaces = { home: '', credentials: [], obeyed: [] };

/**
 * Decides about a text as for a call of the shell tool. Searches programs in the PATH of this
 * process unless `find` is given.
 */
export const explainCommand = async (
  text: string,
  settings: PolicySettings,
  { needs, userPlaces = NO_PLACES, ...lookups }: ExplainOptions = {},
): Promise<Explained> => {
  const { workspace } = settings;
  const find = lookups.find ?? commandFinder(process.env.PATH ?? '', workspace);
  const known = await commandFacts(text, needs, workspace, { ...lookups, find });
  const base = { argv: [text], hosts: [], shape: text, ...(needs === undefined ? {} : { needs }) };
  const marked = markSensitivePaths({ ...base, ...known }, workspace, userPlaces);
  // with the access that the words need, if it would be allowed or asked about
  const call = withExpectedNeeds(settings, [], shellCall(text, marked));
  const place = commandPlace(settings, call) ?? 'unfenced';
  const { shell: facts, unrecoverable } = known;
  const reads = place === 'sandboxed' && !call.facts.needs && onlyReads(facts, workspace);
  return {
    ...decide(settings, [], call),
    ...(unrecoverable === undefined ? {} : { unrecoverable }),
    facts,
    place,
    level: reads ? 'reads' : levelOfCall(settings.sandbox, call.facts.needs),
  };
};
