import type { EnvironmentName } from '../needs-recursive.js';
import type { CodeSettings } from '../recursive/settings.js';
import { chooseWord, flagOf, limitsOf, type RunFlags, readAmount } from './flags.js';

/** The flags of `pawl ask`. A run that goes on keeps what it was set to. */
export const askFlags: readonly (readonly [string, string])[] = [
  [
    '--context <files...>',
    'files of text that the question is about, 100 MB together at most; - reads stdin',
  ],
  flagOf('ask.environment'),
  ['--model <provider/name>', 'which model answers'],
  flagOf('ask.sub_model'),
  ['--base-url <url>', 'where the provider is reached, in place of its own address'],
  flagOf('ask.max_depth'),
  flagOf('ask.max_iterations'),
  ['--max-usd <amount>', 'no further model call once the run has cost so many dollars'],
  ['--max-tokens <count>', 'no further model call once the run has used so many tokens'],
  ['--max-minutes <count>', 'stop after so many minutes'],
  ['--json', 'JSON lines on stdout (docs/json-stream.schema.json)'],
  ['--continue', 'go on with the last run of this folder'],
  ['--resume <id>', 'go on with that run'],
  ['--verbose', 'more about what happens, on stderr'],
];

export type AskFlags = Pick<
  RunFlags,
  'model' | 'baseUrl' | 'json' | 'maxUsd' | 'maxTokens' | 'maxMinutes' | 'continue' | 'verbose'
> & {
  readonly context?: readonly string[];
  readonly environment?: string;
  readonly subModel?: string;
  readonly maxDepth?: string;
  readonly maxIterations?: string;
  readonly resume?: string;
};

/** What a run is frozen to, and the flag that says so. */
const frozen: readonly (readonly [keyof AskFlags, string])[] = [
  ['context', '--context'],
  ['environment', '--environment'],
  ['maxDepth', '--max-depth'],
  ['maxIterations', '--max-iterations'],
  ['maxUsd', '--max-usd'],
  ['maxTokens', '--max-tokens'],
  ['maxMinutes', '--max-minutes'],
  ['model', '--model'],
  ['subModel', '--sub-model'],
];

/** The flags that can't be given to a run that goes on. */
export const frozenFlags = (flags: AskFlags): readonly string[] =>
  frozen.filter(([name]) => flags[name] !== undefined).map(([, flag]) => flag);

export const environmentOf = (flags: AskFlags): EnvironmentName | null =>
  flags.environment === undefined
    ? null
    : chooseWord<EnvironmentName>('--environment', flags.environment, ['javascript', 'quickjs', 'python']);

/** Settings that were set by flags. */
export const askSettingsOf = (flags: AskFlags): Partial<CodeSettings> => {
  const { usd = 0, tokens = 0, timeMs = 0 } = limitsOf(flags);
  return {
    limits: { usd, tokens, timeMs },
    ...(flags.maxDepth === undefined ? {} : { depthMax: readAmount('--max-depth', flags.maxDepth, 'whole') }),
    ...(flags.maxIterations === undefined
      ? {}
      : { iterationsMax: readAmount('--max-iterations', flags.maxIterations, 'whole') }),
  };
};
