import { realpathSync } from 'node:fs';
import type { Settings } from '../agent/settings.js';
import { chooseModel, type ModelProblem } from '../models/choose.js';
import type { Model } from '../needs.js';
import type { Configured } from './configured.js';
import { type ExitCode, exitCodes, Stop } from './exit-codes.js';
import { type PicturesWish, picturesOf, type RunFlags } from './flags.js';

/** From flags and environment to a model: what every command needs that asks one. */

const exitOfProblem: Readonly<Record<ModelProblem['kind'], ExitCode>> = {
  noKey: exitCodes.configuration,
  unknownProvider: exitCodes.usage,
  noName: exitCodes.usage,
  badUrl: exitCodes.configuration,
  noUrl: exitCodes.configuration,
  noModel: exitCodes.configuration,
  noServer: exitCodes.unavailable,
  badScript: exitCodes.badInput,
};

/** The model with what the user knows of it. */
const withPictures = (model: Model, pictures: PicturesWish): Model =>
  pictures === 'auto' ? model : { ...model, facts: { ...model.facts, images: pictures } };

/** The model of that name, or the default one. A relative script lies in `folder`. */
export const connectModel = async (
  wanted: string | undefined,
  flags: Pick<RunFlags, 'baseUrl' | 'pictures'> & Pick<Configured, 'variables'>,
  folder: string,
): Promise<Model> => {
  const options = flags.baseUrl === undefined ? { folder } : { folder, baseUrl: flags.baseUrl };
  const chosen = await chooseModel(wanted, { ...process.env, ...flags.variables }, options);
  if (chosen.kind !== 'ok') throw new Stop(exitOfProblem[chosen.kind], 'configuration', chosen.message);
  return withPictures(chosen.model, picturesOf(flags));
};

const providerIn = (modelId: string): string => modelId.slice(0, modelId.indexOf('/'));

/** Connects the models that come after the first. The address that the flags name is that of the first one's provider. */
export const connectOthers =
  (first: Model, flags: Parameters<typeof connectModel>[1], folder: string, warn: Warn) =>
  async (wanted: string): Promise<Model> => {
    const { baseUrl: _, ...elsewhere } = flags;
    const isThere = providerIn(wanted) === providerIn(first.id);
    const model = await connectModel(wanted, isThere ? flags : elsewhere, folder);
    warnOfUnknown(model, warn);
    return model;
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

/** How long a model may keep silent: for slow local models, and for tests. */
export const patience = ({
  firstByteMs,
  silenceMs,
}: Configured): Partial<Pick<Settings, 'firstByteMs' | 'silenceMs'>> => ({
  ...(firstByteMs === undefined ? {} : { firstByteMs: Number(firstByteMs) }),
  ...(silenceMs === undefined ? {} : { silenceMs: Number(silenceMs) }),
});

/** Told of what stops nothing, in one line each: a model that is not known, a file that is not used. */
export type Warn = (text: string) => void;

export const warnOfUnknown = ({ id, facts }: Model, warn: Warn): void => {
  if (facts.tools === 'no')
    warn(`${id} can't call tools, says its server: it can answer, and do nothing else.`);
  if (facts.source !== null) return;
  const [window, output] = [facts.windowTokens, facts.outputTokensMax].map((count) =>
    count.toLocaleString('en'),
  );
  const price = facts.prices === null ? ', and its price is unknown' : '';
  const assumed = `a window of ${window} tokens and replies of up to ${output} are assumed${price}.`;
  if (id.startsWith('ollama/')) {
    const advice = 'It cuts longer prompts without a word: start it with OLLAMA_CONTEXT_LENGTH=64000.';
    warn(`Ollama does not say how much context it gives ${id}: ${assumed} ${advice}`);
  } else warn(`${id} is not in the catalogue: ${assumed}`);
};
