/** The questions of MCP servers in a terminal. */

import {
  type FieldValue,
  type QuestionField,
  readTyped,
  type ServerAnswer,
  type ServerQuestion,
} from '@pawl/agent/extensions/mcp/question';
import { harmless, indentWords, type Look, oneLine, paint } from '@pawl/terminal/paint';
import { serverQuestionRows } from '@pawl/terminal/question-rows';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';

/** The question that waits for lines of the user. */
type OpenForm = {
  readonly question: ServerQuestion;
  /** The next field; null while the user has not said whether to answer. */
  field: number | null;
  readonly content: [string, FieldValue][];
  answered(answer: ServerAnswer): void;
};

/** The input line. `isBegun`: whether something is typed in it. */
type UnsentLine = { isBegun(): boolean; giveBack(text: string): void };

const DECLINED: ServerAnswer = { action: 'decline' };
const YES = /^\s*y(es)?\s*$/i;
const NO = /^\s*no?\s*$/i;

const formFields = ({ asks }: ServerQuestion): readonly QuestionField[] =>
  asks.kind === 'form' ? asks.fields : [];

const fieldHint = ({ type }: QuestionField): string => {
  if (type.kind === 'boolean') return ' (y or n)';
  if (type.kind === 'choice') return ' (a number of the list)';
  if (type.kind === 'choices') return ' (numbers of the list, with commas)';
  return type.kind === 'text' ? '' : ' (a number)';
};

/**
 * The questions of MCP servers, answered by typed lines, one question at a time.
 *
 * 1. Until the user has typed `y`, no line goes to the server: `n` declines, and every other line
 *    goes to the agent. After `y` every line goes to the server, one with a slash as well.
 * 2. If a question ends from outside, a line that the user types for it goes to nobody: the user
 *    gets it back.
 * 3. Nothing is filled in: what the server gets was typed for it.
 */
export class ServerForms {
  readonly #look: Look;
  readonly #print: (text: Safe) => void;
  readonly #line: UnsentLine;
  #open: OpenForm | null = null;
  /** The server whose question has ended while a line was typed for it; null for none. */
  #begunFor: string | null = null;

  constructor(look: Look, print: (text: Safe) => void, line: UnsentLine) {
    this.#look = look;
    this.#print = print;
    this.#line = line;
  }

  /**
   * Asks the user. The caller asks one question at a time. `signal` withdraws it; if its reason is
   * a text, the user is told that text as the reason.
   */
  ask(question: ServerQuestion, signal: AbortSignal): Promise<ServerAnswer> {
    return new Promise((resolve) => {
      const withdraw = (): void => {
        open.answered({ action: 'cancel' });
        // Nobody sees the line of a plain terminal before Enter.
        const isBegun = this.#look.plain === 'yes' || this.#line.isBegun();
        if (open.field !== null && isBegun) this.#begunFor = question.server;
        this.#printNote(
          typeof signal.reason === 'string' ? signal.reason : 'withdrawn: the call has ended',
        );
      };
      const open: OpenForm = {
        question,
        field: null,
        content: [],
        answered: (answer) => {
          signal.removeEventListener('abort', withdraw);
          this.#open = null;
          resolve(answer);
        },
      };
      signal.addEventListener('abort', withdraw, { once: true });
      this.#open = open;
      this.#print(
        joinSafe(serverQuestionRows(question, this.#look.columns, 'withoutChoices'), safe`\n`),
      );
      if (this.#look.plain === 'yes') this.#print(this.#promptText(open));
    });
  }

  /** What the next line answers; null if it goes to the agent. */
  get row(): Safe | null {
    if (this.#open === null) return null;
    const { columns } = this.#look;
    return paint(this.#look, 'yellow', oneLine(this.#promptText(this.#open), columns - 1));
  }

  /** Takes a typed line; false if it is not for the server. */
  take(typed: string): boolean {
    const open = this.#open;
    const server = this.#begunFor;
    this.#begunFor = null;
    if (server !== null && typed.trim() !== '') {
      this.#printNote(
        `not sent: your line may be for ${server}, whose question is over. Enter it again for the agent`,
      );
      this.#line.giveBack(typed);
      return true;
    }
    if (open === null) return false;
    if (open.field === null) return this.#takeFirst(open, typed);
    const field = formFields(open.question)[open.field];
    if (field !== undefined) this.#takeField(open, field, typed);
    return true;
  }

  #takeFirst(open: OpenForm, typed: string): boolean {
    if (NO.test(typed)) {
      this.#printNote('declined');
      open.answered(DECLINED);
      return true;
    }
    if (!YES.test(typed)) return false;
    this.#next(open, 0);
    return true;
  }

  #takeField(open: OpenForm, field: QuestionField, typed: string): void {
    const nextField = (open.field ?? 0) + 1;
    const isEmpty = typed.trim() === '';
    const read = isEmpty ? null : readTyped(typed, field);
    if (isEmpty && field.isRequired) {
      this.#printNote('declined: it needs an answer here');
      open.answered(DECLINED);
    } else if (read?.kind === 'invalid') this.#printNote(read.why);
    else {
      if (read !== null) open.content.push([field.name, read.value]);
      if (read !== null) this.#printNote(`${field.label}: ${typed}`);
      this.#next(open, nextField);
    }
  }

  /** `index`: of the field that is asked next; behind the last one the answer is sent. */
  #next(open: OpenForm, index: number): void {
    const field = formFields(open.question)[index];
    open.field = index;
    if (field === undefined) {
      this.#printNote(`sent to ${open.question.server}`);
      open.answered({ action: 'accept', content: Object.fromEntries(open.content) });
    } else {
      const choices = 'choices' in field.type ? field.type.choices : [];
      for (const [place, { label }] of choices.entries()) this.#printNote(`${place + 1}  ${label}`);
      if (this.#look.plain === 'yes') this.#print(this.#promptText(open));
    }
  }

  #promptText({ question, field: index }: OpenForm): Safe {
    const server = oneLine(question.server, 40);
    if (index === null) {
      const isForm = question.asks.kind === 'form';
      return safe`${server} asks: y and Enter ${isForm ? safe`to answer` : safe`once you have done it`}, n and Enter to decline`;
    }
    const field = formFields(question)[index];
    if (field === undefined) return server;
    const alone = field.isRequired ? safe`Enter alone declines` : safe`Enter alone leaves it out`;
    return safe`for ${server}, not the agent: ${oneLine(field.label, 60)}${makeSafe(fieldHint(field))} · ${alone}`;
  }

  #printNote(text: string): void {
    this.#print(paint(this.#look, 'dim', indentWords(harmless(text), this.#look.columns)));
  }
}
