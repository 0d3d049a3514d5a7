import { skillIn } from '../../extensions/skills/prompt-block.js';
import type { Message } from '../../machine/message.js';

/** Skills in use, which a summary keeps word for word: those that the model loaded, and those that the user named. */

type Part = Message['parts'][number];

const PREFIX = 'skill ';
const EARLIER = /\[kept: skill ([\w-]+)\]\n/g;

export type KeptText = { readonly name: string; readonly text: string };

/** The texts in which a part can hold skills: a loaded one, the user's message, those of an earlier summary. */
const skillsIn = (part: Part): readonly KeptText[] => {
  if (part.type === 'result') {
    const found = part.tool === 'skill' && !part.failed ? skillIn(part.text) : null;
    return found === null ? [] : [found];
  }
  if (part.type !== 'text' || !('origin' in part)) return [];
  if (part.origin === 'user') {
    const found = skillIn(part.text);
    return found === null ? [] : [found];
  }
  return [...part.text.matchAll(EARLIER)].flatMap(({ index, 0: heading }) => {
    const rest = part.text.slice(index + heading.length);
    const next = rest.search(/\n<\/skill>\n+\[kept: /);
    const found = skillIn(next < 0 ? rest : rest.slice(0, next + '\n</skill>'.length));
    return found === null ? [] : [found];
  });
};

/** The newest text of each skill, the oldest first. If they exceed the limit, the newest ones are kept. */
export const keptSkills = (messages: readonly Message[], limitBytes: number): readonly KeptText[] => {
  const byName = new Map<string, string>();
  for (const { parts } of messages)
    for (const { name, text } of parts.flatMap(skillsIn)) {
      byName.delete(name);
      byName.set(name, text);
    }
  const kept: KeptText[] = [];
  let room = limitBytes;
  for (const [name, text] of [...byName].reverse()) {
    room -= Buffer.byteLength(text);
    if (room < 0) break;
    kept.unshift({ name: `${PREFIX}${name}`, text });
  }
  return kept;
};

/** A message of the user without the text of its skill, which is kept under a heading of its own. */
export const withoutSkill = (text: string): string => {
  const found = skillIn(text);
  return found === null ? text : text.replace(found.text, () => `(the skill ${found.name} stands below)`);
};
