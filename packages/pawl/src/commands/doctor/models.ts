import { existsSync, realpathSync } from 'node:fs';
import { factsOf } from '@pawl/agent/models/catalogue';
import { chooseModel } from '@pawl/agent/models/choose-model';
import { endpointOf } from '@pawl/agent/models/endpoint-and-key';
import { createFetch } from '@pawl/agent/models/http/node-fetch';
import { DEFAULT_MODEL, providerOfModel } from '@pawl/agent/models/provider-table';
import { attempt } from '@pawl/agent/session/attempt';
import { consult, variablesOf } from '../../settings/apply-config.js';
import type { Check, DoctorWorld } from './check-context.js';

/** Checks of the configured model and of the connection to its provider. */

/** This program did not exist before: a clock with an earlier date is wrong. */
const OLDEST = Date.UTC(2026, 10, 1);
const SKEW_MS = 5 * 60_000;

const variables = async (world: DoctorWorld) => {
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

const isCatalogued = (model: string): boolean => providerOfModel(model)?.factsFrom === 'catalogue';

const asksServer = (model: string): boolean => providerOfModel(model) !== undefined && !isCatalogued(model);

const problemOf = async (world: DoctorWorld, kinds: readonly string[]) => {
  const { resolved, model } = await variables(world);
  const read = await attempt(() => variablesOf(resolved, world.environment));
  if (read.kind === 'fault') return kinds.includes('noKey') ? read.fault.message : null;
  // Looking up a local model asks its server, which only --online allows.
  if (asksServer(model) && !world.online) return null;
  const chosen = await chooseModel(
    model,
    { ...world.environment, ...read.value },
    { folder: world.workspace },
  );
  return chosen.kind !== 'ok' && kinds.includes(chosen.kind) ? chosen.message : null;
};

/** Splits a message: its first line is the finding, the other lines are the repair. */
const asFound = (message: string | null) => {
  if (message === null) return null;
  const [what = '', ...rest] = message.split('\n');
  return {
    what: what.replace(/\.$/, ''),
    repair: rest.join(' ') || 'pawl --help shows the form of a model name',
  };
};

const addressFor = async (world: DoctorWorld): Promise<URL | null> => {
  const { resolved, model } = await variables(world);
  const provider = providerOfModel(model);
  const environment = { ...world.environment, ...variablesOf(resolved, world.environment) };
  if (provider === undefined || provider.ownServer !== null) return null;
  const endpoint = endpointOf(provider, environment, undefined);
  return endpoint.kind === 'ok' && endpoint.url !== null ? new URL(endpoint.url) : null;
};

const ask = async (world: DoctorWorld) => {
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
      return isCatalogued(model) && factsOf(model).source === null
        ? {
            what: `${model} is not in the catalogue: its window and limits are assumed, its price is unknown`,
            repair: 'Check the name: docs/models.md lists the known models',
          }
        : null;
    },
  },
  {
    name: 'priceUnknown',
    level: 'fault',
    look: async (world) => {
      const { model, usd } = await variables(world);
      return usd !== null && isCatalogued(model) && factsOf(model).prices === null
        ? {
            what: `max_usd has no effect: the price of ${model} is unknown`,
            repair: 'Set max_tokens or max_rounds instead, or allow_unknown_price = true',
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
            what: `the clock says ${new Date(now).toISOString().slice(0, 10)}, which is before this program was built`,
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
          'Check the network, HTTPS_PROXY and NO_PROXY; and NODE_EXTRA_CA_CERTS if your company uses its own certificate',
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
