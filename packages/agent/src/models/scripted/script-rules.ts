import type { Message } from '../../machine/message.js';
import type { ScriptedReply, ScriptedRule } from './script.js';

/** Placeholders of a template: `$1` to `$9`, `$<name>`, `$&` for the whole match, `$$` for a dollar. */
const NAMED = /\$(?:([1-9])|<([^>]*)>|([&$]))/g;

const fill = (template: string, match: RegExpExecArray): string =>
  template.replace(NAMED, (_whole, number?: string, name?: string, sign?: string) => {
    if (number !== undefined) return match[Number(number)] ?? '';
    if (name !== undefined) return match.groups?.[name] ?? '';
    return sign === '&' ? match[0] : '$';
  });

/** The text of a user message: typed text, results, notes. */
export const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'call' ? part.tool : part.text)).join('\n');

/**
 * Finds the first rule that matches the last message, and fills in its text.
 *
 * It reads nothing else and remembers nothing: requests of many conversations may come at once and in any order.
 */
export const createRules = (
  rules: readonly ScriptedRule[] = [],
): ((messages: readonly Message[]) => ScriptedReply | undefined) => {
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
