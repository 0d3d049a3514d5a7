import {
  count,
  type Fields,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  variant,
} from '@pawl/machine/kernel/shape';
import type { CallFacts, CallVerdict, JudgedCall, McpToolName, ParsedCommand, ShellFacts } from '../call.js';
import { jsonShape, needsShape, traitsShape, verdictsShape } from './value-shapes.js';

/** The shape of a judged call: the runtime's facts about a call, on which the machine decides. */

const words = list(text);

const commandShape: Shape<ParsedCommand> = object<ParsedCommand>({
  words: list(nullable(text)),
  assignments: words,
  writes: list(nullable(text)),
  appends: optional(list(count)),
  patterns: optional(list(nullable(text))),
  program: nullable(text),
  runs: optional(count),
  mayRun: optional(count),
  wrapped: optional(oneOf({ yes: 1 })),
});
const shellShape: Shape<ShellFacts> = object<ShellFacts>({
  commands: list(commandShape),
  unclear: nullable(text),
  indirect: optional(text),
});

export const factsShape: Shape<CallFacts> = object<CallFacts>({
  argv: words,
  paths: words,
  hosts: words,
  shape: text,
  needs: optional(needsShape),
  shell: optional(shellShape),
  protected: optional(words),
  secret: optional(words),
  unrecoverable: optional(words),
  background: optional(oneOf({ yes: 1 })),
  mcp: optional(
    object<McpToolName>({
      server: text,
      tool: text,
      from: optional(oneOf({ project: 1 })),
      declaration: optional(oneOf({ changed: 1 })),
    }),
  ),
});

/** Fields of the verdict on a call that can't start. */
export const invalidFields: Fields<Omit<Extract<CallVerdict, { readonly kind: 'invalid' }>, 'kind'>> = {
  field: text,
  why: text,
};

export const judgedCallShape: Shape<JudgedCall> = object<JudgedCall>({
  callId: text,
  tool: text,
  input: jsonShape,
  rawInput: optional(text),
  verdict: variant<CallVerdict, 'kind'>('kind', {
    ok: {},
    noSuchTool: { known: words },
    invalid: invalidFields,
  }),
  traits: traitsShape,
  facts: factsShape,
  title: optional(text),
  hooks: optional(verdictsShape),
});
