import type { Message } from '../agent/message.js';
import type { Reply, Rule } from './script.js';

/** What a template names: `$1` to `$9`, `$<name>`, `$&` all that matched, `$$` a dollar. */
const NAMED = /\$(?:([1-9])|<([^>]*)>|([&$]))/g;

const fill = (template: string, match: RegExpExecArray): string =>
  template.replace(NAMED, (_whole, number?: string, name?: string, sign?: string) => {
    if (number !== undefined) return match[Number(number)] ?? '';
    if (name !== undefined) return match.groups?.[name] ?? '';
    return sign === '&' ? match[0] : '$';
  });

/** The text of a message that is no reply: what the user typed, results, notes. */
export const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'call' ? part.tool : part.text)).join('\n');

/**
 * Finds the first rule that fits the last message, its text filled in.
 *
 * It looks at nothing else and remembers nothing: requests of many conversations may come at once and in any order.
 */
export const createRules = (
  rules: readonly Rule[] = [],
): ((messages: readonly Message[]) => Reply | undefined) => {
  const tried = rules.map((rule) => ({ rule, pattern: new RegExp(rule.when, 'u') }));
  return (messages) => {
    const text = tried.length === 0 ? '' : textOf(messages.at(-1));
    for (const { rule, pattern } of tried) {
      const match = pattern.exec(text);
      if (match === null) continue;
      const { when: _when, ...reply } = rule;
      return reply.text === undefined ? reply : { ...reply, text: fill(reply.text, match) };
    }
    return undefined;
  };
};
