/**
 * Checks the bodies of requests: a new session, a fork, an input. Each check returns the value or
 * throws an `ApiFault` that names the wrong field.
 */

import type { UserEvent } from '@pawl/agent/machine/event';
import type { Limits } from '@pawl/agent/machine/settings';
import type { Input } from '@pawl/agent/ports/session';
import { checkInput } from '@pawl/agent/session/outside-values';
import * as v from 'valibot';
import { ApiFault } from './api-fault.js';
import { amount, count, firstIssue, type Labels, labelsSchema, type ServeKey } from './keys.js';

const TEXT_MAX = 4_096;
const words = v.pipe(
  v.string(),
  v.minLength(1, 'must not be empty'),
  v.maxLength(TEXT_MAX, 'is too long'),
);

const whole = v.pipe(amount, v.transform(Math.ceil));
const MINUTE_MS = 60_000;

export const newSessionSchema = v.strictObject({
  workspace: v.union(
    [v.strictObject({ folder: words }), v.strictObject({ repository: words, commit: words })],
    'must be { "folder": PATH } or { "repository": NAME, "commit": HASH }',
  ),
  preset: v.exactOptional(
    v.literal(
      'plan',
      'can only be "plan", which only reads; everything else is the choice of the operator',
    ),
  ),
  /** Absent: that of the key or of the node. */
  model: v.exactOptional(words),
  labels: v.optional(labelsSchema, {}),
  limits: v.optional(
    v.pipe(
      v.strictObject({
        usd: v.exactOptional(amount),
        tokens: v.exactOptional(whole),
        rounds: v.exactOptional(whole),
        minutes: v.exactOptional(amount),
      }),
      v.transform(
        ({ minutes, ...limits }): Partial<Limits> =>
          minutes === undefined ? limits : { ...limits, timeMs: Math.ceil(minutes * MINUTE_MS) },
      ),
    ),
    {},
  ),
});

export type NewSessionRequest = v.InferOutput<typeof newSessionSchema>;

export const forkSchema = v.strictObject({ seq: count });

/**
 * Which sessions of a list: at most `limit`, older than `before`; null: the newest. `label`: only
 * those that carry all of these.
 */
export const pageSchema = v.strictObject({
  limit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[1-9]\d{0,2}$|^1000$/, 'must be a number from 1 to 1000'),
      v.transform(Number),
    ),
    '100',
  ),
  before: v.optional(v.nullable(words), null),
  label: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$/, 'must be NAME=VALUE, or several with commas'),
      v.transform(
        (text): Labels => Object.fromEntries(text.split(',').map((one) => one.split('=', 2))),
      ),
    ),
    undefined,
  ),
});

export type ListedPage = v.InferOutput<typeof pageSchema>;

/** Checks a body, or the parameters of an address. */
export const readShape = <S extends v.GenericSchema>(
  schema: S,
  body: unknown,
): v.InferOutput<S> => {
  const parsed = v.safeParse(schema, body);
  if (parsed.success) return parsed.output;
  const issue = firstIssue(parsed.issues, 'the body');
  throw new ApiFault('badRequest', `${issue}. docs/build/serve.md has an example of each request.`);
};

/** The events that a client may send; null for those that it may not, with what to do instead. */
const inputRules: Readonly<Record<UserEvent['type'], null | string>> = {
  UserInput: null,
  ApprovalAnswered: null,
  CancelTurn: null,
  CancelTool: null,
  RetryLast: null,
  RetryNow: null,
  EditQueue: null,
  CompactRequested: null,
  Start: 'A session starts with its first input.',
  ApproveBudget:
    'Limits are set when a session is created. Create one with higher limits, or ask the operator.',
  SettingsChanged: 'Settings are the choice of the operator.',
  ShutdownRequested: 'To close the session: POST /v1/sessions/ID/close.',
  InputFailed: 'It is for programs that read a keyboard.',
};

