import { existsSync, realpathSync } from 'node:fs';
import { providers } from '@pawl/agent/models/provider-table';
import { closestTo } from '@pawl/agent/platform/base/nearest-word';
import { foreignFolder, repositoryFolders } from '@pawl/agent/platform/files/repository-folders';
import { attempt } from '@pawl/agent/session/attempt';
import { consult } from '../../settings/apply-config.js';
import { showValue } from '../../settings/check-setting-value.js';
import { refusedOf } from '../../settings/resolve.js';
import { settings } from '../../settings/setting-table.js';
import type { Check, DoctorWorld } from './check-context.js';

/** Checks of configuration files and environment variables. */

const consultHere = async (world: DoctorWorld) => {
  const folder = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
  return consult(folder, world.environment, {});
};

/** All known `PAWL_` variables: those of settings, and `PAWL_CALL`, which marks the processes of a tool call. */
const knownVariables = new Set([...settings.map(({ variable }) => variable), 'PAWL_CALL']);

const localeOf = ({ environment }: DoctorWorld): string =>
  environment.LC_ALL || environment.LC_CTYPE || environment.LANG || '';

const checkUrl = (environment: DoctorWorld['environment'], name: string): string | null => {
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
              'Correct the named lines. pawl config lists every setting; docs/configuration.md explains them',
          };
    },
  },
  {
    name: 'folderAboveForeign',
    level: 'note',
    look: ({ workspace }) => {
      const foreign = existsSync(workspace) ? repositoryFolders(realpathSync(workspace)).foreign : null;
      return foreign === null
        ? null
        : {
            what: foreignFolder(foreign),
            repair: `If you want to use the repository in ${foreign}, have its owner give it to you: chown`,
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
            what: `the project sets values that it may not set: ${lines.join('; ')}`,
            repair:
              'If you want a value, write it into your own config.toml; pawl config --origin names the file',
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
        what: `the variable ${unknown} is unknown`,
        repair:
          close === undefined ? 'Unset it; pawl config lists the settings' : `Perhaps you mean ${close}`,
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
            what: `${wrong} contains quotes, spaces or "Bearer" besides the key`,
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
            what: `${wrong} names ${environment[wrong]}, which does not exist`,
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
            what: 'NODE_TLS_REJECT_UNAUTHORIZED=0: others on the network can read your key',
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
            what: `the language settings (${localeOf(world) || 'none'}) are not for UTF-8: commands may print characters wrongly`,
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

/** Runs one check. A check that throws is reported as a finding, so that the others still run. */
export const lookSafely = async (check: Check, world: DoctorWorld) => {
  const looked = await attempt(() => check.look(world));
  if (looked.kind === 'done') return looked.value;
  return { what: `the check itself failed: ${looked.fault.message}`, repair: 'Please report it' };
};
