/**
 * From an id, `provider/name`, to a model: its provider, address and key, its facts, and the
 * adapter of its wire, which is the API that the provider speaks.
 *
 * From top to bottom: `chooseModel`; the messages if there is none; the facts about a model
 * (window, prices), from the catalogue or its server; and models that answer from a script.
 */

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { createFetch, type LeanFetch } from '../platform/http.js';
import { nearestWord } from '../platform/text.js';
import { asText, type Loose, listIn, objectIn } from '../platform/untrusted-input.js';
import type { Model, ModelFacts } from '../ports/model.js';
import { anthropicModel } from './anthropic.js';
import {
  type CacheTtl,
  catalogueFacts,
  knownModels,
  listedFacts,
  modelsLike,
  nearestModel,
  thinksByItself,
  UNKNOWN,
} from './catalogue.js';
import { googleModel } from './google.js';
import { askServer } from './list-models.js';
import { compatibleModel } from './openai-compatible.js';
import { openAiModel } from './openai-responses.js';
import {
  DEFAULT_MODEL,
  exampleId,
  exampleModel,
  findEndpoint,
  findProvider,
  keyIn,
  keylessProvider,
  keyNames,
  type OwnProvider,
  type Provider,
  packageProviders,
  providerOfModel,
  providers,
  usualModel,
  type WireName,
} from './provider-table.js';
import { scriptedModel } from './scripted-model.js';
import type { AdapterOptions } from './wire-model.js';

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
    | 'noModel'
    | 'noPackage';
  readonly message: string;
};

export type ChosenModel = { readonly kind: 'ok'; readonly model: Model } | ModelProblem;

export type ChooseOptions = {
  /** Wins over the environment's. */
  readonly baseUrl?: string;
  /** Folder of relative script files; default the process's working directory. */
  readonly folder?: string;
  /** Whether summaries of a model's thoughts are asked for; default `on`. */
  readonly summaries?: 'on' | 'off';
  /**
   * How long the provider is to keep the cache of a request, where one can choose; default `5m`.
   * `auto`: an hour at the provider's usual address, since other servers may refuse it.
   */
  readonly cacheTtl?: CacheTtl | 'auto';
  /** Folders in which the user may have installed packages of the AI SDK. Default: none. */
  readonly packageFolders?: () => readonly string[];
  /** Providers that the user names, beside those of the table. */
  readonly ownProviders?: readonly OwnProvider[];
};

/**
 * The model of an id `provider/name`, or the usual one. The id of a script is absolute: a session
 * that is resumed in another folder finds the same script.
 */
export const chooseModel = async (
  id: string | undefined,
  environment: ProcessEnvironment,
  options: ChooseOptions = {},
): Promise<ChosenModel> => {
  const modelId = id ?? usualModel(environment).id;
  const slash = modelId.indexOf('/');
  const providerName = slash === -1 ? modelId : modelId.slice(0, slash);
  const name = slash === -1 ? '' : modelId.slice(slash + 1);
  const custom = options.ownProviders?.find((one) => one.name === providerName);
  const provider = findProvider(providerName) ?? custom;
  const packaged =
    provider === undefined ? packageProviders.find((one) => one.name === providerName) : undefined;
  if (packaged !== undefined && name !== '') {
    const { packageFolders: findFolders = () => [], baseUrl } = options;
    const folders = findFolders();
    const { packageModel } = await import('./package-models.js');
    return packageModel(packaged, name, { folders, environment, baseUrl });
  }
  if (provider === undefined && !packaged && providerName !== 'scripted')
    return unknownProvider(modelId, environment, options.ownProviders);
  if (name === '') {
    const example = custom === undefined ? exampleModel(providerName) : exampleId(custom);
    const such = packaged ? packaged.documentation : `e.g. ${example}`;
    const form = provider === undefined && !packaged ? 'FILE' : `NAME, ${such}`;
    return {
      kind: 'noName',
      message: `"${modelId}" names no model: write it as ${providerName}/${form}`,
    };
  }
  if (provider === undefined) return loadScript(name, options.folder ?? '');
  return connectModel(provider, name, environment, {
    ...options,
    ...(custom === undefined ? {} : { custom }),
  });
};

