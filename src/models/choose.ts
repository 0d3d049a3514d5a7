import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Model, ModelFacts } from '../needs.js';
import type { Environment } from '../net/proxy.js';
import { addressOf, type Hosted, hosted, keyIn, ollamaHost, serverAt } from './addresses.js';
import { anthropicModel } from './anthropic.js';
import { DEFAULT_MODEL, factsOf, modelsLike, thinksByItself } from './catalogue.js';
import { compatibleModel } from './compatible.js';
import { googleModel } from './google.js';
import { createFetch } from './http.js';
import { askCompatible, askOllama } from './local.js';
import { openAiModel } from './openai.js';
import { scriptedModel } from './scripted.js';

/** Why there is no model; `message` is for the user and says what to do. */
export type ModelProblem = {
  readonly kind:
    | 'noKey'
    | 'unknownProvider'
    | 'badScript'
    | 'badUrl'
    | 'noUrl'
    | 'noName'
    | 'noServer'
    | 'noModel';
  readonly message: string;
};

export type ChosenModel = { readonly kind: 'ok'; readonly model: Model } | ModelProblem;

export type ChooseOptions = {
  /** Wins over the environment's. */
  readonly baseUrl?: string;
  /** What a relative script file is relative to; default the process's working directory. */
  readonly folder?: string;
};

const DEMO = 'To see Pawl work without a key: pawl demo';

type Wanted = {
  readonly name: string;
  readonly environment: Environment;
  readonly options: ChooseOptions;
};

type Connected = {
  readonly name: string;
  readonly apiKey: string;
  readonly baseUrl?: string;
  readonly facts: ModelFacts;
  readonly fetch: ReturnType<typeof createFetch>;
};

/** How many models are offered in place of one that is none. */
const LIKE_MAX = 3;

const HOSTED: readonly Hosted[] = ['anthropic', 'openai', 'google'];

/** What could be had instead at once: models that there is a key for, else one on this machine. */
const instead = (environment: Environment): string => {
  const ready = HOSTED.find((provider) => keyIn(environment, hosted[provider].keys) !== null);
  if (ready === undefined) return 'ollama/NAME needs no key';
  return `there is a key for ${modelsLike(`${ready}/`).slice(0, LIKE_MAX).join(', ')}`;
};

const chooseHosted = (
  provider: Hosted,
  { name, environment, options }: Wanted,
  connect: (connected: Connected, id: string) => Model,
): ChosenModel => {
  const id = `${provider}/${name}`;
  const { keys, keysFrom } = hosted[provider];
  const apiKey = keyIn(environment, keys);
  if (apiKey === null) {
    const message = [
      `There is no key for ${id}.`,
      `Set ${keys[0]} to a key from ${keysFrom}: export ${keys[0]}=…`,
      `Or take another model: --model PROVIDER/NAME (${instead(environment)}).`,
      DEMO,
    ].join('\n');
    return { kind: 'noKey', message };
  }
  const address = addressOf(provider, environment, options.baseUrl);
  if (address.kind === 'badUrl') return address;
  const baseUrl = address.url === null ? {} : { baseUrl: address.url };
  const connected = { name, apiKey, ...baseUrl, facts: factsOf(id), fetch: createFetch(environment) };
  return { kind: 'ok', model: connect(connected, id) };
};

const nobody = (what: string, url: string, why: string, advice: string): ModelProblem => ({
  kind: 'noServer',
  message: [`No ${what} answers at ${url} (${why}).`, advice, DEMO].join('\n'),
});

