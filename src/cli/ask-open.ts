import { statSync } from 'node:fs';
import { type AskRun, createAsker, EnvironmentUnavailable } from '../ask-api.js';
import { fileAskJournals } from '../journal/ask.js';
import { fileBlobs } from '../journal/blobs.js';
import { blobPath, journalPath } from '../journal/layout.js';
import type { Model, Watcher } from '../needs.js';
import type { AskSettings, AskTypes } from '../needs-recursive.js';
import { findInputs, INPUT_BYTES_MAX, InputError, type InputSource } from '../runtime/recursive/inputs.js';
import { oneLine } from '../terminal/print.js';
import { type AskFlags, askSettingsOf, environmentOf, frozenFlags } from './ask-flags.js';
import { type Configured, withConfig } from './configured.js';
import { connectModel, patience, realWorkspace, type Warn, warnOfUnknown } from './connect-model.js';
import { exitCodes, Stop } from './exit-codes.js';
import { usageStop } from './flags.js';
import { openStateFolder } from './state-folder.js';
import { findSession, sessionsOf } from './stored.js';

/** From flags, words and environment to an open run. */

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

export type Asked = { readonly question: string; readonly contexts: readonly string[] };

/**
 * Question and inputs. The shell's `--context *.txt "question"` reads as one list, so that its last word is the question
 * where no other words are; unless it names a file, which then was forgotten a question.
 */
export const readAsked = (context: readonly string[], words: readonly string[]): Asked => {
  const last = words.length === 0 ? context.at(-1) : undefined;
  const question = (last ?? words.join(' ')).trim();
  const contexts = last === undefined ? context : context.slice(0, -1);
  const example = 'pawl ask --context FILE "question"';
  if (question === '' || (last !== undefined && (last === '-' || isFile(last))))
    throw usageStop(`There is no question: ${example}`);
  if (contexts.length === 0) throw usageStop(`There is nothing to ask about: ${example}`);
  if (contexts.filter((name) => name === '-').length > 1)
    throw usageStop('stdin can be read once: give - once.');
  return { question, contexts };
};

/** All of stdin, kept as a blob: a run that goes on finds it there. */
const keepStdin = async (folder: string): Promise<InputSource> => {
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
  if (text.includes('\0') || !Buffer.from(text).equals(whole))
    throw new InputError('notText', '-', 'stdin is not text in UTF-8: convert it first.');
  return { path: blobPath(folder, await fileBlobs(folder).put(text)), name: 'stdin' };
};

const sourcesOf = async (contexts: readonly string[], folder: string): Promise<readonly InputSource[]> => {
  await findInputs(contexts.filter((name) => name !== '-').map((path) => ({ path })));
  return Promise.all(contexts.map(async (name) => (name === '-' ? keepStdin(folder) : { path: name })));
};

// ---- Which run ----

/** The run that the flags ask to go on with, or null for a new one. */
const chosenRun = async (flags: AskFlags, workspace: string): Promise<string | null> => {
  if (flags.resume !== undefined) return findSession(flags.resume);
  if (!flags.continue) return null;
  const last = (await sessionsOf('ask')).find((info) => info.workspace === workspace);
  if (last !== undefined) return last.sessionId;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    `There is no run of pawl ask in ${workspace} to go on with.`,
  );
};

const refuseFrozen = (flags: AskFlags, words: readonly string[]): void => {
  const [flag] = frozenFlags(flags);
  if (flag !== undefined) throw usageStop(`A run goes on as it began: leave out ${flag}, or ask anew.`);
  if (words.length > 0)
    throw usageStop('A run goes on with its own question: leave out the other, or ask anew.');
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
  return model;
};

/** The models of a run: those that it began with, or those of the flags. */
const connectBoth = async (flags: AllFlags, before: AskSettings | null, warn: Warn) => {
  const wanted = before?.model ?? flags.model;
  const model = await connect(wanted, flags, warn);
  const sub = before?.subModel ?? flags.subModel;
  return { model, subModel: sub === undefined || sub === model.id ? model : await connect(sub, flags, warn) };
};

const refuseUnpriced = (models: readonly Model[], usd: number): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || usd === 0) return;
  const message = `The price of ${unknown.id} is unknown, so --max-usd can't be kept. Limit the run by --max-tokens, --max-iterations or --max-minutes.`;
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

const makeAsker = async (flags: AllFlags, before: AskSettings | null, folder: string, warn: Warn) => {
  const models = await connectBoth(flags, before, warn);
  refuseUnpriced(Object.values(models), (before ?? askSettingsOf(flags)).limits?.usd ?? 0);
  return createAsker({
    ...models,
    journals: fileAskJournals({ folder }),
    report: (fault) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
  });
};

type Words = { readonly flags: AllFlags; readonly words: readonly string[]; readonly workspace: string };

const openAgain = async (id: string, given: Words, { watcher, warn }: OpeningRun) => {
  refuseFrozen(given.flags, given.words);
  const flags = await withConfig(given.flags, given.workspace, { command: 'ask', resumed: true, warn });
  const folder = openStateFolder(process.env);
  const { header } = await fileAskJournals({ folder }).inspect(id);
  return (await makeAsker(flags, header.settings, folder, warn)).resume(id, watcher);
};

/** What is wrong on the command line is said before what is wrong around it. */
const openNew = async ({ flags: given, words, workspace }: Words, { watcher, warn }: OpeningRun) => {
  const { question, contexts } = readAsked(given.context ?? [], words);
  for (const read of [askSettingsOf, environmentOf]) read(given);
  const flags = await withConfig(given, workspace, { command: 'ask', resumed: false, warn });
  const [own, environment] = [askSettingsOf(flags), environmentOf(flags)];
  const folder = openStateFolder(process.env);
  const sources = await sourcesOf(contexts, folder);
  const { cellMs } = flags;
  const cellDeadline = cellMs === undefined ? {} : { cellDeadlineMs: Number(cellMs) };
  const settings = { ...patience(flags), ...own, ...cellDeadline };
  return (await makeAsker(flags, null, folder, warn)).ask({
    ...{ question, contexts: sources, workspace, settings, watcher },
    ...(environment === null ? {} : { environment }),
  });
};

/** Opens what flags and words ask for. */
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
