/** Pawl's name and address in commits, used if the user has configured none. */

const AUTHOR = { name: 'Pawl', email: 'pawl@localhost' } as const;

export type AuthorPart = keyof typeof AUTHOR;
export const AUTHOR_PARTS: readonly AuthorPart[] = ['name', 'email'];

/** Environment variables for each part of author and committer. */
export const AUTHOR_VARIABLES: Readonly<Record<AuthorPart, readonly [author: string, committer: string]>> = {
  name: ['GIT_AUTHOR_NAME', 'GIT_COMMITTER_NAME'],
  email: ['GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_EMAIL'],
};

export const ownAuthor = (part: AuthorPart): string => AUTHOR[part];
