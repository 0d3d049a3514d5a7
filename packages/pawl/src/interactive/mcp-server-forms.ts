import { readTyped } from '@pawl/agent/extensions/mcp/questions/field-values';
import type {
  FieldValue,
  QuestionField,
  ServerAnswer,
  ServerQuestion,
} from '@pawl/agent/extensions/mcp/questions/server-question';
import { harmless, type Look, oneLine, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { indentWords } from '@pawl/terminal/width';

/**
 * The questions of MCP servers in a terminal, answered by typed lines, one question at a time.
 *
 * 1. A line goes to the server only after the user has typed `y`. Until then every other line goes to the agent.
 * 2. Nothing is filled in: what the server gets was typed for it.
 */

type OpenForm = {
  readonly question: ServerQuestion;
  /** The next field; null while the user has not said whether to answer. */
  field: number | null;
  readonly content: [string, FieldValue][];
  answered(answer: ServerAnswer): void;
};

const DECLINED: ServerAnswer = { action: 'decline' };
const YES = /^\s*y(es)?\s*$/i;
const NO = /^\s*no?\s*$/i;

const fieldsOf = ({ asks }: ServerQuestion): readonly QuestionField[] =>
  asks.kind === 'form' ? asks.fields : [];

const hintOf = ({ type }: QuestionField): string => {
  if (type.kind === 'boolean') return ' (y or n)';
  if (type.kind === 'choice') return ' (a number of the list)';
  if (type.kind === 'choices') return ' (numbers of the list, with commas)';
  return type.kind === 'text' ? '' : ' (a number)';
};

/** What is asked, indented and made safe: the words and the names are the server's. */
const rowsOf = ({ server, message, asks }: ServerQuestion, columns: number): readonly Safe[] => {
  const fields = fieldsOf({ server, message, asks }).map(({ label, isRequired }) =>
    makeSafe(`- ${label}${isRequired ? '' : ' (may be left out)'}`),
  );
  const address =
    asks.kind === 'address' ? [safe`Open it yourself if you trust it: ${harmless(asks.url)}`] : [];
  return [
    safe`? The MCP server ${oneLine(server, columns)} asks:`,
    ...[harmless(message), ...fields, ...address].map((text) => indentWords(text, columns)),
  ];
};

export class ServerForms {
  readonly #look: Look;
  readonly #print: (text: Safe) => void;
  #open: OpenForm | null = null;

  constructor(look: Look, print: (text: Safe) => void) {
    this.#look = look;
    this.#print = print;
  }

  /** Asks the user. The caller asks one question at a time. */
  ask(question: ServerQuestion, signal: AbortSignal): Promise<ServerAnswer> {
    return new Promise((resolve) => {
      const withdraw = (): void => {
        open.answered({ action: 'cancel' });
        this.#tell('withdrawn: the call has ended');
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
      this.#print(joinSafe(rowsOf(question, this.#look.columns), safe`\n`));
      if (this.#look.plain === 'yes') this.#print(this.#words(open));
    });
  }

  /** What the next line answers; null if it goes to the agent. */
  get row(): Safe | null {
    if (this.#open === null) return null;
    const { columns } = this.#look;
    return paint(this.#look, 'yellow', oneLine(this.#words(this.#open), columns - 1));
  }

  /** Takes a typed line; false if it is not for the server. */
  take(typed: string): boolean {
    const open = this.#open;
    if (open === null) return false;
    if (open.field === null) return this.#takeFirst(open, typed);
    const field = fieldsOf(open.question)[open.field];
    if (field !== undefined) this.#takeField(open, field, typed);
    return true;
  }

  #takeFirst(open: OpenForm, typed: string): boolean {
    if (NO.test(typed)) {
      this.#tell('declined');
      open.answered(DECLINED);
      return true;
    }
    if (!YES.test(typed)) return false;
    this.#next(open, 0);
    return true;
  }

  #takeField(open: OpenForm, field: QuestionField, typed: string): void {
    const at = (open.field ?? 0) + 1;
    const isEmpty = typed.trim() === '';
    const read = isEmpty ? null : readTyped(typed, field);
    if (isEmpty && field.isRequired) {
      this.#tell('declined: it needs an answer here');
      open.answered(DECLINED);
    } else if (read?.kind === 'invalid') this.#tell(read.why);
    else {
      if (read !== null) open.content.push([field.name, read.value]);
      if (read !== null) this.#tell(`${field.label}: ${typed}`);
      this.#next(open, at);
    }
  }

  #next(open: OpenForm, at: number): void {
    const field = fieldsOf(open.question)[at];
    open.field = at;
    if (field === undefined) {
      this.#tell(`sent to ${open.question.server}`);
      open.answered({ action: 'accept', content: Object.fromEntries(open.content) });
    } else {
      const choices = 'choices' in field.type ? field.type.choices : [];
      for (const [index, { label }] of choices.entries()) this.#tell(`${index + 1}  ${label}`);
      if (this.#look.plain === 'yes') this.#print(this.#words(open));
    }
  }

  #words({ question, field: at }: OpenForm): Safe {
    const server = oneLine(question.server, 40);
    if (at === null) {
      const isForm = question.asks.kind === 'form';
      return safe`${server} asks: y and Enter ${isForm ? safe`to answer` : safe`once you have done it`}, n and Enter to decline`;
    }
    const field = fieldsOf(question)[at];
    if (field === undefined) return server;
    const alone = field.isRequired ? safe`Enter alone declines` : safe`Enter alone leaves it out`;
    return safe`for ${server}, not the agent: ${oneLine(field.label, 60)}${makeSafe(hintOf(field))} · ${alone}`;
  }

  #tell(text: string): void {
    this.#print(paint(this.#look, 'dim', indentWords(harmless(text), this.#look.columns)));
  }
}
