import { homedir } from 'node:os';
import type { PromptFault, PromptFiles } from '@pawl/agent/extensions/skills/prompt-file';
import { type PromptSources, promptPlaces } from '@pawl/agent/extensions/skills/prompt-places';
import { configFolder } from '@pawl/agent/platform/base/user-folders';
import type { Tool } from '@pawl/agent/ports/tool';
import type { Choice } from '@pawl/terminal/input/completion';
import type { Configured } from '../settings/apply-config.js';
import { builtInNames } from '../slash/command-table-and-parser.js';

/** The skills and commands of a session: what the model is told of them, and what the user can name. */

/** `fault`: why a skill could not be read. The message then says so, and nothing that was typed is lost. */
export type ExpandedText = { readonly text: string; readonly fault: string | null };

export type SessionPrompts = {
  /** The tool `skill`, if there are skills. */
  readonly tools: readonly Tool[];
  /** For the instructions; empty without skills. */
  readonly section: string;
  /** Names that the user can type after `/`. */
  readonly choices: readonly Choice[];
  /** What the user can mention after `@` besides files. */
  mentions(): readonly Choice[];
  /** Whether `expand` may change this text. */
  expands(typed: string): boolean;
  /** The message for a typed text: for `/NAME WORDS` the line, and below it the text of the skill or command. */
  expand(typed: string): Promise<ExpandedText>;
};

/** Faults that are printed when a session starts. */
const TOLD_MAX = 3;

export const NO_PROMPTS: SessionPrompts = {
  tools: [],
  section: '',
  choices: [],
  mentions: () => [],
  expands: () => false,
  expand: async (text) => ({ text, fault: null }),
};

export const promptSources = (workspace: string, { claudeFiles }: Configured): PromptSources => ({
  workspace,
  home: process.env.HOME || homedir(),
  configFolder: configFolder(process.env),
  claude: claudeFiles === 'off' ? 'no' : 'yes',
});

const warnOfFaults = (
  faults: readonly PromptFault[],
  faultText: (fault: PromptFault) => string,
  warn: (text: string) => void,
): void => {
  // Faults of a project must not hide that it replaces what the user would expect.
  const told = (['replaced', 'skipped'] as const).flatMap((wanted) =>
    faults.filter(({ weight }) => weight === wanted),
  );
  for (const fault of told.slice(0, TOLD_MAX)) warn(faultText(fault));
  const left = told.length - TOLD_MAX;
  if (left > 0) warn(`${left} more faults in skills and commands: pawl skills lists them.`);
};

/** `/NAME` at the start of a line, and the words behind it. */
const TYPED = /^\/([\w:-]+)(?:\s+([\s\S]*))?$/;

const expandWith =
  ({ files }: PromptFiles): SessionPrompts['expand'] =>
  async (typed) => {
    const [, name = '', words = ''] = TYPED.exec(typed.trim()) ?? [];
    const found = builtInNames.includes(name) ? undefined : files.find((file) => file.name === name);
    if (found === undefined) return { text: typed, fault: null };
    const { readPromptBlock } = await import('@pawl/agent/extensions/skills/prompt-block');
    const block = await readPromptBlock(found, words.trim());
    if (block.kind === 'text') return { text: `${typed.trim()}\n\n${block.text}`, fault: null };
    const fault = `The ${found.kind} ${name} can't be read: ${found.file}: ${block.why}`;
    return { text: `${typed.trim()}\n\n(${fault})`, fault };
  };

export type SessionPromptsOptions = {
  readonly workspace: string;
  readonly flags: Configured;
  readonly isResumed: boolean;
  readonly warn: (text: string) => void;
};

export const openSessionPrompts = async (options: SessionPromptsOptions): Promise<SessionPrompts> => {
  const { workspace, flags, isResumed, warn } = options;
  const sources = promptSources(workspace, flags);
  // Most folders have none: nothing is loaded then. The tools of a resumed session were settled when it began.
  if (promptPlaces(sources).length === 0 && !isResumed) return NO_PROMPTS;
  const [{ loadPromptFiles }, { faultText }, { offerSkills }, { createSkillTool }] = await Promise.all([
    import('@pawl/agent/extensions/skills/load-prompt-files'),
    import('@pawl/agent/extensions/skills/prompt-file'),
    import('@pawl/agent/extensions/skills/skills-section'),
    import('@pawl/agent/tools/skill'),
  ]);
  const loaded = await loadPromptFiles(sources, builtInNames);
  warnOfFaults(loaded.faults, faultText, warn);
  const { skills, section, warning } = offerSkills(loaded.files);
  if (warning !== '' && !isResumed) warn(warning);
  const choices = loaded.files
    .filter(({ name }) => !builtInNames.includes(name))
    .map(({ name, hint, description }) => ({
      text: name,
      about: hint === '' ? description : `${hint}  ${description}`,
    }));
  return {
    tools: skills.length > 0 || isResumed ? [createSkillTool(skills)] : [],
    section: section ?? '',
    choices,
    mentions: () => [],
    expands: (typed) => typed.startsWith('/') && choices.length > 0,
    expand: expandWith(loaded),
  };
};
