import type { Command, Option } from 'commander';
import { flagName } from '../config/flag-names.js';
import { settings } from '../config/table.js';

/** Commands and flags as plain values, for everything that is made from them: completion, the man page, documents. */

/** What stands behind a flag: nothing, one of some words, a file, a folder, a session, or something that only its user knows. */
export type Takes =
  | { readonly kind: 'nothing' | 'file' | 'folder' | 'session' | 'anything' }
  | { readonly kind: 'words'; readonly words: readonly string[] };

export type DescribedFlag = {
  readonly long: string;
  readonly short: string | null;
  /** As help shows it: `-p, --print [prompt]`. */
  readonly written: string;
  readonly help: string;
  readonly takes: Takes;
};

export type DescribedCommand = {
  readonly name: string;
  readonly help: string;
  /** As help shows them: `<id>`, `[prompt...]`. */
  readonly words: string;
  readonly flags: readonly DescribedFlag[];
};

export type DescribedProgram = DescribedCommand & { readonly commands: readonly DescribedCommand[] };

const providerWords = ['anthropic/', 'openai/', 'google/', 'openai-compatible/', 'ollama/', 'scripted/'];

/** Flags that no setting describes. */
const ownTakes: Readonly<Record<string, Takes>> = {
  '--workspace': { kind: 'folder' },
  '--context': { kind: 'file' },
  '--resume': { kind: 'session' },
  '--view': { kind: 'words', words: ['minimal', 'minimal-head', 'loom', 'sketch', 'tools'] },
};

const takesOf = ({ long, required, optional }: Option): Takes => {
  const own = ownTakes[long ?? ''];
  if (own !== undefined) return own;
  if (!required && !optional) return { kind: 'nothing' };
  const kind = settings.find((setting) => flagName(setting) === long)?.kind;
  if (kind?.type === 'words') return { kind: 'words', words: kind.words };
  if (kind?.type === 'model') return { kind: 'words', words: providerWords };
  // what may follow and need not is no reason to offer nothing
  return { kind: optional ? 'nothing' : 'anything' };
};

const describeFlag = (option: Option): DescribedFlag => ({
  long: option.long ?? option.flags,
  short: option.short ?? null,
  written: option.flags,
  help: option.description,
  takes: takesOf(option),
});

const helpFlag: DescribedFlag = {
  long: '--help',
  short: '-h',
  written: '-h, --help',
  help: 'display help for command',
  takes: { kind: 'nothing' },
};

const describeCommand = (command: Command): DescribedCommand => ({
  name: command.name(),
  help: command.description(),
  words: command.registeredArguments
    .map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return argument.required ? `<${name}>` : `[${name}]`;
    })
    .join(' '),
  flags: [...command.options.map(describeFlag), helpFlag],
});

/** Everything that the parser knows. */
export const describeProgram = (program: Command): DescribedProgram => ({
  ...describeCommand(program),
  commands: program.commands.map(describeCommand),
});

/** Whether a word behind the flag belongs to it. */
export const takesValue = ({ takes }: DescribedFlag): boolean => takes.kind !== 'nothing';

/** All flags of all commands, each once. */
export const allFlags = (program: DescribedProgram): readonly DescribedFlag[] => {
  const known = new Map<string, DescribedFlag>();
  for (const { flags } of [program, ...program.commands])
    for (const flag of flags) known.set(flag.long, flag);
  return [...known.values()];
};
