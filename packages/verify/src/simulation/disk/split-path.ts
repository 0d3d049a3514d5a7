/** The names of folders, by their paths: most files stand in a few folders. */
const folders = new Map<string, readonly string[]>();
const FOLDERS_MAX = 1_000;

/** The names in a path, from outside to inside. */
export const namesOf = (path: string): readonly string[] => {
  const last = path.lastIndexOf('/');
  if (last === path.length - 1) return path.split('/').filter((name) => name !== '');
  const folder = path.slice(0, last);
  let names = folders.get(folder);
  if (names === undefined) {
    names = folder.split('/').filter((name) => name !== '');
    if (folders.size < FOLDERS_MAX) folders.set(folder, names);
  }
  return [...names, path.slice(last + 1)];
};