const clientEvents = Object.entries(inputRules).flatMap(([name, rule]) =>
  rule === null ? [name] : [],
);

/** `{ "text" }`, or an event of a client. Its other fields are checked as those of an event. */
export const inputSchema = v.union([
  v.strictObject({ text: v.string() }),
  v.looseObject({ type: v.picklist(clientEvents) }),
]);

const inputType = (body: unknown): string =>
  typeof body === 'object' && body !== null && 'type' in body && typeof body.type === 'string'
    ? body.type
    : '';

/** Events that only the owner of the sessions may send. */
const OWNER_EVENTS: readonly string[] = ['ApproveBudget', 'SettingsChanged'];

/** The code that came with an answer; null without one. It is no part of the event. */
const splitCode = (body: unknown): { readonly body: unknown; readonly code: string | null } => {
  if (inputType(body) !== 'ApprovalAnswered') return { body, code: null };
  const { code, ...event } = body as Readonly<Record<string, unknown>>; // it has a type
  if (code === undefined) return { body: event, code: null };
  if (typeof code === 'string') return { body: event, code };
  throw new ApiFault('badRequest', 'code: must be the code of the question, as text.');
};

/** An input of a client, and the code of the question that it answers; null if it names none. */
export const readInput = (
  body: unknown,
  key: Pick<ServeKey, 'isOwner'>,
): { readonly input: Input; readonly code: string | null } => {
  const { body: event, code } = splitCode(body);
  return { input: readEvent(event, key), code };
};

/** `{ "text": … }` is short for a UserInput. */
const readEvent = (body: unknown, { isOwner }: Pick<ServeKey, 'isOwner'>): Input => {
  const isShort = typeof body === 'object' && body !== null && !('type' in body) && 'text' in body;
  const event = isShort ? { type: 'UserInput', mode: 'steer', ...body } : body;
  const type = inputType(event);
  if (!Object.hasOwn(inputRules, type)) {
    throw new ApiFault(
      'badRequest',
      `type: must be one of ${clientEvents.join(', ')}, or send { "text": "…" }.`,
    );
  }
  const rule = inputRules[type as UserEvent['type']]; // it is one of the names
  if (isOwner === 'yes' && (rule === null || OWNER_EVENTS.includes(type)))
    return refuseMalformed(event);
  if (rule !== null) throw new ApiFault('notAllowed', `A client may not send ${type}. ${rule}`);
  const input = refuseMalformed(event);
  if (input.type === 'UserInput' && (input.images ?? []).length > 0)
    throw new ApiFault(
      'badRequest',
      'images: a node takes no pictures. Put the picture into the workspace.',
    );
  return input;
};

const refuseMalformed = (event: unknown): Input => {
  try {
    return checkInput(event);
  } catch (error) {
    if (error instanceof TypeError) throw new ApiFault('badRequest', error.message);
    throw error;
  }
};

/** Where a stream begins. */
export const afterSchema = v.strictObject({ after: v.optional(v.string()) });

const REQUEST_ID = /^[\x21-\x7e]{1,200}$/;

/** The header `Idempotency-Key`; null without it. */
export const readRequestId = (header: string | readonly string[] | undefined): string | null => {
  if (header === undefined) return null;
  if (typeof header === 'string' && REQUEST_ID.test(header)) return header;
  throw new ApiFault(
    'badRequest',
    'Idempotency-Key must have 1 to 200 characters of ASCII, without spaces.',
  );
};

/**
 * Whether an input helps a running turn to its end, so that a node that shuts down still takes it.
 */
export const endsTurns = ({ type }: Input): boolean =>
  type === 'CancelTurn' || type === 'CancelTool' || type === 'ApprovalAnswered';

/** Whether an input asks for a request to the model. */
export const asksModel = ({ type }: Input): boolean =>
  ['UserInput', 'RetryLast', 'RetryNow', 'CompactRequested'].includes(type);
