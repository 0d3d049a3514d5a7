import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expandArguments } from './expand-arguments.js';
import { readPromptText } from './find-prompt-files.js';
import { readFrontMatter } from './front-matter.js';
import { inOneLine, type PromptFile } from './prompt-file.js';

/** The text of a skill or command as the model gets it, between two lines that name it. */

const LISTED_MAX = 100;
const LISTED_DEPTH = 3;

/** Files beside SKILL.md, relative to its folder. Links are named, not followed. */
const filesBeside = async (folder: string): Promise<readonly string[]> => {
  const found: string[] = [];
  const waiting = [{ below: '', depth: 1 }];
  for (const { below, depth } of waiting) {
    const entries = await readdir(path.join(folder, below), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const name = path.join(below, entry.name);
      if (found.length === LISTED_MAX) return found;
      if (entry.isDirectory() && depth < LISTED_DEPTH) waiting.push({ below: name, depth: depth + 1 });
      else if (!entry.isDirectory() && name !== 'SKILL.md') found.push(inOneLine(name));
    }
  }
  return found;
};

export type PromptBlock =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly why: string };

const blockOf = (kind: PromptFile['kind'], name: string, lines: readonly string[]): string =>
  [`<${kind} name="${name}">`, ...lines, `</${kind}>`].join('\n');

/** Reads the file again, as safely as when it was loaded. Never rejects. */
export const readPromptBlock = async (
  { file, kind, name, place }: PromptFile,
  given: string,
): Promise<PromptBlock> => {
  const read = await readPromptText(file, place);
  if (read.kind === 'unusable') return read;
  const matter = await readFrontMatter(read.text);
  if (matter.kind === 'faulty') return { kind: 'unusable', why: `line ${matter.line}: ${matter.why}` };
  // A file that has become something else is not shown.
  if (kind === 'skill' && matter.kind === 'none')
    return { kind: 'unusable', why: 'it does not begin with front matter' };
  const body = expandArguments(matter.body.trim(), given);
  if (kind === 'command') return { kind: 'text', text: blockOf(kind, name, [body]) };
  const folder = path.dirname(file);
  const files = await filesBeside(folder);
  const about = [
    `Folder of the skill: ${inOneLine(folder)}`,
    ...(files.length === 0 ? [] : [`Files in it: ${files.join(', ')}`]),
  ];
  return { kind: 'text', text: blockOf(kind, name, [...about, '', body]) };
};

export type ActiveSkill = { readonly name: string; readonly text: string };

/** The skill in a text that was made by `readPromptBlock`; null without one. */
export const skillIn = (text: string): ActiveSkill | null => {
  const begin = /(?:^|\n)<skill name="([\w-]+)">\n/.exec(text);
  const name = begin?.[1];
  if (begin === null || name === undefined) return null;
  const end = text.lastIndexOf('\n</skill>');
  return end > begin.index ? { name, text: text.slice(begin.index, end).trimStart() + '\n</skill>' } : null;
};
