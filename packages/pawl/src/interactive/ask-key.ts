/**
 * The one question of a start in a terminal without any key: paste a key, watch the demo, or leave.
 * A pasted key is tried at its provider, and lies in a file that only the user can read.
 */

import path from 'node:path';
import { makeFolder, writeWhole } from '@pawl/agent/journal/state-folder';
import { listModels } from '@pawl/agent/models/list-models';
import { findLocalModel } from '@pawl/agent/models/local-servers';
import { findProvider, type Provider, providers } from '@pawl/agent/models/provider-table';
import { configFolder } from '@pawl/agent/platform/environment';
import { nearestWord } from '@pawl/agent/platform/text';
import { isTable } from '@pawl/agent/platform/untrusted-input';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { askLine } from '../sessions/stored-sessions.js';
import { consult, userFile } from '../settings/configuration.js';
import { localModelText, realWorkspace } from '../settings/connect-model.js';
import {
  appendTable,
  BROKEN_TOML,
  changeConfigFile,
  type EditedConfig,
  isSame,
  parseOrNull,
  refused,
  type TomlFormat,
} from '../settings/edit-config.js';
import type { RunFlags } from '../settings/flags.js';

/** How the keys of providers begin, where that tells whose they are. The first that fits counts. */
const BEGINNINGS: readonly (readonly [beginning: RegExp, provider: string])[] = [
  [/^sk-ant-/, 'anthropic'],
  [/^sk-or-/, 'openrouter'],
  [/^sk-(proj|svcacct|admin)-/, 'openai'],
  [/^AIza/, 'google'],
  [/^xai-/, 'xai'],
  [/^gsk_/, 'groq'],
  [/^csk-/, 'cerebras'],
  [/^fw_/, 'fireworks'],
  [/^nvapi-/, 'nvidia'],
  [/^hf_/, 'huggingface'],
  [/^gh[pousr]_|^github_pat_/, 'github'],
];

const withKey: readonly Provider[] = providers.filter(
  ({ key, address }) => key === 'required' && address !== null,
);

const nothingChosen = (): Stop => new Stop(exitCodes.configuration, 'noKey', 'Nothing was chosen.');

/** Whether no model is named and no key is set: only a server on this machine could answer. */
const lacksKey = async (flags: RunFlags): Promise<boolean> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const { usual, resolved, faults } = await consult(workspace, process.env, { ...flags });
  const isNamed = resolved.some(({ setting, value }) => setting.key === 'model' && value !== null);
  return faults.length === 0 && !isNamed && usual.variable === null;
};

const CONTROL_C = '\u0003';
const CONTROL_D = '\u0004';

/** Reads a line that the screen does not show. Ctrl-C and Ctrl-D leave. */
const askHidden = (question: Safe): Promise<string> =>
  new Promise((resolve, reject) => {
    const { stdin } = process;
    let text = '';
    const end = (act: () => void): void => {
      stdin.off('data', take);
      stdin.setRawMode(false);
      stdin.pause();
      writeOut(safe`\n`);
      act();
    };
    const take = (bytes: Buffer): void => {
      text += bytes.toString('utf8');
      if (text.includes(CONTROL_C) || text.includes(CONTROL_D))
        end(() => reject(new Stop(exitCodes.usage, 'cancelled', 'Nothing was chosen.')));
      else if (/[\r\n]/.test(text)) end(() => resolve(text.split(/[\r\n]/)[0]?.trim() ?? ''));
    };
    stdin.setRawMode(true); // before the question: what is typed at once is not shown either
    stdin.on('data', take);
    stdin.resume();
    writeOut(question);
  });

/** The provider whose key it is: by its beginning, or as the user says. */
const askProvider = async (key: string): Promise<Provider> => {
  const known = BEGINNINGS.find(([beginning]) => beginning.test(key))?.[1];
  const byBeginning = known === undefined ? undefined : findProvider(known);
  if (byBeginning !== undefined) return byBeginning;
  const names = withKey.map(({ name }) => name);
  for (;;) {
    const name = (await askLine(safe`Whose key is it? ${makeSafe(names.join(', '))}: `)).trim();
    if (name === '') throw nothingChosen();
    const chosen = withKey.find((provider) => provider.name === name.toLowerCase());
    if (chosen !== undefined) return chosen;
    const close = nearestWord(name, names);
    writeOut(
      close === undefined
        ? safe`There is no such provider.\n`
        : safe`There is no such provider. Did you mean ${makeSafe(close)}?\n`,
    );
  }
};

