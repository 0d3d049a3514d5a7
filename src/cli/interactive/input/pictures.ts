import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Image } from '../../../agent/message.js';
import type { Session } from '../../../api/create-agent.js';
import { attempt } from '../../../runtime/attempt.js';
import { whyNoImages } from '../../../runtime/model/request-images.js';
import { loadFile } from '../../../tools/files/file-text.js';

/**
 * Pictures that a text names as `@shot.png` or `@"my shot.png"`: they go with it, and with the same text when it is sent
 * again. The text itself goes in any case.
 */

const NAMED =
  /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|([^\s"]\S*\.(?:png|jpe?g|gif|webp))(?=$|[\s,;:.!?)]))/gi;

/** Their paths as they are written, each once. */
export const picturesNamed = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(NAMED)].map(([, quoted, bare]) => quoted ?? bare ?? '')),
];

/** The word that names this picture in a text; null for other files and paths that can't be written so. */
export const mentionOf = (file: string): string | null =>
  [`@${file}`, `@"${file}"`].find((text) => picturesNamed(text)[0] === file) ?? null;

export type Pictures = {
  readonly images: readonly Image[];
  /** A line for each that the model will not see, and why. */
  readonly faults: readonly string[];
};

const readPicture = async (file: string): Promise<Uint8Array> => {
  const real = await realpath(file).catch(() => file); // nothing is there: said below
  const loaded = await loadFile(real);
  switch (loaded.kind) {
    case 'file':
      return loaded.bytes;
    case 'absent':
      throw new Error('there is no such file');
    case 'folder':
      throw new Error('it is a folder');
    case 'unreadable':
      throw new Error(`it can't be read: ${loaded.why}`);
    default:
      return loaded satisfies never;
  }
};

/** Keeps those that a text names. Never rejects. */
export const keepPictures = async (
  names: readonly string[],
  workspace: string,
  keep: (bytes: Uint8Array) => Promise<Image>,
): Promise<Pictures> => {
  const keepNamed = async (name: string): Promise<Pictures> => {
    const kept = await attempt(async () => keep(await readPicture(path.resolve(workspace, name))));
    return kept.kind === 'done'
      ? { images: [kept.value], faults: [] }
      : { images: [], faults: [`${name} does not go with it: ${kept.fault.message}`] };
  };
  const tried = await Promise.all(names.map(keepNamed));
  return {
    images: tried.flatMap(({ images }) => images),
    faults: tried.flatMap(({ faults }) => faults),
  };
};

/**
 * The pictures that go with a text of this session; never rejects. What the model that answers now can't be shown goes
 * along for the one that comes after it.
 */
export const attachPictures = async (
  names: readonly string[],
  workspace: string,
  session: Session,
): Promise<Pictures> => {
  const kept = await keepPictures(names, workspace, session.keepPicture);
  if (kept.images.length === 0) return kept;
  const asked = await attempt(session.model);
  const withFault = (fault: string): Pictures => ({ ...kept, faults: [...kept.faults, fault] });
  if (asked.kind === 'fault')
    return withFault(`Whether the model is shown the pictures is not known: ${asked.fault.message}`);
  const why = whyNoImages(asked.value);
  if (why === null) return kept;
  const advice = asked.value.facts.images === undefined ? ' If it sees, say so: --pictures yes.' : '';
  return withFault(`The model is not shown the pictures: ${why}.${advice}`);
};