const chooseOllama = async ({ name, environment, options }: Wanted): Promise<ChosenModel> => {
  const address = ollamaHost(environment, options.baseUrl);
  if (address.kind === 'badUrl') return address;
  const host = address.url;
  const fetch = createFetch(environment);
  const asked = await askOllama(fetch, host, name);
  if (asked.kind === 'nobody') {
    const advice = 'Start it with "ollama serve", or say where it is: OLLAMA_HOST or --base-url.';
    return nobody('Ollama server', host, asked.why, advice);
  }
  if (asked.kind === 'noModel') {
    const there = asked.others.length === 0 ? 'It has none yet.' : `It has: ${asked.others.join(', ')}.`;
    const message = [
      `Ollama at ${host} has no model "${name}". ${there}`,
      `Fetch it: ollama pull ${name}`,
      DEMO,
    ];
    return { kind: 'noModel', message: message.join('\n') };
  }
  const model = compatibleModel({
    name,
    modelId: `ollama/${name}`,
    providerName: 'Ollama',
    baseUrl: `${host}/v1`,
    keyVariable: 'OLLAMA_API_KEY',
    facts: asked.facts,
    fetch,
  });
  return { kind: 'ok', model };
};

const chooseCompatible = async ({ name, environment, options }: Wanted): Promise<ChosenModel> => {
  const address = serverAt(environment, options.baseUrl);
  if (address.kind === 'badUrl') return address;
  if (address.url === null) {
    const message = [
      `openai-compatible/${name} needs the address of its server, with the version at its end.`,
      'Say --base-url http://127.0.0.1:1234/v1, or set OPENAI_COMPATIBLE_BASE_URL.',
      DEMO,
    ].join('\n');
    return { kind: 'noUrl', message };
  }
  const { url: baseUrl, keyVariable, providerName } = address;
  const apiKey = keyIn(environment, [keyVariable]) ?? undefined;
  const fetch = createFetch(environment);
  const asked = await askCompatible(fetch, baseUrl, name, apiKey);
  if (asked.kind === 'nobody') {
    return nobody('server', baseUrl, asked.why, 'Start it, or say where it is: --base-url.');
  }
  const model = compatibleModel({
    name,
    modelId: `openai-compatible/${name}`,
    providerName,
    baseUrl,
    keyVariable,
    ...(apiKey === undefined ? {} : { apiKey }),
    facts: asked.facts,
    fetch,
  });
  return { kind: 'ok', model };
};

const badScript = (file: string, why: string): ModelProblem => ({
  kind: 'badScript',
  message: `The script ${file} cannot be used: ${why}`,
});

const chooseScripted = async ({ name, options }: Wanted): Promise<ChosenModel> => {
  const file = path.resolve(options.folder ?? '', name);
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
  return { kind: 'ok', model: scriptedModel(parsed.script, { id: `scripted/${file}` }) };
};

type Choose = (wanted: Wanted) => ChosenModel | Promise<ChosenModel>;

const providers: Readonly<Record<string, Choose>> = {
  anthropic: (wanted) =>
    chooseHosted('anthropic', wanted, (connected, id) =>
      anthropicModel({ ...connected, ...(thinksByItself(id) ? { thinking: 'summarized' } : {}) }),
    ),
  openai: (wanted) => chooseHosted('openai', wanted, openAiModel),
  google: (wanted) => chooseHosted('google', wanted, googleModel),
  'openai-compatible': chooseCompatible,
  ollama: chooseOllama,
  scripted: chooseScripted,
};

const FORMS = Object.keys(providers)
  .map((provider) => `${provider}/${provider === 'scripted' ? 'FILE' : 'NAME'}`)
  .join(', ');

const MEANT: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, 'anthropic'],
  [/^(gpt-|o\d)/, 'openai'],
  [/^gemini-/, 'google'],
];

const unknownProvider = (wanted: string, provider: string): ModelProblem => {
  const meant = MEANT.find(([pattern]) => pattern.test(wanted))?.[1];
  const like = meant === undefined ? modelsLike(wanted).slice(0, LIKE_MAX) : [`${meant}/${wanted}`];
  const question = like.length === 0 ? '' : ` Did you mean ${like.join(', ')}?`;
  const message = `There is no provider "${provider}". There are ${FORMS}.${question}`;
  return { kind: 'unknownProvider', message };
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
  const choose = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  if (choose === undefined) return unknownProvider(wanted, provider);
  if (name === '') {
    return {
      kind: 'noName',
      message: `"${wanted}" names no model: write it as ${provider}/NAME, e.g. ${modelsLike(`${provider}/`)[0] ?? DEFAULT_MODEL}`,
    };
  }
  return choose({ name, environment, options });
};
