/** `pawl skills list`: the skills and commands of this folder and of yours. */

import { loadPromptFiles } from '@pawl/agent/extensions/skills/load-skills';
import { faultText, type PromptFile } from '@pawl/agent/extensions/skills/prompt-file';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { builtInNames, promptSources } from '../sessions/typed-input.js';
import { withConfig } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { usageStop } from '../settings/flags.js';

export type SkillsFlags = { readonly workspace?: string };

const LINE_MAX = 200;

const promptLine = ({ kind, name, hint, description, offered, file }: PromptFile): string => {
  // with the name of a slash command of Pawl it can't be typed
  const typed = builtInNames.includes(name) ? name : `/${name}${hint === '' ? '' : ` ${hint}`}`;
  // the model is not told of it
  const whose = kind === 'command' || offered === 'toUser' ? ', only for you' : '';
  return `${typed} (${kind}${whose}) ${file}${description === '' ? '' : `: ${description}`}`;
};

export const runSkills = async (what = 'list', flags: SkillsFlags): Promise<number> => {
  if (what !== 'list') throw usageStop(`pawl skills has list, not '${what}'.`);
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const configured = await withConfig({}, workspace, { command: 'run', resumed: false, warn });
  const { files, faults } = await loadPromptFiles(
    promptSources(workspace, configured),
    builtInNames,
  );
  for (const file of files) writeOut(safe`${oneLine(promptLine(file), LINE_MAX)}\n`);
  for (const fault of faults)
    writeError(safe`${oneLine(faultText(fault), Number.POSITIVE_INFINITY)}\n`);
  if (files.length === 0 && faults.length === 0)
    writeError(
      safe`No skills and no commands here. docs/extend/skills.md says where they belong.\n`,
    );
  return exitCodes.done;
};
