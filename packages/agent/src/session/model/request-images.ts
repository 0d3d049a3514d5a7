import type { Image, Message, ResultPart, UserText } from '../../machine/message.js';
import type { Blobs } from '../../ports/journal.js';
import type { Model } from '../../ports/model.js';

/**
 * Adds pictures from the blobs to requests, if the model accepts pictures. Otherwise a line says that they are not shown.
 * Of many pictures only the newest are sent, because providers refuse requests with too many pictures or bytes.
 */

const IMAGES_MAX = 20;
/** Limit for all pictures of a request, as base64. The strictest provider accepts requests of 20 MB. */
const CHARACTERS_MAX = 14_000_000;

type Shown = (ResultPart | UserText) & { readonly images: readonly Image[] };

const hasImages = (part: Message['parts'][number]): part is Shown =>
  'images' in part && part.images !== undefined && part.images.length > 0;

const mapShown = (
  messages: readonly Message[],
  show: (part: Shown) => ResultPart | UserText,
): readonly Message[] =>
  messages.map((message) =>
    message.role === 'user' && message.parts.some(hasImages)
      ? { ...message, parts: message.parts.map((part) => (hasImages(part) ? show(part) : part)) }
      : message,
  );

/** The part with its available pictures, and a line about the others. */
const showing = (part: Shown, images: readonly Image[], why: string): ResultPart | UserText => {
  const { images: all, ...plain } = part;
  const left = all.length - images.length;
  if (left === 0) return { ...plain, images };
  const text = `${part.text}\n[${left === 1 ? 'a picture is' : `${left} pictures are`} not shown: ${why}]`;
  return { ...plain, text, ...(images.length === 0 ? {} : { images }) };
};

/** The newest pictures with their bytes, by their index among all pictures. */
const loadNewest = async (named: readonly Image[], blobs: Blobs): Promise<ReadonlyMap<number, string>> => {
  const loaded = new Map<number, string>();
  let left = CHARACTERS_MAX;
  for (const [place, { sha256 }] of [...named.entries()].reverse()) {
    const base64 = await blobs.get(sha256);
    if (base64 === undefined) continue;
    left -= base64.length;
    if (left < 0 || loaded.size === IMAGES_MAX) break;
    loaded.set(place, base64);
  }
  return loaded;
};

/** Whether the messages have pictures. */
export const showsImages = (messages: readonly Message[]): boolean =>
  messages.some(({ parts }) => parts.some(hasImages));

/** Why the model gets no pictures, or null. */
export const whyNoImages = ({ id, facts }: Pick<Model, 'id' | 'facts'>): string | null => {
  if (facts.images === 'yes') return null;
  return facts.images === 'no' ? `${id} takes none` : `${id} is not known to take any`;
};

const WHY_LEFT = `only the newest that the journal has are: ${IMAGES_MAX}, or ${CHARACTERS_MAX / 1e6} MB of them`;

/** The messages in a form that the model accepts. Rejects if a blob exists but can't be read. */
export const withImages = async (
  messages: readonly Message[],
  model: Model,
  blobs: Blobs,
): Promise<readonly Message[]> => {
  const why = whyNoImages(model);
  if (why !== null) return mapShown(messages, (part) => showing(part, [], why));
  const named = messages.flatMap(({ parts }) => parts.filter(hasImages).flatMap(({ images }) => images));
  const loaded = await loadNewest(named, blobs);
  let place = 0;
  return mapShown(messages, (part) => {
    const images = part.images.flatMap((image) => {
      const base64 = loaded.get(place++);
      return base64 === undefined ? [] : [{ ...image, base64 }];
    });
    return showing(part, images, WHY_LEFT);
  });
};

/** The messages without pictures, for a summary. */
export const withoutImages = (messages: readonly Message[]): readonly Message[] =>
  mapShown(messages, (part) => showing(part, [], 'only words are summarised'));
