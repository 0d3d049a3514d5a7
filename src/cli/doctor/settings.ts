import { existsSync, realpathSync } from 'node:fs';
import { providers } from '../../config/providers.js';
import { refusedOf } from '../../config/resolve.js';
import { settings } from '../../config/table.js';
import { showValue } from '../../config/value.js';
import { attempt } from '../../runtime/wall.js';
import { closestTo } from '../../suggest.js';
import { consult } from '../configured.js';
import type { Check, World } from './world.js';

/** What was written into files and variables. */

const consultHere = async (world: World) => {
  const folder = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
  return consult(folder, world.environment, {});
};

/** Variables of ours that no setting has. */
const knownVariables = new Set([...settings.map(({ variable }) => variable), 'PAWL_CALL']);

const localeOf = ({ environment }: World): string =>
  environment.LC_ALL || environment.LC_CTYPE || environment.LANG || '';

const checkUrl = (environment: World['environment'], name: string): string | null => {
  const text = environment[name] || environment[name.toLowerCase()] || '';
  if (text === '') return null;
  return URL.canParse(text.includes('://') ? text : `http://${text}`) ? null : text;
};

export const settingChecks: readonly Check[] = [
  {
    name: 'configFaulty',
    level: 'fault',
    look: async (world) => {
      const { faults } = await consultHere(world);
      const lines = faults.map(({ where, text }) => `${where}: ${text}`);
      return lines.length === 0
        ? null
        : {
            what: lines.join('; '),
            repair:
              'Correct what is named. pawl config lists every setting; docs/configuration.md explains them',
          };
    },
  },
  {
    name: 'projectNotHeeded',
    level: 'note',
    look: async (world) => {
      const refused = refusedOf((await consultHere(world)).resolved);
      const lines = refused.map(({ key, value, why }) => `${key} = ${showValue(value)}: ${why}`);
      return lines.length === 0
        ? null
        : {
            what: `the project asks for what it may not have: ${lines.join('; ')}`,
            repair: 'If you want it, write it into your own config.toml: pawl config --origin names it',
          };
    },
  },
  {
    name: 'unknownVariable',
    level: 'note',
    look: ({ environment }) => {
      const unknown = Object.keys(environment).find(
        (name) => /^PAWL_/.test(name) && !knownVariables.has(name),
      );
      if (unknown === undefined) return null;
      const close = closestTo(unknown, [...knownVariables]);
      return {
        what: `the variable ${unknown} means nothing`,
        repair:
          close === undefined ? 'Unset it; pawl config lists the settings' : `Perhaps ${close} is meant`,
      };
    },
  },
  {
    name: 'keyInQuotes',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = providers
        .flatMap(({ keyVariables }) => [...keyVariables])
        .find((name: string) => /\s\S|["'\u201c\u201d]|^Bearer\b/.test(environment[name]?.trim() ?? ''));
      return wrong === undefined
        ? null
        : {
            what: `${wrong} holds quotes, blanks or "Bearer" beside the key`,
            repair: `Set it to the key alone: export ${wrong}=…`,
          };
    },
  },
  {
    name: 'proxyFaulty',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = ['HTTPS_PROXY', 'HTTP_PROXY'].find((name) => checkUrl(environment, name) !== null);
      return wrong === undefined
        ? null
        : {
            what: `${wrong} is no URL`,
            repair: `Write it as http://HOST:PORT, or unset it: unset ${wrong} ${wrong.toLowerCase()}`,
          };
    },
  },
  {
    name: 'certificatesMissing',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'].find(
        (name) => environment[name] && !existsSync(environment[name] ?? ''),
      );
      return wrong === undefined
        ? null
        : {
            what: `${wrong} names ${environment[wrong]}, which is not there`,
            repair: `Correct the path, or unset ${wrong}`,
          };
    },
  },
  {
    name: 'certificatesUnread',
    level: 'note',
    look: ({ environment }) =>
      environment.SSL_CERT_FILE && !environment.NODE_EXTRA_CA_CERTS && existsSync(environment.SSL_CERT_FILE)
        ? {
            what: 'SSL_CERT_FILE is set, which Node does not read',
            repair: `export NODE_EXTRA_CA_CERTS=${environment.SSL_CERT_FILE}`,
          }
        : null,
  },
  {
    name: 'certificatesNotChecked',
    level: 'fault',
    look: ({ environment }) =>
      environment.NODE_TLS_REJECT_UNAUTHORIZED === '0'
        ? {
            what: 'NODE_TLS_REJECT_UNAUTHORIZED=0: whoever is on the way can read your key',
            repair: 'Unset it, and name your own certificate with NODE_EXTRA_CA_CERTS',
          }
        : null,
  },
  {
    name: 'localeNotUtf8',
    level: 'note',
    look: (world) =>
      /utf-?8/i.test(localeOf(world)) || world.platform !== 'linux'
        ? null
        : {
            what: `the language settings (${localeOf(world) || 'none'}) are not for UTF-8: commands may write letters wrongly`,
            repair: 'export LANG=C.UTF-8',
          },
  },
  {
    name: 'terminalUnknown',
    level: 'note',
    look: ({ environment, isTerminal }) =>
      isTerminal && (!environment.TERM || environment.TERM === 'dumb')
        ? {
            what: `TERM is ${environment.TERM ? 'dumb' : 'not set'}: the terminal shows plain lines`,
            repair: 'If it is a usual terminal: export TERM=xterm-256color',
          }
        : null,
  },
  {
    name: 'coloursDisagree',
    level: 'note',
    look: ({ environment }) =>
      environment.NO_COLOR && environment.FORCE_COLOR
        ? { what: 'NO_COLOR and FORCE_COLOR are both set: there is no colour', repair: 'Unset one of them' }
        : null,
  },
];

/** Runs one check; one that fails itself is a fault of ours, and said. */
export const lookSafely = async (check: Check, world: World) => {
  const looked = await attempt(() => check.look(world));
  if (looked.kind === 'done') return looked.value;
  return { what: `the check itself failed: ${looked.fault.message}`, repair: 'Please report it' };
};
