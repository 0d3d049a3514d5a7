/** Plain words for the errors of paths that users cause most often. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of its path is not a folder',
  EACCES: 'its permissions do not allow it',
  ELOOP: 'its symlinks lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** Why a path can't be used, without the name of a system call; null for other errors. */
export const systemWords = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? (WORDS[String(error.code)] ?? null) : null;
