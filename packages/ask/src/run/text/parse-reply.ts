import type { Parity } from '../settings.js';
import { type CodeBlock, fencesOf } from './code-blocks.js';
import { type FinalForm, finalOf } from './final-answer.js';

/** A parsed reply: programs to run, and an answer. Parsing takes linear time for any text. */
export type Parsed = {
  /** In order. The last may be cut off in the middle (`closed: 'no'`). */
  readonly blocks: readonly { readonly code: string; readonly closed: 'yes' | 'no' }[];
  readonly final: FinalForm | null;
};

/** `repl`, alone or with attributes: ```repl title="x"```, ```{repl}```; not `replace`, not `repl-session`. */
const isProgram = ({ info }: CodeBlock): boolean => /^\{?\.?repl(?![\w-])/i.test(info);

export const parseReply = (text: string, parity: Pick<Parity, 'finalForms' | 'fences'>): Parsed => {
  const fences = fencesOf(text);
  const blocks = fences.filter(isProgram).map((fence) => ({ code: fence.text, closed: fence.closed }));
  const hidden = parity.fences === 'ignored' ? fences : [];
  return { blocks, final: parity.finalForms === 'on' ? finalOf(text, hidden) : null };
};