/** The model of a provider, once its address, key and facts are known. */
const connectModel = async (
  provider: Provider,
  name: string,
  environment: ProcessEnvironment,
  options: ChooseOptions & { readonly custom?: OwnProvider },
): Promise<ChosenModel> => {
  const { baseUrl, summaries = 'on', cacheTtl = '5m', custom } = options;
  const modelId = `${provider.name}/${name}`;
  if (provider.key === 'required' && keyIn(environment, keyNames(provider)) === null)
    return noKey(provider, modelId, environment);
  const endpoint = findEndpoint(provider, environment, baseUrl);
  if (endpoint.kind === 'badUrl') return endpoint;
  const { url, title, keyVariables } = endpoint;
  if (url === null) return noUrl(provider, modelId);
  const key = provider.key === 'unused' ? null : keyIn(environment, keyVariables);
  const apiKey = key === null ? {} : { apiKey: key };
  const fetch = createFetch(environment, custom?.headers);
  const ttl = cacheTtl === 'auto' ? (url === provider.address ? '1h' : '5m') : cacheTtl;
  const question = { modelId, name, url, fetch, cacheTtl: ttl, ...apiKey };
  const known =
    custom !== undefined && Object.hasOwn(custom.models, name) ? custom.models[name] : undefined;
  const answer: FactsAnswer =
    known === undefined
      ? await findFacts[provider.factsFrom](question)
      : { kind: 'ok', facts: known, baseUrl: url };
  if (answer.kind !== 'ok') return unanswered(provider, name, answer);
  const model = adapters[provider.wire]({
    modelId,
    name,
    ...apiKey,
    fetch,
    summaries,
    facts: answer.facts,
    providerName: title,
    baseUrl: answer.baseUrl,
    keyVariable:
      custom?.keyFrom ??
      keyVariables.find((variable) => keyIn(environment, [variable]) !== null) ??
      keyVariables[0],
    thinksByItself: thinksByItself(modelId),
  });
  return { kind: 'ok', model };
};

/** The adapter of each wire that the table of providers names. */
const adapters: Readonly<Record<WireName, (options: AdapterOptions) => Model>> = {
  'Anthropic Messages': anthropicModel,
  'OpenAI Responses': openAiModel,
  'Google Gemini API': googleModel,
  'Chat Completions': compatibleModel,
};

// ---- Messages ----

const DEMO = 'To see Pawl work without a key: pawl demo';

/** How many models a message suggests. */
const SUGGESTIONS_MAX = 3;

/** How to use another model: one that there is a key for, else of another provider, or without. */
const otherModels = (environment: ProcessEnvironment): string => {
  const ready = providers.find(
    ({ key, keyVariables }) => key === 'required' && keyIn(environment, keyVariables) !== null,
  );
  if (ready === undefined)
    return `Or use another provider (pawl models), or a model without a key: -m ${keylessProvider.name}/NAME`;
  const { name } = ready;
  const [first = exampleId(ready), ...others] = modelsLike(`${name}/`).slice(0, SUGGESTIONS_MAX);
  const more = others.length === 0 ? '' : ` (or ${others.join(', ')})`;
  return `There is one for ${name}: pawl -m ${first}${more}. pawl models ${name} lists its models.`;
};

const noKey = (
  { keyVariables, keysFrom }: Provider,
  id: string,
  environment: ProcessEnvironment,
): ModelProblem => {
  const [variable] = keyVariables;
  const source = keysFrom === null ? 'your key' : `a key from ${keysFrom}`;
  const message = [
    `No API key found for ${id}${id === DEFAULT_MODEL ? ', the usual model' : ''}.`,
    `Set ${variable} to ${source}: export ${variable}=…`,
    otherModels(environment),
    DEMO,
  ];
  return { kind: 'noKey', message: message.join('\n') };
};

const noUrl = ({ urlVariable, urlForm }: Provider, id: string): ModelProblem => {
  const needs =
    urlForm === 'resource'
      ? [`${id} needs the address of its resource.`, 'https://NAME.openai.azure.com']
      : [
          `${id} needs the address of its server, with the version at its end.`,
          'http://127.0.0.1:1234/v1',
        ];
  const message = [needs[0], `Say --base-url ${needs[1]}, or set ${urlVariable}.`, DEMO];
  return { kind: 'noUrl', message: message.join('\n') };
};

