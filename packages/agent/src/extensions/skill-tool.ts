/**
 * The tool with which a model loads a skill: instructions that a user or project keeps in a
 * folder.
 */

import * as v from 'valibot';
import type { Tool } from '../ports/tool.js';
import { defineTool } from '../tools/define-tool.js';
import type { PromptFile } from './skills/prompt-file.js';
import { readPromptBlock } from './skills/read-skill.js';

/**
 * Loads a skill: its instructions, its folder, and the names of its files. Its effect is `pure`: it
 * changes nothing, so an interrupted call may run again. A command that the skill names is judged
 * like any other.
 */
export const createSkillTool = (skills: readonly PromptFile[]): Tool =>
  defineTool({
    name: 'skill',
    description:
      'Loads the instructions of a skill by its name. Paths in them are relative to the ' +
      'folder of the skill.',
    schema: v.strictObject({
      name: v.pipe(v.picklist(skills.map(({ name }) => name)), v.description('One of the skills.')),
    }),
    traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 10_000 },
    judge: async ({ name }) => ({
      kind: 'ok',
      facts: { argv: [], paths: [], hosts: [], shape: name },
    }),
    title: ({ name }) => name,
    async run({ name }) {
      const skill = skills.find((one) => one.name === name);
      if (skill === undefined)
        return { status: 'failed', text: `There is no skill ${name} any more.` };
      const read = await readPromptBlock(skill, '');
      if (read.kind === 'text') return { status: 'ok', text: read.text, summary: `skill ${name}` };
      return { status: 'failed', text: `The skill ${name} can't be loaded: ${read.why}` };
    },
  });
