import type { FileMemory } from '../ports/tool.js';

/** An empty memory of the files that were shown to the model; one per session. */
export const createFileMemory = (): FileMemory => {
  const hashes = new Map<string, string>();
  return {
    get: (path) => hashes.get(path),
    set: (path, sha256) => {
      hashes.set(path, sha256);
    },
  };
};
