import { statSync } from 'node:fs';
import { journalPath } from '@pawl/agent/journal/paths-and-durable-writes';
import { isLimited, type Limit } from '@pawl/agent/machine/values/limit-value';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session-input-output';
import type { AskRun } from '@pawl/ask/api/asker-types';
import { createAsker } from '@pawl/ask/api/create-asker';
import { EnvironmentUnavailable } from '@pawl/ask/eager-ask-values';
import type { AskSettings, AskTypes } from '@pawl/ask/environment-and-journal-types';
import { fileAskJournals } from '@pawl/ask/journal/journaled-ask-machine';
import { findInputs, INPUT_BYTES_MAX, InputError, type InputSource } from '@pawl/ask/runtime/measure-inputs';
import { oneLine } from '@pawl/terminal/paint-text';
import { exitCodes, Stop } from '../../exit-codes.js';
import { effortOf, refuseTakeOver, usageStop } from '../../flags.js';
import { openStateFolder } from '../../sessions/make-state-folder.js';
import { findSession, lastSession } from '../../sessions/stored-sessions.js';
import { type Configured, keysIn, withConfig } from '../../settings/apply-config.js';
import {
  connectModel,
  patience,
  realWorkspace,
  type Warn,
  warnOfEffort,
  warnOfUnknown,
} from '../../settings/connect-model.js';
import { type AskFlags, askSettingsOf, changedLimitsOf, environmentOf, frozenFlags } from './ask-flags.js';

/** Opens a new or resumed run from flags, words and environment. */

export type OpenedRun = {
  readonly run: AskRun;
  /** Path of the journal. */
  readonly journal: string;
  readonly workspace: string;
  readonly resumed: boolean;
};

export type OpeningRun = { readonly watcher: Watcher<AskTypes>; readonly warn: Warn };

// ---- Question and inputs ----

const isFile = (word: string): boolean => statSync(word, { throwIfNoEntry: false }) !== undefined;

export type AskCommand = { readonly question: string; readonly contexts: readonly string[] };

/**
 * Separates question and inputs. The parser reads `--context *.txt "question"` as one list: without other words its last
 * entry is the question. If that entry is `-` or a file, the question was forgotten.
 */
export const readAsked = (context: readonly string[], words: readonly string[]): AskCommand => {
  const last = words.length === 0 ? context.at(-1) : undefined;
  const question = (last ?? words.join(' ')).trim();
  const contexts = last === undefined ? context : context.slice(0, -1);
  const example = 'pawl ask --context FILE "question"';
  if (question === '' || (last !== undefined && (last === '-' || isFile(last))))
    throw usageStop(`There is no question: ${example}`);
  if (contexts.length === 0) throw usageStop(`There are no files to ask about: ${example}`);
  if (contexts.filter((name) => name === '-').length > 1)
    throw usageStop('stdin can be read only once: give - once.');
  return { question, contexts };
};

/** All of stdin as text, which the journal stores. */
const readStdin = async (): Promise<InputSource> => {
  if (process.stdin.isTTY) throw usageStop('- reads stdin: pipe something in.');
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin) {
    const buffer = Buffer.from(piece);
    pieces.push(buffer);
    bytes += buffer.length;
    if (bytes > INPUT_BYTES_MAX)
      throw new InputError('tooLarge', '-', `stdin is too large: at most ${INPUT_BYTES_MAX} bytes fit.`);
  }
  const whole = Buffer.concat(pieces);
  const text = whole.toString('utf8');
  if (!Buffer.from(text).equals(whole))
    throw new InputError('notText', '-', 'stdin is not text in UTF-8: convert it first.');
  return { text, name: 'stdin' };
};

const sourcesOf = async (contexts: readonly string[]): Promise<readonly InputSource[]> => {
  await findInputs(contexts.filter((name) => name !== '-'));
  return Promise.all(contexts.map(async (name) => (name === '-' ? readStdin() : { path: name })));
};

// ---- Which run ----

/** Id of the run to resume; null for a new run. */
const chosenRun = async (flags: AskFlags, workspace: string): Promise<string | null> => {
  if (flags.resume !== undefined) return findSession(flags.resume);
  if (!flags.continue) {
    refuseTakeOver(flags);
    return null;
  }
  const last = await lastSession('ask', workspace);
  if (last !== null) return last;
  throw new Stop(exitCodes.badInput, 'notFound', `There is no run of pawl ask in ${workspace} to continue.`);
};

