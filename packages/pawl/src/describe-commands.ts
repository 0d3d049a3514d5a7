import { modelForms } from '@pawl/agent/models/provider-table';
import type { Command, Option } from 'commander';
import { flagName } from './settings/flag-names.js';
import { settings } from './settings/setting-table.js';

/** Commands and flags as plain values, from which completion, the man page and the documentation are made. */

/** The kind of value that a flag takes. `anything`: completion can't suggest values. */
export type Takes =
  | { readonly kind: 'nothing' | 'file' | 'folder' | 'session' | 'anything' }
  | { readonly kind: 'words'; readonly words: readonly string[] };

export type DescribedFlag = {
  readonly long: string;
  readonly short: string | null;
  /** Form that help shows: `-p, --print [prompt]`. */
  readonly written: string;
  readonly help: string;
  readonly takes: Takes;
};

export type DescribedCommand = {
  readonly name: string;
  readonly help: string;
  /** Arguments in the form that help shows: `<id>`, `[prompt...]`. */
  readonly words: string;
  readonly flags: readonly DescribedFlag[];
};

export type DescribedProgram = DescribedCommand & { readonly commands: readonly DescribedCommand[] };

/** `anthropic/`, …: completion offers providers, not names of models. */
const providerWords = modelForms.map((form) => form.slice(0, form.indexOf('/') + 1));

/** Values of flags that the table of settings does not describe. */
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
  // After a flag with an optional value, completion still offers flags.
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

/** All commands and flags that the parser knows. */
export const describeProgram = (program: Command): DescribedProgram => ({
  ...describeCommand(program),
  commands: program.commands.map(describeCommand),
});

/** Whether the word after the flag is its value. */
export const takesValue = ({ takes }: DescribedFlag): boolean => takes.kind !== 'nothing';

/** All flags of all commands, each once. */
export const allFlags = (program: DescribedProgram): readonly DescribedFlag[] => {
  const known = new Map<string, DescribedFlag>();
  for (const { flags } of [program, ...program.commands])
    for (const flag of flags) known.set(flag.long, flag);
  return [...known.values()];
};
