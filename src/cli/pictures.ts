import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Image } from '../agent/message.js';

/** Pictures that a text names as `@shot.png`: they go with it, and with the same text when it is sent again. */

const NAMED = /(?<=^|\s)@(\S+\.(?:png|jpe?g|gif|webp))(?=$|[\s,;:.!?)])/gi;

/** Their paths as they are written, each once. */
export const picturesNamed = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(NAMED)].map(([, name = '']) => name)),
];

export type Pictures = {
  readonly images: readonly Image[];
  /** A line for each that can't go with the text: the model can still be asked to read it. */
  readonly faults: readonly string[];
};

/** Keeps those that a text names. Never rejects. */
export const keepPictures = async (
  names: readonly string[],
  workspace: string,
  keep: (bytes: Uint8Array) => Promise<Image>,
): Promise<Pictures> => {
  const tried = await Promise.all(
    names.map((name) =>
      readFile(path.resolve(workspace, name))
        .then(keep)
        .then(
          (image) => ({ images: [image], faults: [] }),
          (error: unknown) => ({
            images: [],
            faults: [
              `${name} does not go with it: ${error instanceof Error ? error.message : String(error)}`,
            ],
          }),
        ),
    ),
  );
  return {
    images: tried.flatMap(({ images }) => images),
    faults: tried.flatMap(({ faults }) => faults),
  };
};