const refuseFrozen = (flags: AskFlags, words: readonly string[]): void => {
  const [flag] = frozenFlags(flags);
  if (flag !== undefined)
    throw usageStop(`Can't change ${flag} of a resumed run. Leave it out, or start a new run.`);
  if (words.length > 0)
    throw usageStop("Can't change the question of a resumed run. Leave it out, or start a new run.");
};

// ---- Opening ----

const asStop = (error: unknown): unknown => {
  if (error instanceof InputError)
    return new Stop(exitCodes.badInput, error.kind === 'changed' ? 'changed' : 'badInput', error.message);
  if (error instanceof EnvironmentUnavailable)
    return new Stop(exitCodes.configuration, 'environment', error.message);
  return error;
};

type AllFlags = AskFlags & Configured;

const connect = async (wanted: string | undefined, flags: AllFlags, warn: Warn): Promise<Model> => {
  const model = await connectModel(wanted, flags, process.cwd());
  warnOfUnknown(model, warn);
  warnOfEffort(model, effortOf(flags), warn);
  return model;
};

/** The models of a run: of a resumed run those it began with (`before`), else those of the flags. */
const connectBoth = async (flags: AllFlags, before: AskSettings | null, warn: Warn) => {
  const wanted = before?.model ?? flags.model;
  const model = await connect(wanted, flags, warn);
  const sub = before?.subModel ?? flags.subModel;
  return { model, subModel: sub === undefined || sub === model.id ? model : await connect(sub, flags, warn) };
};

const refuseUnpriced = (models: readonly Model[], usd: Limit | undefined): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || !isLimited(usd)) return;
  const message = `The price of ${unknown.id} is unknown, so --max-usd has no effect. Limit the run with --max-tokens, --max-iterations or --max-minutes.`;
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

const makeAsker = async (flags: AllFlags, before: AskSettings | null, folder: string, warn: Warn) => {
  const models = await connectBoth(flags, before, warn);
  refuseUnpriced(Object.values(models), (before ?? askSettingsOf(flags)).limits?.usd);
  const effort = effortOf(flags);
  return createAsker({
    ...models,
    ...(effort === null ? {} : { effort }),
    secrets: keysIn(flags.variables ?? {}),
    journals: fileAskJournals({ folder }),
    report: (fault) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
  });
};

type Words = { readonly flags: AllFlags; readonly words: readonly string[]; readonly workspace: string };

const openAgain = async (id: string, given: Words, { watcher, warn }: OpeningRun) => {
  refuseFrozen(given.flags, given.words);
  const limits = changedLimitsOf(given.flags);
  const flags = await withConfig(given.flags, given.workspace, { command: 'ask', resumed: true, warn });
  const folder = openStateFolder(process.env);
  const { header } = await fileAskJournals({ folder }).inspect(id);
  const { settings } = header;
  const before = { ...settings, limits: { ...settings.limits, ...limits } };
  const asker = await makeAsker(flags, before, folder, warn);
  const takeOver = given.flags.takeOver === true;
  return asker.resume(id, { watcher, takeOver, ...(limits === null ? {} : { limits }) });
};

/** Opens a new run. Checks the command line before configuration, files and models, so that its errors come first. */
const openNew = async ({ flags: given, words, workspace }: Words, { watcher, warn }: OpeningRun) => {
  const { question, contexts } = readAsked(given.context ?? [], words);
  for (const read of [askSettingsOf, environmentOf, effortOf]) read(given);
  const flags = await withConfig(given, workspace, { command: 'ask', resumed: false, warn });
  const [own, environment] = [askSettingsOf(flags), environmentOf(flags)];
  const folder = openStateFolder(process.env);
  const sources = await sourcesOf(contexts);
  const { cellMs } = flags;
  const cellDeadline = cellMs === undefined ? {} : { cellDeadlineMs: Number(cellMs) };
  const settings = { ...patience(flags), ...own, ...cellDeadline };
  return (await makeAsker(flags, null, folder, warn)).ask({
    question,
    contexts: sources,
    workspace,
    settings,
    watcher,
    ...(environment === null ? {} : { environment }),
  });
};

/** Opens the run that flags and words ask for. Known errors are thrown as `Stop`. */
export const openAsked = async (
  flags: AskFlags,
  words: readonly string[],
  opening: OpeningRun,
): Promise<OpenedRun> => {
  try {
    const workspace = realWorkspace(process.cwd());
    const resume = await chosenRun(flags, workspace);
    const given = { flags, words, workspace };
    const run = await (resume === null ? openNew(given, opening) : openAgain(resume, given, opening));
    const journal = journalPath(openStateFolder(process.env), run.id);
    return { run, journal, workspace, resumed: resume !== null };
  } catch (error) {
    throw asStop(error);
  }
};
