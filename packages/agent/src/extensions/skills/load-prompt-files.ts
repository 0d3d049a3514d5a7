import path from 'node:path';
import { realPathOf } from '../../platform/files/entry-status.js';
import { findPromptFiles, readPromptText } from './find-prompt-files.js';
import { type FrontMatter, readFrontMatter } from './front-matter.js';
import {
  inOneLine,
  type PromptFault,
  type PromptFile,
  type PromptFiles,
  type PromptPlace,
} from './prompt-file.js';
import { type PromptSources, promptPlaces } from './prompt-places.js';

/**
 * Loads names and descriptions of skills and commands. A broken file is a fault with its line; the others are loaded.
 * Bodies are read when they are used.
 */

export const NAME_MAX = 64;
export const DESCRIPTION_MAX = 1_024;
const HINT_MAX = 100;
/** Files of a project that are read. More would make each start slow. */
const PROJECT_FILES_MAX = 500;

/** A name that can be typed and declared: `My Skill` becomes `my-skill`. Perhaps empty. */
const usableName = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, NAME_MAX)
    .replace(/-+$/, '');

type LoadedFile = { readonly file: PromptFile | null; readonly faults: readonly PromptFault[] };
type Fields = Extract<FrontMatter, { readonly kind: 'ok' }>;

const textIn = (fields: Fields['fields'], name: string): string => {
  const value = fields.get(name);
  return typeof value === 'string' ? inOneLine(value) : '';
};

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

const skipped = (file: string, line: number | null, text: string): LoadedFile => ({
  file: null,
  faults: [{ file, line, text, weight: 'skipped' }],
});

const skillOf = (file: string, place: PromptPlace, { fields, lineOf }: Fields): LoadedFile => {
  const faults: PromptFault[] = [];
  const note = (field: string, text: string): void =>
    void faults.push({ file, line: lineOf(field), text, weight: 'note' });
  const folder = path.basename(path.dirname(file));
  const written = textIn(fields, 'name');
  const name = usableName(written) || usableName(folder);
  if (name === '')
    return skipped(file, lineOf('name'), 'the skill is not used: its name has no letters or digits');
  if (name !== written) note('name', `the name should be ${name}, and is used so`);
  else if (name !== folder)
    note('name', `the name differs from the folder's name, ${cut(inOneLine(folder), 80)}`);
  const description = textIn(fields, 'description');
  if (description === '')
    return skipped(file, lineOf('description'), 'the skill is not used: it has no description');
  if (description.length > DESCRIPTION_MAX)
    note(
      'description',
      `the description is cut: it has ${description.length} characters, at most ${DESCRIPTION_MAX} are used`,
    );
  const isHidden = textIn(fields, 'disable-model-invocation') === 'true';
  return {
    file: {
      kind: 'skill',
      name,
      description: cut(description, DESCRIPTION_MAX),
      hint: cut(textIn(fields, 'argument-hint'), HINT_MAX),
      file,
      place,
      offered: isHidden ? 'toUser' : 'toModel',
    },
    faults,
  };
};

/** `dir/name.md` is the command `dir:name`. */
const commandOf = (file: string, place: PromptPlace, fields: Fields['fields']): LoadedFile => {
  const parts = path.relative(place.folder, file).replace(/\.md$/, '').split(path.sep).map(usableName);
  if (parts.includes(''))
    return skipped(file, null, 'the command is not used: its name has no letters or digits');
  return {
    file: {
      kind: 'command',
      name: parts.join(':'),
      description: cut(textIn(fields, 'description'), DESCRIPTION_MAX),
      hint: cut(textIn(fields, 'argument-hint'), HINT_MAX),
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
    return commandOf(file, place, matter.kind === 'ok' ? matter.fields : new Map());
  if (matter.kind === 'none')
    return skipped(file, 1, `${unused}: it does not begin with front matter (a line ---)`);
  return skillOf(file, place, matter);
};

const tooMany = ({ folder }: PromptPlace): PromptFault => ({
  file: folder,
  line: null,
  weight: 'skipped',
  text: `a project has at most ${PROJECT_FILES_MAX} skills and commands; the others are not read`,
});

/** `taken`: names of built-in commands. They win. */
export const loadPromptFiles = async (
  sources: PromptSources,
  taken: readonly string[] = [],
): Promise<PromptFiles> => {
  const byName = new Map<string, PromptFile>();
  const faults: PromptFault[] = [];
  const seen = new Set<string>();
  let left = PROJECT_FILES_MAX;
  for (const place of promptPlaces(sources)) {
    const found = await findPromptFiles(place);
    faults.push(...found.faults);
    for (const file of found.files) {
      const real = realPathOf(file) ?? file;
      if (seen.has(real)) continue;
      if (place.owner === 'project') left -= 1;
      if (place.owner === 'project' && left < 0) {
        if (left === -1) faults.push(tooMany(place));
        break;
      }
      const loaded = await loadPromptFile(file, place);
      faults.push(...loaded.faults);
      if (loaded.file === null) continue;
      seen.add(real);
      const { name, kind } = loaded.file;
      const first = byName.get(name);
      const note = (text: string, weight: PromptFault['weight'] = 'note'): void =>
        void faults.push({ file, line: null, text, weight });
      const isReplaced = place.owner === 'user' && first?.place.owner === 'project';
      if (first !== undefined)
        note(`it is not used: ${first.file} has the same name, ${name}`, isReplaced ? 'replaced' : 'note');
      else byName.set(name, loaded.file);
      if (first === undefined && taken.includes(name))
        note(
          kind === 'skill'
            ? `/${name} is a command of Pawl; only the model can load this skill`
            : `it is not used: /${name} is a command of Pawl`,
        );
    }
  }
  const files = [...byName.values()].filter(({ name, kind }) => kind === 'skill' || !taken.includes(name));
  return { files: files.sort((one, other) => (one.name < other.name ? -1 : 1)), faults };
};
