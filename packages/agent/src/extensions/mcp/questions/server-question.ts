import type { ElicitRequestParams } from '@modelcontextprotocol/client';

/**
 * A question of an MCP server to the user (elicitation), as it is shown.
 *
 * 1. All texts are the server's: they are cut here, and made safe where they are shown.
 * 2. A form that nobody would fill in is no question. Null then.
 */

export type FieldChoice = { readonly value: string; readonly label: string };

export type FieldType =
  | { readonly kind: 'text' | 'number' | 'integer' | 'boolean' }
  | { readonly kind: 'choice' | 'choices'; readonly choices: readonly FieldChoice[] };

export type QuestionField = {
  /** As the server names it. */
  readonly name: string;
  /** One line for the user. */
  readonly label: string;
  readonly isRequired: boolean;
  readonly type: FieldType;
};

export type ServerQuestion = {
  readonly server: string;
  readonly message: string;
  /** A form, or an address that the user is to open. */
  readonly asks:
    | { readonly kind: 'form'; readonly fields: readonly QuestionField[] }
    | { readonly kind: 'address'; readonly url: string };
};

export type FieldValue = string | number | boolean | string[];

export type ServerAnswer =
  | { readonly action: 'accept'; readonly content: Readonly<Record<string, FieldValue>> }
  /** `cancel`: nobody has answered. */
  | { readonly action: 'decline' | 'cancel' };

/** Asks the user. The signal withdraws the question; it then resolves all the same. */
export type AskUser = (question: ServerQuestion, signal: AbortSignal) => Promise<ServerAnswer>;

const MESSAGE_MAX = 2_000;
const LABEL_MAX = 200;
const NAME_MAX = 100;
const URL_MAX = 2_000;
const FIELDS_MAX = 10;
const CHOICES_MAX = 50;

type Clean = (text: string) => string;

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most)}…`);

const textIn = (value: object, key: string): string | null => {
  const text: unknown = Reflect.get(value, key);
  return typeof text === 'string' && text !== '' ? text : null;
};

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** The choices of a list of texts, or of objects with `const` and `title`; null if it is neither. */
const choicesIn = (list: unknown, labels: unknown, clean: Clean): readonly FieldChoice[] | null => {
  if (!Array.isArray(list) || list.length === 0 || list.length > CHOICES_MAX) return null;
  const choices = list.map((one: unknown, index): FieldChoice | null => {
    const value = isObject(one) ? textIn(one, 'const') : one;
    if (typeof value !== 'string' || value === '' || value.length > LABEL_MAX) return null;
    const label: unknown = isObject(one)
      ? textIn(one, 'title')
      : Array.isArray(labels)
        ? labels[index]
        : null;
    return { value, label: cut(clean(typeof label === 'string' ? label : value), LABEL_MAX) };
  });
  return choices.every((choice) => choice !== null) ? choices : null;
};

const typeOf = (schema: object, clean: Clean): FieldType | null => {
  const field = (key: string): unknown => Reflect.get(schema, key);
  const listed = field('enum') ?? field('oneOf');
  switch (field('type')) {
    case 'string': {
      if (listed === undefined) return { kind: 'text' };
      const choices = choicesIn(listed, field('enumNames'), clean);
      return choices === null ? null : { kind: 'choice', choices };
    }
    case 'array': {
      const items = field('items');
      if (!isObject(items)) return null;
      const several = Reflect.get(items, 'enum') ?? Reflect.get(items, 'anyOf');
      const choices = choicesIn(several, null, clean);
      return choices === null ? null : { kind: 'choices', choices };
    }
    case 'number':
      return { kind: 'number' };
    case 'integer':
      return { kind: 'integer' };
    case 'boolean':
      return { kind: 'boolean' };
    default:
      return null;
  }
};

const fieldOf = (name: string, schema: object, isRequired: boolean, clean: Clean): QuestionField | null => {
  const type = typeOf(schema, clean);
  if (type === null || name.length > NAME_MAX) return null;
  const [title, about] = [textIn(schema, 'title') ?? name, textIn(schema, 'description')];
  const label = cut(clean(about === null ? title : `${title}: ${about}`), LABEL_MAX);
  return { name, label, isRequired, type };
};

/** Null for a question that can't be asked (rule 2). `clean` replaces secrets in the server's words. */
export const readServerQuestion = (
  server: string,
  params: ElicitRequestParams,
  clean: Clean,
): ServerQuestion | null => {
  const message = cut(clean(params.message), MESSAGE_MAX);
  if (params.mode === 'url') {
    const { url } = params;
    const isShown = url.length <= URL_MAX && /^https?:/i.test(url) && URL.canParse(url);
    return isShown ? { server, message, asks: { kind: 'address', url: clean(url) } } : null;
  }
  const { properties, required = [] } = params.requestedSchema;
  const entries = Object.entries(properties);
  if (entries.length > FIELDS_MAX) return null;
  const fields = entries.map(([name, schema]) => fieldOf(name, schema, required.includes(name), clean));
  if (!fields.every((field) => field !== null)) return null;
  return { server, message, asks: { kind: 'form', fields } };
};