const noServer = ({ ownServer, urlVariable }: Provider, url: string, why: string): ModelProblem => {
  const { noun, howToStart } = ownServer ?? { noun: 'server', howToStart: 'Try again later' };
  const advice = `${howToStart}, or say where it is: ${urlVariable} or --base-url.`;
  return {
    kind: 'noServer',
    message: [`No ${noun} answers at ${url} (${why}).`, advice, DEMO].join('\n'),
  };
};

const noModel = (
  { title, ownServer }: Provider,
  name: string,
  url: string,
  others: readonly string[],
): ModelProblem => {
  const there = others.length === 0 ? 'It has none yet.' : `It has: ${others.join(', ')}.`;
  const fetchModel = ownServer?.fetchModel ?? null;
  const message = [
    `${title} at ${url} has no model "${name}". ${there}`,
    ...(fetchModel === null ? [] : [`Fetch it: ${fetchModel} ${name}`]),
    DEMO,
  ];
  return { kind: 'noModel', message: message.join('\n') };
};

/** Models that a name without a provider may mean, those that there is a key for first. */
const modelsNamed = (name: string, environment: ProcessEnvironment): readonly string[] => {
  const maker = providers.find(({ modelNames }) => modelNames?.test(name))?.name;
  const ofMaker = maker === undefined ? undefined : nearestModel(`${maker}/${name}`);
  const like = modelsLike(name);
  const known = ofMaker === undefined || like.includes(ofMaker) ? like : [ofMaker, ...like];
  const ready = known.filter(
    (id) => keyIn(environment, providerOfModel(id)?.keyVariables ?? []) !== null,
  );
  if (known.length > 0) return ready.length > 0 ? ready : known;
  if (maker !== undefined) return [`${maker}/${name}`]; // newer than the catalogue
  return knownModels().filter(
    (id) => nearestWord(name, [id.slice(id.indexOf('/') + 1)]) !== undefined,
  );
};

const unknownProvider = (
  modelId: string,
  environment: ProcessEnvironment,
  custom: readonly OwnProvider[] = [],
): ModelProblem => {
  const names = [...custom, ...providers, ...packageProviders].map(({ name }) => name);
  const at = modelId.indexOf('/');
  const meant = at < 0 ? undefined : nearestWord(modelId.slice(0, at), names);
  const like =
    meant === undefined
      ? modelsNamed(modelId, environment).slice(0, SUGGESTIONS_MAX)
      : [`${meant}${modelId.slice(at)}`];
  const question = like.length === 0 ? '' : ` Did you mean ${like.join(', ')}?`;
  const fault =
    at < 0
      ? `"${modelId}" names no provider: write PROVIDER/MODEL.`
      : `There is no provider "${modelId.slice(0, at)}".`;
  const message = `${fault} There are ${names.join(', ')} and scripted/FILE.${question}`;
  return { kind: 'unknownProvider', message };
};

/** The message for a server without facts. */
const unanswered = (provider: Provider, name: string, answer: Unanswered): ModelProblem =>
  answer.kind === 'noServer'
    ? noServer(provider, answer.url, answer.why)
    : noModel(provider, name, answer.url, answer.others);

/*
 * ---- Facts about a model: from the catalogue, or from the server that runs it ----
 *
 * They are read once, before the first call.
 *
 * 1. A server that says nothing about a model, or not soon, leaves it unknown; only a missing
 *    server is a problem. Ollama must answer, since only it knows the window.
 * 2. Ollama cuts prompts at its context length without a word: the length it runs the model
 *    with is the window, never the length that the model could have.
 */

/** What is needed to find the facts. */
type Question = {
  readonly modelId: string;
  /** Name of the model at its server. */
  readonly name: string;
  readonly url: string;
  readonly fetch: LeanFetch;
  readonly apiKey?: string;
  /** How long the provider is to keep caches, if it is one that can be told. */
  readonly cacheTtl?: CacheTtl;
};

type FoundFacts = {
  readonly kind: 'ok';
  readonly facts: ModelFacts;
  /** Address for calls of the model. */
  readonly baseUrl: string;
};

