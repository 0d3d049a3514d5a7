import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Model } from '../../ports/model.js';
import { scriptedModel } from './scripted-model.js';

export type BadScript = { readonly kind: 'badScript'; readonly message: string };

const badScript = (file: string, why: string): BadScript => ({
  kind: 'badScript',
  message: `The script ${file} cannot be used: ${why}`,
});

/** The model that answers from a JSON file; its id names the whole path, so that a resumed session finds the same script. */
export const loadScript = async (
  name: string,
  folder: string,
): Promise<{ readonly kind: 'ok'; readonly model: Model } | BadScript> => {
  const file = path.resolve(folder, name);
  let json: unknown;
  try {
    json = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    return badScript(file, error instanceof Error ? error.message : String(error));
  }
  const { parseScript } = await import('./script-format.js');
  const parsed = parseScript(json);
  if (parsed.kind === 'invalid') return badScript(file, `${parsed.field}: ${parsed.why}`);
  return { kind: 'ok', model: scriptedModel(parsed.script, { id: `scripted/${file}` }) };
};
