/**
 * The texts that the machine sends to the model: the task, what cells came to, the answers of
 * sub-calls; before them, how numbers and cuts look. Reasons inside them come from elsewhere.
 */

import { firstCharacters, groupDigits } from '@pawl/agent/platform/text';
import type { CellReport, CellVariable } from './cell-types.js';
import type { InputFacts } from './settings.js';
import type { FinishedCell, Outcome, Run } from './state.js';

/** Characters of the list of a cell's variables. */
const variablesMax = 2_000;
/** Inputs in their list, and its characters. */
const inputsShown = 50;
const inputListMax = 6_000;
/** A child sees only so many characters of its prompt; the whole prompt is in `context`. */
const promptShownMax = 4_000;
/** Upper bound for the note that an environment adds to output that it has cut. */
const cutNoteMax = 1_000;

const counted = (count: number, one: string): string =>
  `${groupDigits(count)} ${one}${count === 1 ? '' : 's'}`;

/** The last `length` characters; one less where that would split a surrogate pair. */
const cutTail = (text: string, length: number): string =>
  text.slice(text.length - length).replace(/^[\udc00-\udfff]/, '');

/** Cuts a text over `most` characters to head and tail, with a line for what is missing between. */
export const cutMiddle = (
  text: string,
  most: number,
  gap: (characters: number) => string,
): string => {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  const [head, tail] = [firstCharacters(text, half), cutTail(text, half)];
  return `${head}\n${gap(text.length - head.length - tail.length)}\n${tail}`;
};

/** The count is that of exact halves of `most`, as in older journals: a cut may take one more. */
export const cutCharacters = (text: string, most: number): string => {
  const missing = text.length - 2 * Math.floor(most / 2);
  return cutMiddle(text, most, () => `[… ${counted(missing, 'character')} left out …]`);
};

// ---- The task ----

