import type { Image, Message, ResultPart, UserText } from '../agent/message.js';
import type { Blobs, Model } from '../needs.js';

/**
 * Pictures in requests: their bytes come from the blobs, for models that take them. What is not shown is said to be not
 * shown. Of many pictures the newest are sent: providers refuse a request with more.
 */

const IMAGES_MAX = 20;

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

/** The part with those of its pictures that are there, and a line about the others. */
const showing = (part: Shown, images: readonly Image[], why: string): ResultPart | UserText => {
  const { images: all, ...plain } = part;
  const left = all.length - images.length;
  if (left === 0) return { ...plain, images };
  const text = `${part.text}\n[${left === 1 ? 'a picture is' : `${left} pictures are`} not shown: ${why}]`;
  return { ...plain, text, ...(images.length === 0 ? {} : { images }) };
};

/** The newest pictures with their bytes, by their sha256. */
const loadNewest = async (
  messages: readonly Message[],
  blobs: Blobs,
): Promise<ReadonlyMap<string, string>> => {
  const named = messages.flatMap(({ parts }) => parts.filter(hasImages).flatMap(({ images }) => images));
  const newest = new Set(named.slice(-IMAGES_MAX).map(({ sha256 }) => sha256));
  const loaded = await Promise.all(
    [...newest].map(async (sha256) => [sha256, await blobs.get(sha256)] as const),
  );
  return new Map(loaded.flatMap(([sha256, base64]) => (base64 === undefined ? [] : [[sha256, base64]])));
};

/** Whether there is anything for `withImages` to do. */
export const showsImages = (messages: readonly Message[]): boolean =>
  messages.some(({ parts }) => parts.some(hasImages));

/** The messages as the model can take them. Rejects when a blob is there and can't be read. */
export const withImages = async (
  messages: readonly Message[],
  { id, facts }: Model,
  blobs: Blobs,
): Promise<readonly Message[]> => {
  if (facts.images !== 'yes') return mapShown(messages, (part) => showing(part, [], `${id} takes none`));
  const loaded = await loadNewest(messages, blobs);
  return mapShown(messages, (part) => {
    const images = part.images.flatMap((image) => {
      const base64 = loaded.get(image.sha256);
      return base64 === undefined ? [] : [{ ...image, base64 }];
    });
    return showing(part, images, `only the newest ${IMAGES_MAX} that the journal has are`);
  });
};

/** The messages without pictures, as they are summarised. */
export const withoutImages = (messages: readonly Message[]): readonly Message[] =>
  mapShown(messages, (part) => showing(part, [], 'only words are summarised'));
