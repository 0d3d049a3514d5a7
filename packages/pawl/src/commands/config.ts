/** `pawl config`: prints all settings and their sources. Never prints a key. */

import type { UsualModel } from '@pawl/agent/models/provider-table';
import { describeRule } from '@pawl/agent/policy/rules';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import {
  type Consulted,
  consult,
  type Origin,
  type Overruled,
  type Resolved,
} from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import {
  type ConfigFlags,
  readAfterTools,
  readAllowedHosts,
  readEffort,
  readLimits,
  readOnAsk,
  readPictures,
  readPreset,
  readProfileName,
  readSandbox,
} from '../settings/flags.js';
import { showValue } from '../settings/setting-table.js';

type ShownSetting = {
  readonly key: string;
  readonly value: string;
  /** null: built in. */
  readonly origin: Origin | null;
  readonly overruled: readonly Overruled[];
};

const describeSetting = (
  { setting, value, origin, overruled }: Resolved,
  environment: NodeJS.ProcessEnv,
  usual: UsualModel,
): ShownSetting => {
  const { key, variable } = setting;
  // The variables of providers, such as keys, are not read with the settings: here they win too.
  const fromProvider = key.startsWith('providers.') && (environment[variable] ?? '') !== '';
  if (!fromProvider) {
    const builtIn = key === 'model' ? usual.id : setting.builtIn;
    const text = value === null ? builtIn : showValue(value);
    return { key, value: text, origin, overruled };
  }
  const text =
    setting.kind.type === 'url'
      ? showValue(environment[variable] ?? '')
      : 'not used, because a key is set';
  const lost =
    value === null || origin === null
      ? []
      : [{ value, origin, why: 'the environment wins over files' }];
  return {
    key,
    value: text,
    origin: { layer: 'environment', variable },
    overruled: [...overruled, ...lost],
  };
};

const originText = (origin: Origin | null): string => {
  if (origin === null) return 'built in';
  switch (origin.layer) {
    case 'user':
    case 'project':
      return `${origin.file}:${origin.line}`;
    case 'environment':
      return origin.variable;
    case 'flag':
      return origin.flag;
    default:
      return origin satisfies never;
  }
};

const settingLines = (shown: readonly ShownSetting[], withOrigin: boolean): string => {
  const keyWidth = Math.max(...shown.map(({ key }) => key.length));
  const valueWidth = Math.max(...shown.map(({ value }) => value.length));
  const lines = shown.flatMap(({ key, value, origin, overruled }) => {
    if (!withOrigin) return [`${key.padEnd(keyWidth)}  ${value}`];
    const lost = overruled.map(
      (one) =>
        `${' '.repeat(keyWidth)}  not ${showValue(one.value)} of ${originText(one.origin)}: ` +
        `${one.why}`,
    );
    return [`${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${originText(origin)}`, ...lost];
  });
  return `${lines.join('\n')}\n`;
};

const settingRecord = ({ key, value, origin, overruled }: ShownSetting): object => ({
  key,
  value,
  origin: origin ?? { layer: 'builtIn' },
  overruled: overruled.map((one) => ({ ...one, value: showValue(one.value) })),
});

/** Settings of providers are shown where something sets them: there are two for each provider. */
const isOfInterest = ({ key, origin }: ShownSetting): boolean =>
  origin !== null || !key.startsWith('providers.');

const report = ({ files, faults }: Consulted): number => {
  for (const { where, text } of faults)
    writeError(safe`pawl: ${oneLine(`${where}: ${text}`, Number.POSITIVE_INFINITY)}\n`);
  if (faults.length > 0) return exitCodes.configuration;
  if (files.length === 0)
    writeError(
      safe`There is no configuration file. docs/set-up/configuration.md names the possible places.\n`,
    );
  return exitCodes.done;
};

/** Prints every setting. The exit code tells whether the configuration is free of faults. */
export const showConfig = async (flags: ConfigFlags): Promise<number> => {
  // Each throws for a flag that it can't read.
  for (const read of [
    readEffort,
    readLimits,
    readOnAsk,
    readPreset,
    readSandbox,
    readAllowedHosts,
    readAfterTools,
    readPictures,
    readProfileName,
  ])
    read(flags);
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  // the other flags are settings, whose effect is shown
  const { origin, json, workspace: _, ...tried } = flags;
  const consulted = await consult(workspace, process.env, tried);
  const shown = consulted.resolved.map((one) => describeSetting(one, process.env, consulted.usual));
  if (json) for (const one of shown) writeJson(settingRecord(one));
  else writeOut(makeSafe(settingLines(shown.filter(isOfInterest), origin === true)));
  for (const rule of consulted.rules) {
    if (json) writeJson({ rule });
    else writeOut(makeSafe(`rule  ${describeRule(rule)}\n`));
  }
  return report(consulted);
};