/** Quotes a name with unusual characters. */
const shownName = (name: string): string =>
  /^[^\s"'`,\p{C}]+$/u.test(name) ? name : JSON.stringify(name);

const inputLine = ({ name, type, characters }: InputFacts, index: number): string =>
  `  context[${index}]: ${shownName(name)}, ${type}, ${counted(characters, 'character')}`;

/** The first lines of a list, as many as are shown. */
const shownLines = (inputs: readonly InputFacts[]): readonly string[] => {
  const lines: string[] = [];
  let characters = 0;
  for (const [index, input] of inputs.slice(0, inputsShown).entries()) {
    const line = inputLine(input, index);
    characters += line.length;
    if (characters > inputListMax && lines.length > 0) break;
    lines.push(line);
  }
  return lines;
};

/** Describes the inputs: number, types and sizes, without their text. */
const inputWords = (inputs: readonly InputFacts[]): string => {
  const [first] = inputs;
  if (first === undefined) return 'There is no context: `context` is empty.';
  if (inputs.length === 1) {
    return (
      `The variable \`context\` holds ${shownName(first.name)}: ${first.type}, ` +
      `${counted(first.characters, 'character')}.`
    );
  }
  const sum = inputs.reduce((total, { characters }) => total + characters, 0);
  const lines = shownLines(inputs);
  const more = inputs.length - lines.length;
  return [
    `The variable \`context\` is a list of ${inputs.length} inputs, ` +
      `${counted(sum, 'character')} in all:`,
    ...lines,
    ...(more > 0
      ? [`  … ${counted(more, 'more input')}: print the keys of \`names\` to see all.`]
      : []),
    'The variable `names` maps each name to its text.',
  ].join('\n');
};

const promptWords = (prompt: string): string =>
  prompt.length <= promptShownMax
    ? `${prompt}\n\nThe variable \`context\` holds this text, too.`
    : `${firstCharacters(prompt, promptShownMax)}\n\n[This is the beginning. The variable \`context\` ` +
      `holds the whole text: ${counted(prompt.length, 'character')}.]`;

const iterationWords = (iteration: number, most: number): string =>
  most > 0 ? `Iteration ${iteration} of ${most}.` : `Iteration ${iteration}.`;

/** The first message of a run with an environment. */
export const taskWords = ({ task, iterationsMax }: Run): string =>
  [
    task.kind === 'question'
      ? `${task.question}\n\n${inputWords(task.inputs)}`
      : promptWords(task.prompt),
    iterationWords(1, iterationsMax),
  ].join('\n\n');

/** The only message of a plain call. */
export const plainWords = ({ task }: Run): string => {
  if (task.kind === 'prompt') return task.prompt;
  return task.inputs.length === 0
    ? task.question
    : `${task.question}\n\n${inputWords(task.inputs)}`;
};

// ---- What cells came to ----

const variableWords = ({ name, type, size }: CellVariable): string =>
  size === null ? `${name} (${type})` : `${name} (${type}, ${groupDigits(size)})`;

const shown = (text: string, outputMax: number): string =>
  text.length <= outputMax + cutNoteMax ? text : cutCharacters(text, outputMax);

const endWords: Readonly<Record<CellReport['status'], string>> = {
  ok: '',
  raised: '',
  stopped: 'The cell was stopped before its end. Its variables are kept.',
  died: 'The process of the cell ended.',
};

const cellWords = ({ report }: FinishedCell, heading: string, outputMax: number): string => {
  const { stdout, stderr, variables, status, variablesLost } = report;
  const parts = [
    stdout === '' ? '' : shown(stdout, outputMax),
    stderr === '' ? '' : `Errors:\n${shown(stderr, outputMax)}`,
    endWords[status],
    variablesLost === 'yes' ? 'All variables were lost; only `context` is there again.' : '',
    variables.length === 0
      ? ''
      : `Variables: ${cutCharacters(variables.map(variableWords).join(', '), variablesMax)}`,
  ].filter((part) => part !== '');
  return [heading, ...(parts.length === 0 ? ['(no output)'] : parts)].join('\n');
};

const outputWords = (cells: readonly FinishedCell[], outputMax: number): readonly string[] =>
  cells.map((cell, index) => {
    const heading =
      cells.length === 1 ? 'Output:' : `Output of block ${index + 1} of ${cells.length}:`;
    return cellWords(cell, heading, outputMax);
  });

/** The message after an iteration, which `run.iterations` already counts. */
export const iterationOver = (run: Run, cells: readonly FinishedCell[]): string =>
  [
    ...outputWords(cells, run.settings.outputMax),
    ...(cells.length === 0 && run.notes.length === 0 ? [NO_PROGRAM] : []),
    ...run.notes,
    iterationWords(run.iterations + 1, run.iterationsMax),
  ].join('\n\n');

// Notes about a reply, and about variables

const NO_PROGRAM =
  'The reply had no program and no answer. Write code between fences that are tagged `repl`.';
export const EMPTY_REPLY = 'Your reply was empty.';
export const CUT_REPLY = 'Your reply was cut off: its last block is not whole and did not run.';
export const onlyFirstRan = (count: number): string =>
  `Your reply had ${count} programs. Only the first ran, the others did not: write one program in ` +
  'a reply, and read what it prints before you write the next.';
export const noVariable = (name: string): string =>
  `FINAL_VAR(${name}): there is no variable of this name.`;
export const LOST_VARIABLES =
  'The environment was interrupted and could not be built again: all variables were lost; ' +
  'only `context` is there.';
export const CHANGED_VARIABLES =
  'The environment was interrupted and built again from its cells; some printed something ' +
  'else this time. Look at variables before you rely on them.';

/** Tells an answered run that its limit was raised and it can continue. */
export const raisedWords = ({ iterations, iterationsMax }: Run, refused: number): string => {
  const unanswered =
    refused === 0
      ? ''
      : ` ${counted(refused, 'prompt')} of your programs had no answer because of the limit: ` +
        'ask again for what you need.';
  return (
    `The limit that you met was raised, and the variables are there again.${unanswered} Go on, ` +
    `and submit a better answer.\n\n${iterationWords(iterations + 1, iterationsMax)}`
  );
};

/** Asks for the answer with the last call. */
export const closingWords = (why: string): string =>
  `There will be no further iteration: ${why}. Give the final answer now, the best that what ` +
  'you know allows.';

// ---- Sub-calls ----

/** The text of a slot without an answer. Code can recognize it by its prefix. */
export const errorText = (why: string): string => `Error: ${why}`;

/** The text of a sub-call's slot when its child has ended. */
export const outcomeText = (outcome: Outcome): string => {
  switch (outcome.status) {
    case 'answered':
      return outcome.answer;
    case 'stopped':
    case 'failed':
      return errorText(outcome.message);
    case 'cancelled':
      return errorText('cancelled');
    default:
      return outcome satisfies never;
  }
};
