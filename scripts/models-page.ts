/** The table of providers in docs/set-up/models.md. */

import {
  type Provider,
  providers,
  serversWithOwnKey,
} from '../packages/agent/src/models/provider-table.js';
import { splice } from './diagram.js';

export const modelsPage = 'docs/set-up/models.md';

const code = (text: string): string => `\`${text}\``;

const keyOf = ({ key, keyVariables, address }: Provider): string => {
  if (key === 'unused') return 'none';
  const own = keyVariables.map(code).join(' or ');
  if (key === 'required') return own;
  // servers that are reached as this provider, and whose key has a variable of its own
  const others = Object.entries(serversWithOwnKey).map(
    ([host, { keyVariable }]) => `; at ${host} ${code(keyVariable)}`,
  );
  return `${own}, if the server wants one${address === null ? others.join('') : ''}`;
};

const addressOf = ({ urlVariable, address }: Provider): string =>
  address === null
    ? `${code(urlVariable)} or ${code('--base-url')}`
    : `${address}, or ${code(urlVariable)}`;

const row = (provider: Provider): string => {
  const { name, wire, documentation } = provider;
  const cells = [
    code(`${name}/NAME`),
    `[${wire}](${documentation})`,
    keyOf(provider),
    addressOf(provider),
  ];
  return `| ${cells.join(' | ')} |`;
};

const table = [
  '| model | API | key | address |',
  '|---|---|---|---|',
  ...providers.map(row),
  `| ${code('scripted/FILE')} | a JSON file: [scripted model](../build/scripted-model.md) | none | |`,
].join('\n');

export const fillModelsPage = (page: string): string => splice(page, 'providers', table);
