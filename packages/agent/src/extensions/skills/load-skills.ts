/**
 * Loads names and descriptions of skills and commands. A broken file is a fault with its line; the
 * others are loaded. Bodies are read when they are used (read-skill.ts).
 *
 * From top to bottom: `loadPromptFiles`; and `offerSkills`, the section of the instructions about
 * them.
 */

import path from 'node:path';
import { realPath } from '../../platform/files.js';
import { cut } from '../../platform/text.js';
import {
  inOneLine,
  type PromptFault,
  type PromptFile,
  type PromptFiles,
  type PromptPlace,
  type PromptSources,
  promptPlaces,
} from './prompt-file.js';
import {
  type FrontMatter,
  findPromptFiles,
  readFrontMatter,
  readPromptText,
} from './read-skill.js';

const NAME_MAX = 64;
const DESCRIPTION_MAX = 1_024;
const HINT_MAX = 100;
/** Files of a project that are read. More would make each start slow. */
const PROJECT_FILES_MAX = 500;

/**
 * Loads all files of the places. `taken`: names of built-in commands. They win over what only the
 * user can call.
 */
export const loadPromptFiles = async (
  sources: PromptSources,
  taken: readonly string[] = [],
): Promise<PromptFiles> => {
  const byName = new Map<string, PromptFile>();
  const faults: PromptFault[] = [];
  const seen = new Set<string>();
  let remaining = PROJECT_FILES_MAX;
  for (const place of promptPlaces(sources)) {
    const search = await findPromptFiles(place);
    faults.push(...search.faults);
    for (const file of search.files) {
      const real = realPath(file) ?? file;
      if (seen.has(real)) continue;
      if (place.owner === 'project') remaining -= 1;
      if (place.owner === 'project' && remaining < 0) {
        if (remaining === -1) faults.push(tooMany(place));
        break;
      }
      const loaded = await loadPromptFile(file, place);
      faults.push(...loaded.faults);
      if (loaded.file === null) continue;
      seen.add(real);
      const { name, offered } = loaded.file;
      const first = byName.get(name);
      const isTaken = taken.includes(name);
      const note = (text: string, weight: PromptFault['weight'] = 'note'): void =>
        void faults.push({ file, line: null, text, weight });
      if (isTaken && offered === 'toUser') {
        note(`it is not used: /${name} is a command of Pawl`);
        continue;
      }
      const isReplaced = place.owner === 'user' && first?.place.owner === 'project';
      if (first !== undefined)
        note(
          `it is not used: ${first.file} has the same name, ${name}`,
          isReplaced ? 'replaced' : 'note',
        );
      else {
        byName.set(name, loaded.file);
        if (isTaken) note(`/${name} is a command of Pawl; only the model can load this skill`);
      }
    }
  }
  const files = [...byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return { files, faults };
};

type LoadedFile = { readonly file: PromptFile | null; readonly faults: readonly PromptFault[] };
type Fields = Extract<FrontMatter, { readonly kind: 'ok' }>;

/** A name that can be typed and declared: `My Skill` becomes `my-skill`. Perhaps empty. */
const usableName = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, NAME_MAX)
    .replace(/-+$/, '');

const fieldText = (fields: Fields['fields'], name: string): string => {
  const value = fields.get(name);
  // `argument-hint: [file]` is a list in YAML.
  if (Array.isArray(value)) return inOneLine(`[${value.join(', ')}]`);
  return typeof value === 'string' ? inOneLine(value) : '';
};

/** A file that is not used, with the reason. */
const skipped = (file: string, line: number | null, text: string): LoadedFile => ({
  file: null,
  faults: [{ file, line, text, weight: 'skipped' }],
});

/** A skill from its front matter. What is odd about it becomes a note. */
const readSkill = (file: string, place: PromptPlace, { fields, lineOf }: Fields): LoadedFile => {
  const faults: PromptFault[] = [];
  const note = (field: string, text: string): void =>
    void faults.push({ file, line: lineOf(field), text, weight: 'note' });
  const folder = path.basename(path.dirname(file));
  const written = fieldText(fields, 'name');
  const name = usableName(written) || usableName(folder);
  if (name === '')
    return skipped(
      file,
      lineOf('name'),
      'the skill is not used: its name has no letters a-z, digits or _',
    );
  if (name !== written) note('name', `the name should be ${name}, and is used so`);
  else if (name !== folder)
    note('name', `the name differs from the folder's name, ${cut(inOneLine(folder), 80)}`);
  const description = fieldText(fields, 'description');
  if (description === '')
    return skipped(file, lineOf('description'), 'the skill is not used: it has no description');
  if (description.length > DESCRIPTION_MAX)
    note(
      'description',
      `the description is cut: it has ${description.length} characters, at most ` +
        `${DESCRIPTION_MAX} are used`,
    );
  const isHidden = fieldText(fields, 'disable-model-invocation') === 'true';
  return {
    file: {
      kind: 'skill',
      name,
      description: cut(description, DESCRIPTION_MAX),
      hint: cut(fieldText(fields, 'argument-hint'), HINT_MAX),
      file,
      place,
      offered: isHidden ? 'toUser' : 'toModel',
    },
    faults,
  };
};

