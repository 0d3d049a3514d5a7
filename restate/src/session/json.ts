import type { Serde } from '@restatedev/restate-sdk';

/** JSON for calls by name, whose default is bytes. An empty answer is undefined. */
export const json = <T>(): Serde<T> => ({
  contentType: 'application/json',
  serialize: (value) => new TextEncoder().encode(JSON.stringify(value ?? null)),
  deserialize: (bytes) => (bytes.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(bytes))) as T, // written by `serialize`
});
