import type { FileMemory } from '../ports/tool.js';

/** An empty record of the files that the model has seen. One per session. */
export const createFileMemory = (): FileMemory => {
  const hashes = new Map<string, string>();
  return {
    get: (path) => hashes.get(path),
    set: (path, sha256) => {
      hashes.set(path, sha256);
    },
  };
};
