import type { PromptFile } from './prompt-file.js';

/** What a session's instructions say about skills: names and descriptions, never bodies. The tool names their folders. */

/** More skills are only for the user. Their names would fill the declaration of the tool. */
const OFFERED_MAX = 200;
const CHARACTERS_MAX = 16_000;
/** Descriptions are not cut below this: whole skills are left out instead. */
const DESCRIPTION_MIN = 60;
/** Characters of a line beside name and description. */
const LINE_FRAME = '\n- : '.length;
const CUT_MARK = '…';

export type OfferedSkills = {
  readonly skills: readonly PromptFile[];
  /** Section of the instructions; null without skills. */
  readonly section: string | null;
  /** For the user; empty if everything fits. */
  readonly warning: string;
};

const INTRO = `# Skills
Instructions for certain kinds of work. If a task fits a description, load the skill with the tool \`skill\` before you begin, and follow it. A skill allows nothing that is not allowed otherwise.`;

/** The last line if skills are left out. */
const omission = (count: number): string =>
  count === 0 ? '' : `\n${count} more are not listed. The user can call them by their /name.`;

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length - CUT_MARK.length).trimEnd()}${CUT_MARK}` : text;

const lineFor = ({ name, description }: PromptFile, length: number): string =>
  description === '' ? `\n- ${name}` : `\n- ${name}: ${cut(description, length)}`;

/** Characters of the lines if no description is longer than `length`; cut ones may be shorter. */
const sizeWith = (skills: readonly PromptFile[], length: number): number =>
  skills.reduce(
    (sum, { name, description }) => sum + LINE_FRAME + name.length + Math.min(description.length, length),
    0,
  );

/** As many of the skills, from the first on, as fit with their shortest descriptions. */
const fitting = (skills: readonly PromptFile[], budget: number): readonly PromptFile[] => {
  let count = 0;
  for (let size = 0; count < skills.length; count++) {
    size += sizeWith(skills.slice(count, count + 1), DESCRIPTION_MIN);
    if (size > budget) break;
  }
  return skills.slice(0, count);
};

/** The greatest length of a description with which all of them fit: the longest are cut first. */
const longestLength = (skills: readonly PromptFile[], budget: number): number => {
  const longest = Math.max(DESCRIPTION_MIN, ...skills.map(({ description }) => description.length));
  let [fits, exceeds] = [DESCRIPTION_MIN, longest + 1];
  while (exceeds - fits > 1) {
    const middle = (fits + exceeds) >> 1;
    if (sizeWith(skills, middle) <= budget) fits = middle;
    else exceeds = middle;
  }
  return fits;
};

/** The skills that the model is told of. Those of the project come first if there are too many. */
export const offerSkills = (files: readonly PromptFile[]): OfferedSkills => {
  const all = files.filter(({ offered }) => offered === 'toModel');
  if (all.length === 0) return { skills: [], section: null, warning: '' };
  const byOwner = [...all].sort((one, other) => (one.place.owner < other.place.owner ? -1 : 1));
  const budget = CHARACTERS_MAX - INTRO.length - omission(all.length).length;
  const chosen = new Set(fitting(byOwner.slice(0, OFFERED_MAX), budget));
  const skills = all.filter((one) => chosen.has(one));
  const length = longestLength(skills, budget);
  const omitted = all.length - skills.length;
  const shortened = skills.filter(({ description }) => description.length > length).length;
  const section = `${INTRO}${skills.map((skill) => lineFor(skill, length)).join('')}${omission(omitted)}`;
  const warning = [
    ...(omitted > 0
      ? [`The model is told of ${skills.length} skills; ${omitted} more can only be used by their /name.`]
      : []),
    ...(shortened > 0
      ? [
          `The descriptions of ${shortened} skills are cut to ${length} characters, since all skills together may have ${CHARACTERS_MAX}.`,
        ]
      : []),
  ].join(' ');
  return { skills, section, warning };
};
