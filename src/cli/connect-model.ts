import { realpathSync } from 'node:fs';
import type { Settings } from '../agent/settings.js';
import { chooseModel, type ModelProblem } from '../models/choose.js';
import type { Model } from '../needs.js';
import { type ExitCode, exitCodes, Stop } from './exit-codes.js';
import type { RunFlags } from './flags.js';

/** From flags and environment to a model: what every command needs that asks one. */

const exitOfProblem: Readonly<Record<ModelProblem['kind'], ExitCode>> = {
  noKey: exitCodes.configuration,
  unknownProvider: exitCodes.usage,
  noName: exitCodes.usage,
  badUrl: exitCodes.configuration,
  badScript: exitCodes.badInput,
};

/** The model of that name, or the default one. A relative script lies in `folder`. */
export const connectModel = async (
  wanted: string | undefined,
  flags: Pick<RunFlags, 'baseUrl'>,
  folder: string,
): Promise<Model> => {
  const options = flags.baseUrl === undefined ? { folder } : { folder, baseUrl: flags.baseUrl };
  const chosen = await chooseModel(wanted, process.env, options);
  if (chosen.kind !== 'ok') throw new Stop(exitOfProblem[chosen.kind], 'configuration', chosen.message);
  return chosen.model;
};

/** The real path of a folder that is there. */
export const realWorkspace = (folder: string): string => {
  try {
    return realpathSync(folder);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Stop(exitCodes.badInput, 'badInput', `The workspace ${folder} can't be opened: ${why}.`);
  }
};

/** Milliseconds from a variable of the environment, or nothing. */
export const readDuration = (name: string): number | undefined => {
  const text = process.env[name] ?? '';
  if (text === '') return undefined;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    `${name} is a number of milliseconds, not '${text}'.`,
  );
};

/** How long a model may keep silent: for slow local models, and for tests. */
export const patience = (): Partial<Pick<Settings, 'firstByteMs' | 'silenceMs'>> => {
  const firstByteMs = readDuration('PAWL_FIRST_BYTE_MS');
  const silenceMs = readDuration('PAWL_SILENCE_MS');
  return {
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...(silenceMs === undefined ? {} : { silenceMs }),
  };
};

/** Told of what stops nothing, in one line each: a model that is not known, a file that is not used. */
export type Warn = (text: string) => void;

export const warnOfUnknown = ({ id, facts }: Model, warn: Warn): void => {
  if (facts.source !== null) return;
  const [window, output] = [facts.windowTokens, facts.outputTokensMax].map((count) =>
    count.toLocaleString('en'),
  );
  const price = facts.prices === null ? ', and its price is unknown' : '';
  warn(
    `${id} is not in the catalogue: a window of ${window} tokens and replies of up to ${output} are assumed${price}.`,
  );
};
