/**
 * Pictures in requests: those of the blobs are added, if the model accepts pictures. Otherwise a
 * line says that they are not shown. Of many pictures only the newest are sent, because providers
 * refuse requests with too many pictures or bytes.
 */

import type { Image, Message, ResultPart, UserText } from '../machine/message.js';
import type { Blobs } from '../ports/journal.js';
import type { Model } from '../ports/model.js';

const IMAGES_MAX = 20;
/**
 * Limit for all pictures of a request, as base64. The strictest provider accepts requests of 20 MB.
 */
const CHARACTERS_MAX = 14_000_000; // `OLDER` names it

type Shown = (ResultPart | UserText) & { readonly images: readonly Image[] };

const hasImages = (part: Message['parts'][number]): part is Shown =>
  'images' in part && part.images !== undefined && part.images.length > 0;

/** The messages with `show` applied to the parts that have pictures. */
export const mapShown = (
  messages: readonly Message[],
  show: (part: Shown) => ResultPart | UserText,
): readonly Message[] =>
  messages.map((message) =>
    message.role === 'user' && message.parts.some(hasImages)
      ? { ...message, parts: message.parts.map((part) => (hasImages(part) ? show(part) : part)) }
      : message,
  );

/** The part with its available pictures, and a line about the others. */
const showImages = (part: Shown, images: readonly Image[], why: string): ResultPart | UserText => {
  const { images: all, ...plain } = part;
  const omitted = all.length - images.length;
  if (omitted === 0) return { ...plain, images };
  const text =
    `${part.text}\n[${omitted === 1 ? 'a picture is' : `${omitted} pictures are`} not shown: ` +
    `${why}]`;
  return { ...plain, text, ...(images.length === 0 ? {} : { images }) };
};

/** The newest pictures with their bytes, by their index among all pictures. */
const loadNewest = async (
  images: readonly Image[],
  blobs: Blobs,
): Promise<ReadonlyMap<number, string>> => {
  const loaded = new Map<number, string>();
  let remaining = CHARACTERS_MAX;
  for (const [place, { sha256 }] of [...images.entries()].reverse()) {
    const base64 = await blobs.get(sha256);
    if (base64 === undefined) continue;
    remaining -= base64.length;
    if (remaining < 0 || loaded.size === IMAGES_MAX) break;
    loaded.set(place, base64);
  }
  return loaded;
};

/** Why the model gets no pictures, or null. */
export const imagesFault = ({ id, facts }: Pick<Model, 'id' | 'facts'>): string | null => {
  if (facts.images === 'yes') return null;
  return facts.images === 'no' ? `${id} takes none` : `${id} is not known to take any`;
};

/** Why older pictures are left out. */
const OLDER = `only the newest ${IMAGES_MAX} that the journal has are sent, up to 14 MB`;

/** The messages without the pictures that a provider has refused, with a line about them. */
const withoutRefused = (
  messages: readonly Message[],
  refused: readonly string[],
): readonly Message[] =>
  mapShown(messages, (part) => {
    const accepted = part.images.filter(({ sha256 }) => !refused.includes(sha256));
    return showImages(part, accepted, 'refused by the provider');
  });

/** The messages in a form that the model accepts. Rejects if a blob exists but can't be read. */
export const withImages = async (
  all: readonly Message[],
  model: Model,
  blobs: Blobs,
  refused: readonly string[],
): Promise<readonly Message[]> => {
  const why = imagesFault(model);
  if (why !== null) return mapShown(all, (part) => showImages(part, [], why));
  const messages = refused.length === 0 ? all : withoutRefused(all, refused);
  const images = messages.flatMap(({ parts }) =>
    parts.filter(hasImages).flatMap(({ images }) => images),
  );
  const loaded = await loadNewest(images, blobs);
  let place = 0;
  return mapShown(messages, (part) => {
    const available = part.images.flatMap((image) => {
      const base64 = loaded.get(place++);
      return base64 === undefined ? [] : [{ ...image, base64 }];
    });
    return showImages(part, available, OLDER);
  });
};

/** The messages without pictures, for a summary. */
export const withoutImages = (messages: readonly Message[]): readonly Message[] =>
  mapShown(messages, (part) => showImages(part, [], 'only words are summarised'));
