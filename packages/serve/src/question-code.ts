/** Codes of questions that wait for an answer from outside the process of their session. */

import { hash } from 'node:crypto';

const CODE_LENGTH = 8;

/**
 * A short code of one question: of all that is shown of it, and of which one it is. Whoever answers
 * with it answers this question with this content, and no other one.
 *
 * `content` must hold something that nobody knows before the question is asked, such as its time.
 * Otherwise a model could prepare two questions with one code: a short digest alone is no proof.
 */
export const questionCode = (content: unknown): string =>
  hash('sha256', JSON.stringify(content), 'hex').slice(0, CODE_LENGTH);

/** Whether a word has the form of a code. */
export const isQuestionCode = (word: string): boolean =>
  word.length === CODE_LENGTH && /^[0-9a-f]+$/.test(word);