type Unanswered =
  | { readonly kind: 'noServer'; readonly url: string; readonly why: string }
  /** The server has no such model, but others. */
  | { readonly kind: 'noModel'; readonly url: string; readonly others: readonly string[] };

type FactsAnswer = FoundFacts | Unanswered;

/** A number above 0, or null. */
const positive = (value: unknown): number | null => {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && Number.isFinite(count) && count > 0 ? count : null;
};

/** Dollars for a million tokens, from dollars for one. */
const dollars = (value: unknown): number | null => {
  const perToken = typeof value === 'string' ? Number(value) : Number.NaN;
  // Rounded, since a price per token is a long fraction.
  return Number.isFinite(perToken) && perToken >= 0 ? Math.round(perToken * 1e12) / 1e6 : null;
};

/** OpenRouter names prices in its list, in dollars per token. */
const pricesIn = (model: Loose): ModelFacts['prices'] => {
  const listed = objectIn(model, 'pricing');
  const input = dollars(listed.prompt);
  const output = dollars(listed.completion);
  if (input === null || output === null) return null;
  const cacheRead = dollars(listed.input_cache_read) ?? input;
  return { input, output, cacheRead, cacheWrite: dollars(listed.input_cache_write) ?? input };
};

const listedName = ({ name, model }: Loose): string => asText(name) ?? asText(model) ?? '';

/**
 * OpenRouter tells it with each model, llama.cpp in a second list in Ollama's form, other servers
 * not at all.
 */
const imagesIn = (model: Loose, listed: Loose | undefined): Pick<ModelFacts, 'images'> => {
  const modalities = objectIn(model, 'architecture').input_modalities;
  const capabilities = listed?.capabilities;
  if (Array.isArray(modalities)) return { images: modalities.includes('image') ? 'yes' : 'no' };
  if (Array.isArray(capabilities))
    return { images: capabilities.includes('multimodal') ? 'yes' : 'no' };
  return {};
};

/** What the list says, with `known` for what it does not say. */
const factsFrom = (
  model: Loose,
  listed: Loose | undefined,
  source: string,
  known: ModelFacts,
): ModelFacts => {
  const images = imagesIn(model, listed);
  const served = objectIn(model, 'top_provider');
  const possible =
    positive(model.max_model_len) ??
    positive(model.loaded_context_length) ??
    positive(objectIn(model, 'meta').n_ctx) ??
    positive(model.context_length);
  // A fee for each request is no price of tokens.
  const hasFee = (dollars(objectIn(model, 'pricing').request) ?? 0) > 0;
  const prices = hasFee ? null : (pricesIn(model) ?? known.prices);
  if (possible === null) return { ...known, ...images, prices };
  // OpenRouter: the serving provider may give less than the window of the model.
  const window = Math.min(possible, positive(served.context_length) ?? possible);
  const output = positive(served.max_completion_tokens) ?? known.outputTokensMax;
  // above the known window every token may cost more
  const windowTokens = known.source === null ? window : Math.min(window, known.windowTokens);
  return {
    ...known,
    ...images,
    windowTokens,
    outputTokensMax: Math.min(output, Math.floor(windowTokens / 2)),
    prices,
    source: known.source === null ? source : `${source}; ${known.source}`,
  };
};

/** Looks for the model in the list of a Chat Completions server. */
const askModelList = async (question: Question): Promise<FactsAnswer> => {
  const { fetch, url, name, apiKey, modelId } = question;
  const answer = await askServer(fetch, `${url}/models`, {
    ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
  });
  const facts = listedFacts(modelId) ?? UNKNOWN;
  const unknown: FoundFacts = { kind: 'ok', facts, baseUrl: url };
  if ('why' in answer) return answer.isGone ? { kind: 'noServer', url, why: answer.why } : unknown;
  const model = listIn(answer.json.data).find(({ id }) => id === name);
  if (model === undefined) return unknown;
  const listed = listIn(answer.json.models).find((entry) => listedName(entry) === name);
  const source = `${url}/models, asked at the start`;
  return { ...unknown, facts: factsFrom(model, listed, source, facts) };
};

/** Window of a model that is not loaded and sets no length: Ollama decides by its memory. */
const ASSUMED_WINDOW = 32_768;

