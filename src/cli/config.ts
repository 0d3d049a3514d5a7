import type { Origin, Overruled, Resolved } from '../config/resolve.js';
import type { Setting } from '../config/table.js';
import { showValue } from '../config/value.js';
import { DEFAULT_MODEL } from '../models/catalogue.js';
import type { ConfigFlags } from './config-flags.js';
import { type Consulted, consult } from './configured.js';
import { realWorkspace } from './connect-model.js';
import { exitCodes } from './exit-codes.js';
import { afterToolsOf, allowedHostsOf, limitsOf, onAskOf, presetOf, profileOf } from './flags.js';

/** `pawl config`: what is set, and who says so. Never prints what is in a key's file or variable. */

type Shown = {
  readonly key: string;
  readonly value: string;
  /** null: built in. */
  readonly origin: Origin | null;
  readonly overruled: readonly Overruled[];
};

const builtInOf = ({ key, builtIn }: Setting): string => (key === 'model' ? DEFAULT_MODEL : builtIn);

const show = ({ setting, value, origin, overruled }: Resolved, environment: NodeJS.ProcessEnv): Shown => {
  const { key, variable } = setting;
  const fromProvider = key.startsWith('providers.') && (environment[variable] ?? '') !== '';
  if (!fromProvider) {
    const text = value === null ? builtInOf(setting) : showValue(value);
    return { key, value: text, origin, overruled };
  }
  const text =
    setting.kind.type === 'url' ? showValue(environment[variable] ?? '') : 'not needed, a key is set';
  const lost =
    value === null || origin === null ? [] : [{ value, origin, why: 'the environment wins over files' }];
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

const textOf = (shown: readonly Shown[], withOrigin: boolean): string => {
  const set = shown.filter(({ key, origin }) => origin !== null || !key.startsWith('providers.'));
  const keyWidth = Math.max(...set.map(({ key }) => key.length));
  const valueWidth = Math.max(...set.map(({ value }) => value.length));
  const lines = set.flatMap(({ key, value, origin, overruled }) => {
    if (!withOrigin) return [`${key.padEnd(keyWidth)}  ${value}`];
    const lost = overruled.map(
      (one) =>
        `${' '.repeat(keyWidth)}  not ${showValue(one.value)} of ${originText(one.origin)}: ${one.why}`,
    );
    return [`${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${originText(origin)}`, ...lost];
  });
  return `${lines.join('\n')}\n`;
};

const recordOf = ({ key, value, origin, overruled }: Shown): object => ({
  key,
  value,
  origin: origin ?? { layer: 'builtIn' },
  overruled: overruled.map((one) => ({ ...one, value: showValue(one.value) })),
});

const report = ({ files, faults }: Consulted): number => {
  for (const { where, text } of faults) process.stderr.write(`pawl: ${where}: ${text}\n`);
  if (faults.length > 0) return exitCodes.configuration;
  if (files.length === 0)
    process.stderr.write('No file says anything: docs/configuration.md says which could.\n');
  return exitCodes.done;
};

/** Prints every setting; its exit code says whether all that was written can be used. */
export const showConfig = async (flags: ConfigFlags): Promise<number> => {
  for (const read of [limitsOf, onAskOf, presetOf, allowedHostsOf, afterToolsOf, profileOf]) read(flags);
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  const { origin, json, workspace: _, ...tried } = flags;
  const consulted = await consult(workspace, process.env, tried);
  const shown = consulted.resolved.map((one) => show(one, process.env));
  process.stdout.write(
    json ? shown.map((one) => `${JSON.stringify(recordOf(one))}\n`).join('') : textOf(shown, origin === true),
  );
  return report(consulted);
};
