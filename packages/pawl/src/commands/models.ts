/** `pawl models`: the providers, and the models that a key can reach. */

import { catalogueFacts } from '@pawl/agent/models/catalogue';
import { listModels } from '@pawl/agent/models/list-models';
import {
  findProvider,
  keyIn,
  keyNames,
  type Provider,
  packageProviders,
  providers,
} from '@pawl/agent/models/provider-table';
import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import { formatTokens, oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { withConfig } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { usageStop } from '../settings/flags.js';
import { runKeyCommand, type UserProvider } from '../settings/own-providers.js';

export type ModelsFlags = { readonly json?: true };

/** What is known of a model: null where nobody says it. Prices are dollars per million tokens. */
type ShownModel = {
  readonly id: string;
  readonly windowTokens: number | null;
  readonly inputPrice: number | null;
  readonly outputPrice: number | null;
};

const LINE_MAX = 200;

const shownModel = (provider: Provider | UserProvider, name: string): ShownModel => {
  const id = `${provider.name}/${name}`;
  const written =
    'models' in provider && Object.hasOwn(provider.models, name)
      ? provider.models[name]
      : undefined;
  const { windowTokens, prices, source } = written ?? catalogueFacts(id);
  return {
    id,
    windowTokens: source === null ? null : windowTokens,
    inputPrice: prices?.input ?? null,
    outputPrice: prices?.output ?? null,
  };
};

const modelLine = ({ id, windowTokens, inputPrice, outputPrice }: ShownModel): string =>
  [
    id,
    ...(inputPrice === null ? [] : [`$${inputPrice} in, $${outputPrice} out`]),
    ...(windowTokens === null ? [] : [`${formatTokens(windowTokens)} window`]),
  ].join('  ');

/** Whether and where the key of a provider is. */
const keyText = (provider: Provider, environment: ProcessEnvironment): string => {
  if (provider.key === 'unused') return 'needs no key';
  const set = keyNames(provider).find((name) => keyIn(environment, [name]) !== null);
  if (set !== undefined) return `${set} is set`;
  return provider.key === 'optional'
    ? `${provider.keyVariables[0]}, if the server wants a key`
    : `set ${provider.keyVariables[0]}`;
};

const printProviders = (
  all: readonly Provider[],
  environment: ProcessEnvironment,
  { json }: ModelsFlags,
): void => {
  const width = Math.max(...all.map(({ name }) => name.length)) + 2;
  for (const provider of all) {
    const { name, title } = provider;
    const key = keyText(provider, environment);
    if (json) writeJson({ name, title, key });
    else
      writeOut(
        safe`${oneLine(`${name.padEnd(width)}${title === name ? '' : `${title}: `}${key}`, LINE_MAX)}\n`,
      );
  }
  for (const { name, title, npm } of packageProviders) {
    const key = `through the package ${npm}`;
    if (json) writeJson({ name, title, key });
    else writeOut(safe`${oneLine(`${name.padEnd(width)}${title}: ${key}`, LINE_MAX)}\n`);
  }
  if (!json) writeError(safe`pawl models NAME lists the models of one.\n`);
};

/** Prints the providers, or the models of the named one, which its server lists. */
export const runModels = async (name: string | undefined, flags: ModelsFlags): Promise<number> => {
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const workspace = realWorkspace(process.cwd());
  const configured = await withConfig({}, workspace, { command: 'run', resumed: false, warn });
  const { variables = {}, ownProviders = [] } = configured;
  const environment = { ...process.env, ...variables };
  if (name === undefined) {
    printProviders([...ownProviders, ...providers], environment, flags);
    return exitCodes.done;
  }
  const custom = ownProviders.find((one) => one.name === name);
  const provider = custom ?? findProvider(name);
  const packaged = packageProviders.find((one) => one.name === name);
  if (provider === undefined && packaged !== undefined)
    throw usageStop(`The models of ${packaged.title} stand in its console: -m ${name}/NAME.`);
  if (provider === undefined)
    throw usageStop(`There is no provider '${name}'. pawl models lists them.`);
  const key = custom === undefined ? {} : await runKeyCommand(custom, process.env);
  const listed = await listModels(provider, { ...environment, ...key });
  if (listed.kind === 'failed') throw new Stop(exitCodes.unavailable, 'unavailable', listed.why);
  for (const model of listed.names.map((one) => shownModel(provider, one)))
    if (flags.json) writeJson(model);
    else writeOut(safe`${oneLine(modelLine(model), LINE_MAX)}\n`);
  return exitCodes.done;
};