/** The text of a config.toml that names the file with a provider's key. */
const namingKeyFile = (
  text: string,
  provider: string,
  file: string,
  format: TomlFormat,
): EditedConfig => {
  const before = parseOrNull(text, format);
  if (before === null) return refused(BROKEN_TOML);
  const providersBefore = isTable(before.providers) ? before.providers : {};
  const known = providersBefore[provider];
  if (isTable(known) && known.api_key_file === file) return { kind: 'edited', text };
  const edited = appendTable(text, [
    `[providers.${provider}]`,
    `api_key_file = ${JSON.stringify(file)}`,
  ]);
  const after = {
    ...before,
    providers: { ...providersBefore, [provider]: { api_key_file: file } },
  };
  return known === undefined && isSame(parseOrNull(edited, format), after)
    ? { kind: 'edited', text: edited }
    : refused(`write there for the provider ${provider}: api_key_file = "${file}"`);
};

/** Writes the key into a file of the user, and its place into the user's config.toml. */
const storeKey = async (provider: Provider, key: string): Promise<void> => {
  const folder = path.join(configFolder(process.env), 'keys');
  const file = path.join(folder, provider.name);
  await makeFolder(folder);
  await writeWhole(file, [Buffer.from(`${key}\n`)]);
  const config = userFile(process.env);
  const changed = await changeConfigFile(config, (text, format) =>
    namingKeyFile(text, provider.name, file, format),
  );
  if (changed.kind === 'refused')
    throw new Stop(
      exitCodes.configuration,
      'configuration',
      `The key is in ${file}, but ${config} stays as it was: ${changed.why}`,
    );
  writeOut(
    safe`The key is in ${makeSafe(file)}, readable by you alone, and ${makeSafe(config)} names it.\n`,
  );
};

/** `untried`: the provider did not answer, or answers the same without a key. */
type TriedKey = { readonly kind: 'taken' | 'refused' | 'untried'; readonly why: string };

const tryKey = async (provider: Provider, key: string): Promise<TriedKey> => {
  const environment = { ...process.env, [provider.keyVariables[0]]: key };
  const listed = await listModels(provider, environment);
  if (listed.kind === 'failed')
    return { kind: listed.isRefused ? 'refused' : 'untried', why: listed.why };
  const isPublic = (await listModels(provider, process.env)).kind === 'ok';
  return isPublic
    ? { kind: 'untried', why: `${provider.title} lists its models without a key, too.` }
    : { kind: 'taken', why: '' };
};

/** Asks for a key until its provider takes it, or can't try it: then it is stored untried. */
const askKey = async (): Promise<void> => {
  const question = safe`Paste the key, then Enter (it is not shown): `;
  let refusal = safe``; // printed with the question: a key typed upon it is hidden already
  for (;;) {
    let key = await askHidden(safe`${refusal}${question}`);
    // a key that was typed may hold what Backspace and arrows send
    while (!/^[\x21-\x7e]+$/.test(key)) {
      if (key === '') throw nothingChosen();
      key = await askHidden(
        safe`That is no key: it must be one word of plain characters. Paste it again: `,
      );
    }
    const provider = await askProvider(key);
    const { kind, why } = await tryKey(provider, key);
    refusal = safe`${makeSafe(why)}\n`;
    if (kind === 'refused') continue;
    if (kind === 'untried') writeOut(safe`${refusal}So the key could not be tried.\n`);
    return storeKey(provider, key);
  }
};

/**
 * The flags of a start in a terminal: with the model of this machine where no key is set; asks what
 * to do where nothing can answer. `demo`: the user wants to see the demo. Throws a `Stop` if the
 * user leaves.
 */
export const askForKey = async (flags: RunFlags): Promise<RunFlags | 'demo'> => {
  if (!(await lacksKey(flags))) return flags;
  const local = await findLocalModel(process.env);
  if (local !== null) {
    writeOut(makeSafe(`${localModelText(local)}\n`));
    return { ...flags, model: local.id };
  }
  writeOut(
    safe`No key of a model provider is set, and no model server answers on this machine.\n  1  paste a key\n  2  watch the demo, which needs no key\nEnter alone leaves. pawl models lists the providers and their variables.\n`,
  );
  for (;;) {
    const answer = (await askLine(safe`1 or 2? `)).trim();
    if (answer === '1') {
      await askKey();
      return flags;
    }
    if (answer === '2') return 'demo';
    if (answer === '') throw nothingChosen();
    writeOut(safe`Type 1 or 2. Enter alone leaves.\n`);
  }
};
