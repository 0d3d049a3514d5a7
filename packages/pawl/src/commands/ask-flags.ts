/** The flags of `pawl ask`, and the settings and limits of a run that they set. */

import type { AskSettingsPatch } from '@pawl/ask/create-asker';
import type { WrittenEnvironment } from '@pawl/ask/ports';
import type { ChangedLimits } from '@pawl/ask/run/event';
import {
  type RunFlags,
  readAmount,
  readLimits,
  readWord,
  settingFlag,
  TAKE_OVER,
} from '../settings/flags.js';

/** The flags of `pawl ask`. A resumed run keeps its settings; only its limits can change. */
export const askFlags: readonly (readonly [string, string])[] = [
  ['--context <files...>', 'text files to ask about, at most 100 MB in all; - reads stdin'],
  settingFlag('ask.environment'),
  ['--model <provider/name>', 'the model to use'],
  settingFlag('ask.sub_model'),
  settingFlag('effort'),
  ['--base-url <url>', 'address of the provider, if not its usual one'],
  settingFlag('ask.max_depth'),
  settingFlag('ask.max_iterations'),
  ['--max-usd <amount>', 'never spend more than this many dollars'],
  ['--max-tokens <count>', 'stop calling models once the run has used this many tokens'],
  ['--max-minutes <count>', 'stop after this many minutes'],
  ['--json', 'JSON lines on stdout (docs/json-stream.schema.json)'],
  ['--continue', 'continue the last run of this folder'],
  ['--resume <id>', 'continue a run'],
  TAKE_OVER,
  ['--verbose', 'print more details to stderr'],
];

export type AskFlags = Pick<
  RunFlags,
  | 'model'
  | 'effort'
  | 'baseUrl'
  | 'json'
  | 'maxUsd'
  | 'maxTokens'
  | 'maxMinutes'
  | 'continue'
  | 'takeOver'
  | 'verbose'
> & {
  readonly context?: readonly string[];
  readonly environment?: string;
  readonly subModel?: string;
  readonly maxDepth?: string;
  readonly maxIterations?: string;
  readonly resume?: string;
};

/** Settings that can't change when a run is resumed, and their flags. */
const frozen: readonly (readonly [keyof AskFlags, string])[] = [
  ['context', '--context'],
  ['environment', '--environment'],
  ['maxDepth', '--max-depth'],
  ['model', '--model'],
  ['subModel', '--sub-model'],
];

/** The set flags that a resumed run does not accept. */
export const frozenFlags = (flags: AskFlags): readonly string[] =>
  frozen.filter(([name]) => flags[name] !== undefined).map(([, flag]) => flag);

export const readEnvironment = ({ environment }: AskFlags): WrittenEnvironment | null =>
  environment === 'javascript'
    ? environment
    : readWord<WrittenEnvironment>('ask.environment', environment);

/** New limits for a resumed run; null if no flag sets one. */
export const readChangedLimits = (flags: AskFlags): ChangedLimits | null => {
  const { usd, tokens, timeMs } = readLimits(flags);
  const iterations =
    flags.maxIterations === undefined
      ? undefined
      : readAmount('--max-iterations', flags.maxIterations, 'whole');
  const limits = Object.entries({ usd, tokens, timeMs, iterations }).filter(
    ([, value]) => value !== undefined,
  );
  return limits.length === 0 ? null : Object.fromEntries(limits);
};

/** Settings of a new run from its flags. */
export const readAskSettings = (flags: AskFlags): AskSettingsPatch => {
  const { usd = 'unlimited', tokens = 'unlimited', timeMs = 'unlimited' } = readLimits(flags);
  return {
    limits: { usd, tokens, timeMs },
    ...(flags.maxDepth === undefined
      ? {}
      : { depthMax: readAmount('--max-depth', flags.maxDepth, 'whole') }),
    ...(flags.maxIterations === undefined
      ? {}
      : { iterationsMax: readAmount('--max-iterations', flags.maxIterations, 'whole') }),
  };
};