/** The window, and whether the server says so. `isElsewhere`: the model runs in Ollama's cloud. */
const ollamaWindow = (
  shown: Loose,
  loaded: Loose | undefined,
  isElsewhere: boolean,
): [number, boolean] => {
  const info = objectIn(shown, 'model_info');
  const key = Object.keys(info).find((name) => name.endsWith('.context_length')) ?? '';
  const most = positive(info[key]) ?? ASSUMED_WINDOW;
  const set = positive(/^num_ctx\s+(\d+)/m.exec(asText(shown.parameters) ?? '')?.[1]);
  const running = positive(loaded?.context_length);
  const known = running ?? set ?? (isElsewhere ? most : null);
  return known === null ? [Math.min(most, ASSUMED_WINDOW), false] : [Math.min(known, most), true];
};

const isNamed = (model: Loose, name: string): boolean =>
  [name, `${name}:latest`].includes(listedName(model));

const ollamaFacts = (shown: Loose, loaded: Loose | undefined, host: string): ModelFacts => {
  const isElsewhere = asText(shown.remote_host) !== null;
  const [windowTokens, isSaid] = ollamaWindow(shown, loaded, isElsewhere);
  const capabilities = Array.isArray(shown.capabilities) ? shown.capabilities : null;
  const thinks = capabilities?.includes('thinking') === true;
  return {
    windowTokens,
    outputTokensMax: Math.min(UNKNOWN.outputTokensMax, Math.floor(windowTokens / 2)),
    thinking: thinks ? 'yes' : 'no',
    effort: thinks ? 'levels' : 'none',
    tools: capabilities?.includes('tools') === false ? 'no' : 'yes',
    images: capabilities?.includes('vision') === true ? 'yes' : 'no',
    // The user's machine charges nothing. Ollama's cloud is paid for by a plan, whose price it does
    // not say.
    prices: isElsewhere ? null : { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    source: isSaid ? `${host}/api, asked at the start` : null,
  };
};

/** Asks Ollama for the model, and with which window it runs. */
const askOllama = async ({ fetch, url, name }: Question): Promise<FactsAnswer> => {
  const host = url.replace(/\/v1$/, '');
  const answer = await askServer(fetch, `${host}/api/show`, { body: { model: name } });
  if ('why' in answer) return { kind: 'noServer', url: host, why: answer.why };
  if (answer.status === 404) {
    const tags = await askServer(fetch, `${host}/api/tags`);
    const others = 'json' in tags ? listIn(tags.json.models).map(listedName) : [];
    return { kind: 'noModel', url: host, others };
  }
  const running = await askServer(fetch, `${host}/api/ps`);
  const loaded =
    'json' in running
      ? listIn(running.json.models).find((model) => isNamed(model, name))
      : undefined;
  return { kind: 'ok', facts: ollamaFacts(answer.json, loaded, host), baseUrl: `${host}/v1` };
};

/** Each way to find the facts that the table of providers names. */
export const findFacts: Readonly<
  Record<Provider['factsFrom'], (question: Question) => FactsAnswer | Promise<FactsAnswer>>
> = {
  catalogue: ({ modelId, url, cacheTtl }) => ({
    kind: 'ok',
    facts: catalogueFacts(modelId, undefined, cacheTtl),
    baseUrl: url,
  }),
  modelList: askModelList,
  ollama: askOllama,
};

// ---- Scripts ----

type BadScript = { readonly kind: 'badScript'; readonly message: string };

const badScript = (file: string, why: string): BadScript => ({
  kind: 'badScript',
  message: `The script ${file} cannot be used: ${why}`,
});

/**
 * The model that answers from a JSON file; its id names the whole path, so that a resumed session
 * finds the same script.
 */
export const loadScript = async (
  name: string,
  folder: string,
): Promise<{ readonly kind: 'ok'; readonly model: Model } | BadScript> => {
  const file = path.resolve(folder, name);
  let json: unknown;
  try {
    json = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    return badScript(file, error instanceof Error ? error.message : String(error));
  }
  const { parseScript } = await import('./script-format.js');
  const parsed = parseScript(json);
  if (parsed.kind === 'invalid') return badScript(file, `${parsed.field}: ${parsed.why}`);
  return { kind: 'ok', model: scriptedModel(parsed.script, { id: `scripted/${file}` }) };
};
