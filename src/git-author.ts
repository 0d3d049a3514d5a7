/** Who Pawl is in a commit where nobody has configured a name: of the agent's own commands, and of automatic commits. */

const AUTHOR = { name: 'Pawl', email: 'pawl@localhost' } as const;

export type AuthorPart = keyof typeof AUTHOR;
export const AUTHOR_PARTS: readonly AuthorPart[] = ['name', 'email'];

/** The variables that tell git a part of the author and of the committer. */
export const AUTHOR_VARIABLES: Readonly<Record<AuthorPart, readonly [author: string, committer: string]>> = {
  name: ['GIT_AUTHOR_NAME', 'GIT_COMMITTER_NAME'],
  email: ['GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_EMAIL'],
};

export const ownAuthor = (part: AuthorPart): string => AUTHOR[part];
