/**
 * Questions in a plain terminal (`--plain`): printed in full, and answered by a typed line.
 *
 * From top to bottom: how a question is printed; who takes the lines; and how a line is read.
 */

import { indentWords, type Look } from '@pawl/terminal/paint';
import {
  answerForLetter,
  answerLetter,
  questionRows,
  type TerminalAnswer,
  type TerminalQuestion,
} from '@pawl/terminal/question-rows';
import { type Questions, questionHeading } from '@pawl/terminal/questions';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

/** The whole question. What would run is neither wrapped nor cut; words about it are wrapped. */
const printedQuestion = (description: TerminalQuestion, look: Look, place: Safe): Safe =>
  joinSafe(
    [
      safe`? ${questionHeading(description)}${place}`,
      ...questionRows(
        { ...description, choices: description.choices.filter(canBeTyped) },
        look,
        EVERY_COLUMN,
        look.columns,
      ),
    ],
    safe`\n`,
  );

/** A plain terminal has no line in which a plan could be edited. */
const canBeTyped = ({ answer }: TerminalQuestion['choices'][number]): boolean => answer !== 'edit';

/** The answers that can be typed. The no stands last, with its reason. */
const lineChoices = (questions: Questions): string => {
  const letters = (questions.description?.choices ?? [])
    .filter((choice) => canBeTyped(choice) && choice.answer !== 'no')
    .map(({ answer }) => (answer === 'reply' ? 't and your answer' : answerLetter(answer)));
  const several = questions.takesAll ? `, all for yes to all ${questions.all.length}` : '';
  return `Answer with ${letters.join(', ')}, or n and a reason${several}, then Enter.`;
};

export type PlainQuestions = {
  /** Prints the question that now takes answers. */
  open(): void;
  /** A line typed at the question. */
  take(line: string): void;
};

export const createPlainQuestions = (
  questions: Questions,
  look: Look,
  print: (text: Safe) => void,
): PlainQuestions => {
  let printed = new Set<TerminalQuestion>();
  const tell = (text: string): void => print(indentWords(makeSafe(text), look.columns));
  const show = (description: TerminalQuestion): void => {
    if (printed.has(description)) return;
    printed = new Set([...questions.all.filter((one) => printed.has(one)), description]);
    const { all } = questions;
    const place =
      all.length > 1 ? safe` (${all.indexOf(description) + 1} of ${all.length})` : safe``;
    print(printedQuestion(description, look, place));
  };
  const takeAll = (): void => {
    const unread = questions.all.filter((one) => !printed.has(one));
    if (unread.length === 0) {
      questions.answerAll();
      return;
    }
    for (const one of unread) show(one);
    tell('All questions are printed now. Type all again to allow all of them.');
  };
  return {
    open() {
      if (questions.description !== null) show(questions.description);
      tell(lineChoices(questions));
    },
    take(line) {
      if (/^\s*(A|all|yes to all)\s*$/.test(line) && questions.takesAll) {
        takeAll();
        return;
      }
      const read = readAnswer(line);
      if (read === null) {
        tell(`'${line.trim().slice(0, 20)}' is not an answer. ${lineChoices(questions)}`);
        return;
      }
      if (questions.offers(read.answer)) questions.answer(read.answer, read.reason);
      else tell(`That answer is not possible for this call. ${lineChoices(questions)}`);
    },
  };
};

/** Words that mean the same as a letter, in capitals too. */
const ANSWER_WORDS = new Map<string, TerminalAnswer>([
  ['yes', 'once'],
  ['always', 'always'],
  ['prefix', 'prefix'],
  ['session', 'session'],
]);

type TypedAnswer = { readonly answer: TerminalAnswer; readonly reason: string };

/** Reads a letter or a word, or `n` and a reason, or `t` and an answer; null for anything else. */
export const readAnswer = (typed: string): TypedAnswer | null => {
  const text = typed.trim();
  const words = /^t\s+(.+)$/s.exec(text)?.[1];
  if (words !== undefined) return { answer: 'reply', reason: words };
  const refused = /^no?(?:[\s,:]+(.*))?$/is.exec(text);
  if (refused !== null) return { answer: 'no', reason: refused[1]?.trim() ?? '' };
  const answer = answerForLetter(text) ?? ANSWER_WORDS.get(text.toLowerCase());
  // these need words behind the letter
  return answer === undefined || answer === 'reply' || answer === 'edit'
    ? null
    : { answer, reason: '' };
};
