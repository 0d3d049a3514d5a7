import type { ProcessEnvironment } from '../platform/base/process-environment-type.js';
import type { Model } from '../ports/model.js';
import { modelsLike, thinksByItself } from './catalogue.js';
import { endpointOf, keyIn } from './endpoint-and-key.js';
import { createFetch } from './http/node-fetch.js';
import {
  DEFAULT_MODEL,
  exampleModel,
  findProvider,
  keylessProvider,
  modelForms,
  type Provider,
  providers,
} from './provider-table.js';
import { adapters } from './providers/adapters.js';
import { findFacts, type Unanswered } from './providers/find-model-facts.js';
import { loadScript } from './scripted/load-script.js';

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
  /** Folder of relative script files; default the process's working directory. */
  readonly folder?: string;
  /** Whether summaries of a model's thoughts are asked for; default `on`. */
  readonly summaries?: 'on' | 'off';
};

const DEMO = 'To see Pawl work without a key: pawl demo';

/** How many models a message suggests. */
const SUGGESTIONS_MAX = 3;

/** Models that can be used at once: those that there is a key for, else one on this machine. */
const usableModels = (environment: ProcessEnvironment): string => {
  const ready = providers.find(
    ({ key, keyVariables }) => key === 'required' && keyIn(environment, keyVariables) !== null,
  );
  if (ready === undefined) return `${keylessProvider.name}/NAME needs no key`;
  return `there is a key for ${modelsLike(`${ready.name}/`).slice(0, SUGGESTIONS_MAX).join(', ')}`;
};

const noKey = (
  { keyVariables, keysFrom }: Provider,
  id: string,
  environment: ProcessEnvironment,
): ModelProblem => {
  const [variable] = keyVariables;
  const source = keysFrom === null ? 'your key' : `a key from ${keysFrom}`;
  const message = [
    `There is no key for ${id}.`,
    `Set ${variable} to ${source}: export ${variable}=…`,
    `Or take another model: --model PROVIDER/NAME (${usableModels(environment)}).`,
    DEMO,
  ];
  return { kind: 'noKey', message: message.join('\n') };
};

const noUrl = ({ urlVariable }: Provider, id: string): ModelProblem => ({
  kind: 'noUrl',
  message: [
    `${id} needs the address of its server, with the version at its end.`,
    `Say --base-url http://127.0.0.1:1234/v1, or set ${urlVariable}.`,
    DEMO,
  ].join('\n'),
});

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

const unanswered = (provider: Provider, name: string, found: Unanswered): ModelProblem =>
  found.kind === 'noServer'
    ? noServer(provider, found.url, found.why)
    : noModel(provider, name, found.url, found.others);

const connect = async (
  provider: Provider,
  name: string,
  environment: ProcessEnvironment,
  { baseUrl, summaries = 'on' }: ChooseOptions,
): Promise<ChosenModel> => {
  const modelId = `${provider.name}/${name}`;
  if (provider.key === 'required' && keyIn(environment, provider.keyVariables) === null)
    return noKey(provider, modelId, environment);
  const endpoint = endpointOf(provider, environment, baseUrl);
  if (endpoint.kind === 'badUrl') return endpoint;
  const { url, title, keyVariables } = endpoint;
  if (url === null) return noUrl(provider, modelId);
  const key = provider.key === 'unused' ? null : keyIn(environment, keyVariables);
  const apiKey = key === null ? {} : { apiKey: key };
  const fetch = createFetch(environment);
  const found = await findFacts[provider.factsFrom]({ modelId, name, url, fetch, ...apiKey });
  if (found.kind !== 'ok') return unanswered(provider, name, found);
  const model = adapters[provider.wire]({
    modelId,
    name,
    ...apiKey,
    fetch,
    summaries,
    facts: found.facts,
    providerName: title,
    baseUrl: found.baseUrl,
    keyVariable: keyVariables[0],
    thinksByItself: thinksByItself(modelId),
  });
  return { kind: 'ok', model };
};

const unknownProvider = (wanted: string, provider: string): ModelProblem => {
  const meant = providers.find(({ modelNames }) => modelNames?.test(wanted))?.name;
  const like = meant === undefined ? modelsLike(wanted).slice(0, SUGGESTIONS_MAX) : [`${meant}/${wanted}`];
  const question = like.length === 0 ? '' : ` Did you mean ${like.join(', ')}?`;
  const message = `There is no provider "${provider}". There are ${modelForms.join(', ')}.${question}`;
  return { kind: 'unknownProvider', message };
};

/**
 * The model of an id `provider/name`, or the default one. Its own id is absolute: a session that is resumed in another
 * folder finds the same script.
 */
export const chooseModel = async (
  id: string | undefined,
  environment: ProcessEnvironment,
  options: ChooseOptions = {},
): Promise<ChosenModel> => {
  const wanted = id ?? DEFAULT_MODEL;
  const slash = wanted.indexOf('/');
  const providerName = slash === -1 ? wanted : wanted.slice(0, slash);
  const name = slash === -1 ? '' : wanted.slice(slash + 1);
  const provider = findProvider(providerName);
  if (provider === undefined && providerName !== 'scripted') return unknownProvider(wanted, providerName);
  if (name === '') {
    const example = exampleModel(providerName);
    return {
      kind: 'noName',
      message: `"${wanted}" names no model: write it as ${providerName}/NAME, e.g. ${example}`,
    };
  }
  if (provider === undefined) return loadScript(name, options.folder ?? '');
  return connect(provider, name, environment, options);
};
