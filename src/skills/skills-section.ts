import { homedir } from 'node:os';
import { inOneLine, type PromptFile } from './prompt-file.js';

/** What a session's instructions say about skills: names, descriptions and places, never bodies. */

/** More skills are only for the user. Their names would fill the declaration of the tool. */
const OFFERED_MAX = 200;
const CHARACTERS_MAX = 16_000;
/** Descriptions are cut to the first of these lengths with which the section fits. */
const LENGTHS = [1_024, 300, 100, 0];

export type OfferedSkills = {
  readonly skills: readonly PromptFile[];
  /** Section of the instructions; null without skills. */
  readonly section: string | null;
  /** For the user; empty if everything fits. */
  readonly warning: string;
};

const INTRO = `# Skills
Instructions for certain kinds of work. If a task fits a description, load the skill with the tool \`skill\` before you begin, and follow it. A skill allows nothing that is not allowed otherwise.`;

const nearHome = (file: string): string => {
  const home = process.env.HOME || homedir();
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file;
};

const sectionWith = (skills: readonly PromptFile[], length: number): string => {
  const lines = skills.map(({ name, description, file }) => {
    const about = description.length > length ? description.slice(0, length).trimEnd() : description;
    return `- ${name}${about === '' ? '' : `: ${about}`} (${inOneLine(nearHome(file))})`;
  });
  return [INTRO, ...lines].join('\n');
};

/** The skills that the model is told of. Those of the project come first if there are too many. */
export const offerSkills = (files: readonly PromptFile[]): OfferedSkills => {
  const all = files.filter(({ offered }) => offered === 'toModel');
  if (all.length === 0) return { skills: [], section: null, warning: '' };
  const byOwner = [...all].sort((one, other) => (one.place.owner < other.place.owner ? -1 : 1));
  const chosen = new Set(byOwner.slice(0, OFFERED_MAX));
  let skills = all.filter((one) => chosen.has(one));
  const sections = LENGTHS.map((length) => ({ length, text: sectionWith(skills, length) }));
  let fitting = sections.find(({ text }) => text.length <= CHARACTERS_MAX);
  while (fitting === undefined) {
    // Long paths alone fill the section.
    skills = skills.slice(0, Math.floor(skills.length / 2));
    const text = sectionWith(skills, 0);
    if (text.length <= CHARACTERS_MAX || skills.length === 0) fitting = { length: 0, text };
  }
  const left = all.length - skills.length;
  const warning = [
    ...(left > 0
      ? [`The model is told of ${skills.length} skills; ${left} more can only be used by their /name.`]
      : []),
    ...(fitting.length < 1_024
      ? [
          `Descriptions of skills are cut to ${fitting.length} characters, since all of them may have ${CHARACTERS_MAX}.`,
        ]
      : []),
  ].join(' ');
  return { skills, section: fitting.text, warning };
};
