import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Model } from '../needs.js';
import { anthropicModel } from './anthropic.js';
import { DEFAULT_MODEL, factsOf, thinksByItself } from './catalogue.js';
import { createFetch } from './http.js';
import type { Environment } from './proxy.js';
import { scriptedModel } from './scripted.js';

/** Why there is no model; `message` is for the user and says what to do. */
export type ModelProblem = {
  readonly kind: 'noKey' | 'unknownProvider' | 'badScript' | 'badUrl' | 'noName';
  readonly message: string;
};

export type ChosenModel = { readonly kind: 'ok'; readonly model: Model } | ModelProblem;

export type ChooseOptions = {
  /** Wins over the environment's. */
  readonly baseUrl?: string;
  /** What a relative script file is relative to; default the process's working directory. */
  readonly folder?: string;
};

const SCRIPTED = 'scripted/';

const chooseAnthropic = (name: string, environment: Environment, options: ChooseOptions): ChosenModel => {
  const apiKey = environment.ANTHROPIC_API_KEY?.trim() ?? '';
  if (apiKey === '') {
    const message = [
      `There is no key for anthropic/${name}.`,
      'Set ANTHROPIC_API_KEY to a key from https://platform.claude.com, or choose another model with --model.',
      'To see Pawl work without a key: pawl demo',
    ].join('\n');
    return { kind: 'noKey', message };
  }
  const baseUrl = options.baseUrl || environment.ANTHROPIC_BASE_URL || undefined;
  if (baseUrl !== undefined && !/^https?:$/.test(URL.canParse(baseUrl) ? new URL(baseUrl).protocol : '')) {
    const source = options.baseUrl ? '--base-url' : 'ANTHROPIC_BASE_URL';
    return { kind: 'badUrl', message: `${source} is no http or https URL: ${baseUrl}` };
  }
  const id = `anthropic/${name}`;
  const model = anthropicModel({
    name,
    apiKey,
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(thinksByItself(id) ? { thinking: 'summarized' as const } : {}),
    fetch: createFetch(environment),
    facts: factsOf(id),
  });
  return { kind: 'ok', model };
};

const badScript = (file: string, why: string): ModelProblem => ({
  kind: 'badScript',
  message: `The script ${file} cannot be used: ${why}`,
});

const chooseScripted = async (name: string, { folder = '' }: ChooseOptions): Promise<ChosenModel> => {
  const file = path.resolve(folder, name);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    return badScript(file, error instanceof Error ? error.message : String(error));
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return badScript(file, error instanceof Error ? error.message : String(error));
  }
  const { parseScript } = await import('./script-format.js');
  const parsed = parseScript(json);
  if (parsed.kind === 'invalid') return badScript(file, `${parsed.field}: ${parsed.why}`);
  return { kind: 'ok', model: scriptedModel(parsed.script, { id: `${SCRIPTED}${file}` }) };
};

/**
 * The model of an id `provider/name`, or the default one. Its own id is absolute: a session that is resumed in another
 * folder finds the same script.
 */
export const chooseModel = async (
  id: string | undefined,
  environment: Environment,
  options: ChooseOptions = {},
): Promise<ChosenModel> => {
  const wanted = id ?? DEFAULT_MODEL;
  const slash = wanted.indexOf('/');
  const provider = slash === -1 ? wanted : wanted.slice(0, slash);
  const name = slash === -1 ? '' : wanted.slice(slash + 1);
  const known = provider === 'anthropic' || provider === 'scripted';
  if (!known) {
    const meant = wanted.startsWith('claude-') ? ` Did you mean anthropic/${wanted}?` : '';
    const message = `There is no provider "${provider}". There are anthropic/NAME and scripted/FILE.${meant}`;
    return { kind: 'unknownProvider', message };
  }
  if (name === '') {
    return {
      kind: 'noName',
      message: `"${wanted}" names no model: write it as ${provider}/NAME, e.g. ${DEFAULT_MODEL}`,
    };
  }
  return provider === 'anthropic'
    ? chooseAnthropic(name, environment, options)
    : chooseScripted(name, options);
};
