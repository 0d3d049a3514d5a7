import type { ApprovalDescription } from '@pawl/agent/policy/approval-question';
import type { Look } from '@pawl/terminal/paint-text';
import type { Questions } from '@pawl/terminal/questions/approval-questions';
import { letterOf, questionRows } from '@pawl/terminal/questions/question-rows';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { indentWords } from '@pawl/terminal/width';
import { readAnswer } from './read-approval-answer.js';

/** Questions in a plain terminal (`--plain`): printed in full, answered by a typed line. */

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

/** The whole question; its lines are neither wrapped nor cut. */
const printedQuestion = (description: ApprovalDescription, look: Look, place: Safe): Safe =>
  joinSafe(
    [safe`? ${makeSafe(description.tool)}${place}`, ...questionRows(description, look, EVERY_COLUMN)],
    safe`\n`,
  );

/** The answers that can be typed. */
const lineChoices = (questions: Questions): string => {
  const letters = (questions.description?.choices ?? []).map(({ answer }) => letterOf(answer));
  const several = questions.all.length > 1 ? `, all for yes to all ${questions.all.length}` : '';
  return `Answer with ${letters.slice(0, -1).join(', ')}, or n and a reason${several}, then Enter.`;
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
  let printed = new Set<ApprovalDescription>();
  const tell = (text: string): void => print(indentWords(makeSafe(text), look.columns));
  const show = (description: ApprovalDescription): void => {
    if (printed.has(description)) return;
    printed = new Set([...questions.all.filter((one) => printed.has(one)), description]);
    const { all } = questions;
    const place = all.length > 1 ? safe` (${all.indexOf(description) + 1} of ${all.length})` : safe``;
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
      if (/^\s*(A|all|yes to all)\s*$/.test(line) && questions.all.length > 1) {
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
