/**
 * From an id, `provider/name`, to a model: its provider, address and key, its facts, and the
 * adapter of its wire, which is the API that the provider speaks.
 *
 * From top to bottom: `chooseModel`; the messages if there is none; and models that answer from a
 * script. model-facts.ts asks servers for the facts of a model (window, prices).
 */

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { createFetch } from '../platform/http.js';
import { nearestWord } from '../platform/text.js';
import type { Model } from '../ports/model.js';
import { anthropicModel } from './anthropic.js';
import {
  type CacheTtl,
  catalogueFacts,
  knownModels,
  modelsLike,
  nearestModel,
  thinksByItself,
} from './catalogue.js';
import { googleModel } from './google.js';
import {
  askModelList,
  askOllama,
  type FactsAnswer,
  type FactsQuestion,
  type NoFacts,
} from './model-facts.js';
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
  const userProvider = options.ownProviders?.find((one) => one.name === providerName);
  const provider = findProvider(providerName) ?? userProvider;
  // a provider of the table wins: another one's headers and models are not for its address
  const custom = provider === userProvider ? userProvider : undefined;
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

/**
 * The model of a provider, once its address, key and facts are known.
 *
 * Three lists of variables may hold a key: `provider.keyVariables`, which messages name;
 * `keyNames`, with those that other programs share; and those of the endpoint, since a server may
 * have another key.
 */
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
  const usualTtl = url === provider.address ? '1h' : '5m';
  const ttl = cacheTtl === 'auto' ? usualTtl : cacheTtl;
  const question = { modelId, name, url, fetch, cacheTtl: ttl, ...apiKey };
  const ownFacts =
    custom !== undefined && Object.hasOwn(custom.models, name) ? custom.models[name] : undefined;
  const answer: FactsAnswer =
    ownFacts === undefined
      ? await findFacts[provider.factsFrom](question)
      : { kind: 'ok', facts: ownFacts, baseUrl: url };
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

/** Where the facts of a model come from, by the words of the table of providers. */
const findFacts: Readonly<
  Record<Provider['factsFrom'], (question: FactsQuestion) => FactsAnswer | Promise<FactsAnswer>>
> = {
  catalogue: ({ modelId, url, cacheTtl }) => ({
    kind: 'ok',
    facts: catalogueFacts(modelId, undefined, cacheTtl),
    baseUrl: url,
  }),
  modelList: askModelList,
  ollama: askOllama,
};

// ---- Messages ----

const DEMO = 'To see Pawl work without a key: pawl demo';

/** How many models a message suggests. */
const SUGGESTIONS_MAX = 3;

/**
 * How to use another model: of a provider that there is a key for; else another provider, or a
 * model that needs no key.
 */
const otherModels = (environment: ProcessEnvironment): string => {
  const ready = providers.find(
    ({ address, key, keyVariables }) =>
      address !== null && key === 'required' && keyIn(environment, keyVariables) !== null,
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

/** Models that a name without a provider may mean; if there is a key for some, only those. */
const modelsNamed = (name: string, environment: ProcessEnvironment): readonly string[] => {
  const maker = providers.find(({ modelNames }) => modelNames?.test(name))?.name;
  const ofMaker = maker === undefined ? undefined : nearestModel(`${maker}/${name}`);
  const like = modelsLike(name);
  const inCatalogue = ofMaker === undefined || like.includes(ofMaker) ? like : [ofMaker, ...like];
  const ready = inCatalogue.filter(
    (id) => keyIn(environment, providerOfModel(id)?.keyVariables ?? []) !== null,
  );
  if (inCatalogue.length > 0) return ready.length > 0 ? ready : inCatalogue;
  if (maker !== undefined) return [`${maker}/${name}`]; // newer than the catalogue
  return knownModels().filter(
    (id) => nearestWord(name, [id.slice(id.indexOf('/') + 1)]) !== undefined,
  );
};

const unknownProvider = (
  modelId: string,
  environment: ProcessEnvironment,
  ownProviders: readonly OwnProvider[] = [],
): ModelProblem => {
  const names = [...ownProviders, ...providers, ...packageProviders].map(({ name }) => name);
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
const unanswered = (provider: Provider, name: string, answer: NoFacts): ModelProblem =>
  answer.kind === 'noServer'
    ? noServer(provider, answer.url, answer.why)
    : noModel(provider, name, answer.url, answer.others);

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
