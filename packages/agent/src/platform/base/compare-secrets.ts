import { timingSafeEqual } from 'node:crypto';

/** Compares a text with a secret; the time tells nothing of where they differ. An empty or missing text is never the secret. */
export const isSameSecret = (given: string | null | undefined, secret: string): boolean => {
  const [one, other] = [Buffer.from(given ?? ''), Buffer.from(secret)];
  return one.length > 0 && one.length === other.length && timingSafeEqual(one, other);
};
