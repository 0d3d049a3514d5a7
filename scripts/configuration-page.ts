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

const table = (list: readonly Setting[]): string =>
  [
    '| key | value | flag | variable | a project may | |',
    '|---|---|---|---|---|---|',
    ...list.map(row),
  ].join('\n');

/** The page with its table made anew. */
export const fillConfigurationPage = (page: string): string =>
  splice(page, 'settings', table(settings));
