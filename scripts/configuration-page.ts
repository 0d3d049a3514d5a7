/** The table of settings in docs/set-up/configuration.md. */

import {
  flagName,
  helpText,
  type ProjectMay,
  type Setting,
  settings,
} from '../packages/pawl/src/settings/setting-table.js';
import { splice } from './diagram.js';

export const configurationPage = 'docs/set-up/configuration.md';

const projectMay: Readonly<Record<ProjectMay, string>> = {
  no: 'nothing',
  tighten: 'tighten',
  raise: 'raise',
  sameProvider: 'choose another of the same provider',
};

const cell = (text: string): string => text.replaceAll('|', '\\|');

const valuesOf = ({ kind }: Setting): string => {
  switch (kind.type) {
    case 'words':
      return kind.words.map((word) => `\`"${word}"\``).join(', ');
    case 'number':
      return kind.whole ? 'whole number' : 'number';
    case 'switch':
      return '`true`, `false`';
    case 'model':
      return '`"provider/name"`';
    case 'url':
      return 'URL';
    case 'file':
      return 'path';
    case 'hosts':
      return 'list of hosts';
    case 'names':
      return 'list of names';
    case 'models':
      return 'list of models';
    default:
      return kind satisfies never;
  }
};

const row = (setting: Setting): string => {
  const flag = flagName(setting);
  const cells = [
    `\`${setting.key}\``,
    valuesOf(setting),
    flag === null ? '' : `\`${flag}\``,
    `\`${setting.variable}\``,
    projectMay[setting.project],
    helpText(setting.help),
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
};

const isOfProvider = ({ key }: Setting): boolean => key.startsWith('providers.');

/** Each provider has the same two settings: they stand here once. */
const PROVIDER_ROWS = [
  '| `providers.NAME.base_url` | URL |  | see [models](models.md) | nothing | address of a provider, if not its usual one |',
  '| `providers.NAME.api_key_file` | path |  | see [models](models.md) | nothing | a file with its key, readable only by you |',
];

const table = (list: readonly Setting[]): string =>
  [
    '| key | value | flag | variable | a project may | |',
    '|---|---|---|---|---|---|',
    ...list.filter((setting) => !isOfProvider(setting)).map(row),
    ...PROVIDER_ROWS,
  ].join('\n');

/** The page with its table made anew. */
export const fillConfigurationPage = (page: string): string =>
  splice(page, 'settings', table(settings));