/** `dir/name.md` is the command `dir:name`. */
const readCommand = (file: string, place: PromptPlace, fields: Fields['fields']): LoadedFile => {
  const parts = path
    .relative(place.folder, file)
    .replace(/\.md$/, '')
    .split(path.sep)
    .map(usableName);
  if (parts.includes(''))
    return skipped(file, null, 'the command is not used: its name has no letters a-z, digits or _');
  return {
    file: {
      kind: 'command',
      name: parts.join(':'),
      description: cut(fieldText(fields, 'description'), DESCRIPTION_MAX),
      hint: cut(fieldText(fields, 'argument-hint'), HINT_MAX),
      file,
      place,
      offered: 'toUser',
    },
    faults: [],
  };
};

/** Loads one file of a place. Never rejects. */
const loadPromptFile = async (file: string, place: PromptPlace): Promise<LoadedFile> => {
  const read = await readPromptText(file, place);
  const unused = `the ${place.kind} is not used`;
  if (read.kind === 'unusable') return skipped(file, null, `${unused}: ${read.why}`);
  const matter = await readFrontMatter(read.text);
  if (matter.kind === 'faulty') return skipped(file, matter.line, `${unused}: ${matter.why}`);
  if (place.kind === 'command')
    return readCommand(file, place, matter.kind === 'ok' ? matter.fields : new Map());
  if (matter.kind === 'none')
    return skipped(file, 1, `${unused}: it does not begin with front matter (a line ---)`);
  return readSkill(file, place, matter);
};

const tooMany = ({ folder }: PromptPlace): PromptFault => ({
  file: folder,
  line: null,
  weight: 'skipped',
  text: `a project has at most ${PROJECT_FILES_MAX} skills and commands; the others are not read`,
});

// ---- What a session's instructions say about skills: names and descriptions, never bodies ----

/** More skills are only for the user. Their names would fill the declaration of the tool. */
const OFFERED_MAX = 200;
const CHARACTERS_MAX = 16_000;
/** Descriptions are not cut below this: whole skills are omitted instead. */
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

/** The last line if skills are omitted. */
const omission = (count: number): string =>
  count === 0 ? '' : `\n${count} more are not listed. The user can call them by their /name.`;

const cutDescription = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length - CUT_MARK.length).trimEnd()}${CUT_MARK}` : text;

/** The line of a skill; its description has at most so many characters. */
const skillLine = ({ name, description }: PromptFile, length: number): string =>
  description === '' ? `\n- ${name}` : `\n- ${name}: ${cutDescription(description, length)}`;

/** Characters of the lines if no description is longer than `length`; cut ones may be shorter. */
const sizeWith = (skills: readonly PromptFile[], length: number): number =>
  skills.reduce(
    (sum, { name, description }) =>
      sum + LINE_FRAME + name.length + Math.min(description.length, length),
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
  let fits = DESCRIPTION_MIN;
  let exceeds = longest + 1;
  while (exceeds - fits > 1) {
    const middle = (fits + exceeds) >> 1;
    if (sizeWith(skills, middle) <= budget) fits = middle;
    else exceeds = middle;
  }
  return fits;
};

/** The skills that the model sees. Those of the project come first if there are too many. */
export const offerSkills = (files: readonly PromptFile[]): OfferedSkills => {
  const all = files.filter(({ offered }) => offered === 'toModel');
  if (all.length === 0) return { skills: [], section: null, warning: '' };
  const rank = ({ place }: PromptFile): number => (place.owner === 'project' ? 0 : 1);
  const byOwner = [...all].sort((one, other) => rank(one) - rank(other));
  const budget = CHARACTERS_MAX - INTRO.length - omission(all.length).length;
  const chosen = new Set(fitting(byOwner.slice(0, OFFERED_MAX), budget));
  const skills = all.filter((one) => chosen.has(one));
  const length = longestLength(skills, budget);
  const omitted = all.length - skills.length;
  const shortened = skills.filter(({ description }) => description.length > length).length;
  const section = `${INTRO}${skills.map((skill) => skillLine(skill, length)).join('')}${omission(omitted)}`;
  const warning = [
    ...(omitted > 0
      ? [
          `The model is told of ${skills.length} skills; ${omitted} more can only be used by ` +
            'their /name.',
        ]
      : []),
    ...(shortened > 0
      ? [
          `The descriptions of ${shortened} skills are cut to ${length} characters, since ` +
            `all skills together may have ${CHARACTERS_MAX}.`,
        ]
      : []),
  ].join(' ');
  return { skills, section, warning };
};
