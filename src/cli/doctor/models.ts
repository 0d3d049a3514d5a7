import { existsSync, realpathSync } from 'node:fs';
import { hosted } from '../../models/addresses.js';
import { DEFAULT_MODEL, factsOf } from '../../models/catalogue.js';
import { chooseModel } from '../../models/choose.js';
import { createFetch } from '../../models/http.js';
import { attempt } from '../../runtime/wall.js';
import { consult, variablesOf } from '../configured.js';
import type { Check, World } from './world.js';

/** The model that would answer, and the way to it. */

/** Older than this program: a clock that says so is wrong. */
const OLDEST = Date.UTC(2026, 10, 1);
const SKEW_MS = 5 * 60_000;

const variables = async (world: World) => {
  const folder = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
  const { resolved } = await consult(folder, world.environment, {});
  const chosen = resolved.find(({ setting }) => setting.key === 'model')?.value;
  const usd = resolved.find(({ setting }) => setting.key === 'max_usd')?.value ?? null;
  return {
    resolved,
    usd,
    model: world.model ?? (chosen === undefined || chosen === null ? DEFAULT_MODEL : String(chosen)),
  };
};

const problemOf = async (world: World, kinds: readonly string[]) => {
  const { resolved, model } = await variables(world);
  const read = await attempt(() => variablesOf(resolved, world.environment));
  if (read.kind === 'fault') return kinds.includes('noKey') ? read.fault.message : null;
  // a local server is asked for its models: that is for --online
  if (/^(ollama|openai-compatible)\//.test(model) && !world.online) return null;
  const chosen = await chooseModel(
    model,
    { ...world.environment, ...read.value },
    { folder: world.workspace },
  );
  return chosen.kind !== 'ok' && kinds.includes(chosen.kind) ? chosen.message : null;
};

/** First line: what; the others: what to do. */
const asFound = (message: string | null) => {
  if (message === null) return null;
  const [what = '', ...rest] = message.split('\n');
  return { what: what.replace(/\.$/, ''), repair: rest.join(' ') || 'pawl --help says how models are named' };
};

const addressFor = async (world: World): Promise<URL | null> => {
  const { resolved, model } = await variables(world);
  const provider = model.split('/')[0] ?? '';
  const environment = { ...world.environment, ...variablesOf(resolved, world.environment) };
  const known = Object.entries(hosted).find(([name]) => name === provider)?.[1];
  if (known === undefined) return null;
  const standard: Readonly<Record<string, string>> = {
    anthropic: 'https://api.anthropic.com',
    openai: 'https://api.openai.com',
    google: 'https://generativelanguage.googleapis.com',
  };
  const text = environment[known.urlVariable] || standard[provider] || '';
  return URL.canParse(text) ? new URL(text) : null;
};

const ask = async (world: World) => {
  const url = await addressFor(world);
  if (!world.online || url === null) return null;
  const fetched = await attempt(async () => {
    const response = await createFetch(world.environment)(url);
    return response.headers.get('date');
  });
  return { url, fetched };
};

export const modelChecks: readonly Check[] = [
  { name: 'noKey', level: 'fault', look: async (world) => asFound(await problemOf(world, ['noKey'])) },
  {
    name: 'modelNotFound',
    level: 'fault',
    look: async (world) =>
      asFound(await problemOf(world, ['unknownProvider', 'noName', 'badScript', 'noModel'])),
  },
  {
    name: 'addressFaulty',
    level: 'fault',
    look: async (world) => asFound(await problemOf(world, ['badUrl', 'noUrl'])),
  },
  {
    name: 'localServerSilent',
    level: 'fault',
    look: async (world) => asFound(await problemOf(world, ['noServer'])),
  },
  {
    name: 'modelUnknown',
    level: 'note',
    look: async (world) => {
      const { model } = await variables(world);
      const isCatalogued = /^(anthropic|openai|google)\//.test(model);
      return isCatalogued && factsOf(model).source === null
        ? {
            what: `${model} is not in the catalogue: a window and limits are assumed, and its price is unknown`,
            repair: 'Look at the name: docs/models.md lists those that are known',
          }
        : null;
    },
  },
  {
    name: 'priceUnknown',
    level: 'fault',
    look: async (world) => {
      const { model, usd } = await variables(world);
      return usd !== null && /^(anthropic|openai|google)\//.test(model) && factsOf(model).prices === null
        ? {
            what: `max_usd can't be kept: the price of ${model} is unknown`,
            repair: 'Set max_tokens or max_rounds in its place, or allow_unknown_price = true',
          }
        : null;
    },
  },
  {
    name: 'clockWrong',
    level: 'fault',
    look: ({ now }) =>
      now < OLDEST
        ? {
            what: `the clock says ${new Date(now).toISOString().slice(0, 10)}, which is before this program was made`,
            repair: 'Set it: sudo timedatectl set-ntp true',
          }
        : null,
  },
  {
    name: 'unreachable',
    level: 'fault',
    look: async (world) => {
      const asked = await ask(world);
      if (asked === null || asked.fetched.kind === 'done') return null;
      return {
        what: `${asked.url.host} can't be reached: ${asked.fetched.fault.message}`,
        repair:
          'Look at the network, at HTTPS_PROXY and NO_PROXY, and at NODE_EXTRA_CA_CERTS if a company’s certificate is on the way',
      };
    },
  },
  {
    name: 'clockApart',
    level: 'fault',
    look: async (world) => {
      const asked = await ask(world);
      const said = asked?.fetched.kind === 'done' ? Date.parse(asked.fetched.value ?? '') : Number.NaN;
      const apartMs = Math.abs(said - world.now);
      return apartMs > SKEW_MS
        ? {
            what: `the clock is ${Math.round(apartMs / 60_000)} minutes apart from that of ${asked?.url.host}`,
            repair: 'Set it: sudo timedatectl set-ntp true',
          }
        : null;
    },
  },
];
