import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Session } from '@pawl/agent/api/create-agent';
import type { Image } from '@pawl/agent/machine/message';
import { attempt } from '@pawl/agent/session/attempt';
import { whyNoImages } from '@pawl/agent/session/model/request-images';
import { loadFile } from '@pawl/agent/tools/files/file-text';

/**
 * Pictures that a text mentions as `@shot.png` or `@"my shot.png"`. They are sent with the text, also when the text is
 * sent again. A missing picture does not stop the text.
 */

const NAMED =
  /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|([^\s"]\S*\.(?:png|jpe?g|gif|webp))(?=$|[\s,;:.!?)]))/gi;

/** The mentioned paths as written, without duplicates. */
export const picturesNamed = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(NAMED)].map(([, quoted, bare]) => quoted ?? bare ?? '')),
];

/** The mention for a picture; null for other files, and for paths that no mention can express. */
export const mentionOf = (file: string): string | null =>
  [`@${file}`, `@"${file}"`].find((text) => picturesNamed(text)[0] === file) ?? null;

export type Pictures = {
  readonly images: readonly Image[];
  /** One line for each picture that the model will not see, with the reason. */
  readonly faults: readonly string[];
};

const readPicture = async (file: string): Promise<Uint8Array> => {
  const real = await realpath(file).catch(() => file); // a missing file is reported below
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

/** Stores the pictures that a text mentions. Never rejects. */
export const keepPictures = async (
  names: readonly string[],
  workspace: string,
  keep: (bytes: Uint8Array) => Promise<Image>,
): Promise<Pictures> => {
  const keepNamed = async (name: string): Promise<Pictures> => {
    const kept = await attempt(async () => keep(await readPicture(path.resolve(workspace, name))));
    return kept.kind === 'done'
      ? { images: [kept.value], faults: [] }
      : { images: [], faults: [`${name} is not sent: ${kept.fault.message}`] };
  };
  const tried = await Promise.all(names.map(keepNamed));
  return {
    images: tried.flatMap(({ images }) => images),
    faults: tried.flatMap(({ faults }) => faults),
  };
};

/**
 * The pictures for a text of this session. Never rejects. A picture that the current model can't see is still sent, since
 * a later model may be able to.
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
    return withFault(`It is unknown whether the model gets the pictures: ${asked.fault.message}`);
  const why = whyNoImages(asked.value);
  if (why === null) return kept;
  const advice =
    asked.value.facts.images === undefined ? ' If it accepts pictures, start with --pictures yes.' : '';
  return withFault(`The model does not get the pictures: ${why}.${advice}`);
};
