import path from 'node:path';
import { readPromptText } from './find-prompt-files.js';
import { readFrontMatter } from './front-matter.js';
import { DESCRIPTION_MAX, NAME_MAX } from './load-prompt-files.js';
import type { PromptFault } from './prompt-file.js';

/** Checks a skill strictly, as its author wants to know it. Loading is lenient. */

const COMPATIBILITY_MAX = 500;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const KNOWN = [
  ...['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'],
  ...['argument-hint', 'disable-model-invocation'],
];

type Field = { readonly name: string; readonly value: unknown };

const faultOf = ({ name, value }: Field, folder: string): string | null => {
  if (!KNOWN.includes(name)) return `the field is not known. Known fields: ${KNOWN.join(', ')}`;
  if (name === 'metadata') {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isMap && Object.values(value).every((one) => typeof one === 'string')
      ? null
      : 'must be a map of texts';
  }
  if (typeof value !== 'string') return 'must be a text';
  if (name === 'name') {
    if (!NAME.test(value) || value.length > NAME_MAX)
      return `must have 1 to ${NAME_MAX} small letters, digits and single hyphens between them`;
    return value === folder ? null : "must equal the folder's name";
  }
  if (name === 'description' && value.trim() === '') return 'must not be empty';
  if (name === 'description' && value.length > DESCRIPTION_MAX)
    return `has ${value.length} characters, at most ${DESCRIPTION_MAX} are allowed`;
  if (name === 'compatibility' && value.length > COMPATIBILITY_MAX)
    return `has ${value.length} characters, at most ${COMPATIBILITY_MAX} are allowed`;
  return null;
};

/** All faults of the skill in a folder; none for a valid one. Never rejects. */
export const checkSkill = async (folder: string): Promise<readonly PromptFault[]> => {
  const file = path.join(folder, 'SKILL.md');
  const fault = (line: number | null, text: string): PromptFault => ({ file, line, text, weight: 'skipped' });
  const read = await readPromptText(file, { folder, owner: 'user', kind: 'skill', within: null });
  if (read.kind === 'unusable') return [fault(null, read.why)];
  const matter = await readFrontMatter(read.text);
  if (matter.kind === 'none') return [fault(1, 'it does not begin with front matter (a line ---)')];
  if (matter.kind === 'faulty') return [fault(matter.line, matter.why)];
  const { fields, lineOf, isStrict } = matter;
  const missing = ['name', 'description'].filter((name) => !fields.has(name));
  return [
    ...missing.map((name) => fault(1, `the field ${name} is missing`)),
    ...(isStrict ? [] : [fault(2, 'a value with a colon or # needs quotes; other agents refuse it')]),
    ...[...fields].flatMap(([name, value]) => {
      const text = faultOf({ name, value }, path.basename(path.resolve(folder)));
      return text === null ? [] : [fault(lineOf(name), `${name}: ${text}`)];
    }),
  ];
};
