import { makeSafe } from '@pawl/terminal/safe-text';
import { writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../../exit-codes.js';
import type { Check, DoctorWorld, Found } from './check-context.js';
import { placeChecks } from './folder-checks.js';
import { hookChecks } from './hooks.js';
import { mcpChecks } from './mcp-configuration.js';
import { modelChecks } from './models.js';
import { programChecks } from './programs.js';
import { sandboxChecks } from './sandbox.js';
import { sessionChecks } from './sessions.js';
import { lookSafely, settingChecks } from './settings.js';

/** `pawl doctor`: looks for known problems of the setup, and says how to repair each. */

export type DoctorFlags = {
  readonly online?: true;
  readonly json?: true;
  readonly workspace?: string;
  readonly model?: string;
};

/** All checks, in the order of the report. Each has a unique name. */
export const checks: readonly Check[] = [
  ...programChecks,
  ...sandboxChecks,
  ...placeChecks,
  ...settingChecks,
  ...mcpChecks,
  ...hookChecks,
  ...modelChecks,
  ...sessionChecks,
];

export type Diagnosis = Pick<Check, 'name' | 'level'> & Found;

/** Runs all checks at once. The findings come in the order of the checks, without those that another one covers. */
export const diagnose = async (world: DoctorWorld): Promise<readonly Diagnosis[]> => {
  const looked = await Promise.all(
    checks.map(async (check) => {
      const found = await lookSafely(check, world);
      return found === null ? [] : [{ check, found }];
    }),
  );
  const all = looked.flat();
  return all
    .filter(
      ({ check: { partOf } }) => partOf === undefined || all.every(({ check }) => check.name !== partOf),
    )
    .map(({ check: { name, level }, found }) => ({ name, level, ...found }));
};

const worldOf = (flags: DoctorFlags): DoctorWorld => ({
  environment: process.env,
  nodeVersion: process.versions.node,
  platform: process.platform,
  userId: process.getuid?.() ?? null,
  workspace: flags.workspace ?? process.cwd(),
  now: Date.now(),
  isTerminal: process.stdout.isTTY === true,
  online: flags.online === true,
  model: flags.model ?? null,
});

const textOf = ({ level, name, what, repair }: Diagnosis): string =>
  `${level === 'fault' ? '✗' : '•'} ${what} (${name})\n  ${repair}\n`;

const summary = (found: readonly Diagnosis[]): string => {
  const faults = found.filter(({ level }) => level === 'fault').length;
  const notes = found.length - faults;
  const all = `${checks.length} checks`;
  return faults === 0
    ? `${all}: no fault, ${notes} to know.\n`
    : `${all}: ${faults} to repair, ${notes} to know.\n`;
};

/** Exit code 1 if any check found a fault, 0 if there are only notes. */
export const runDoctor = async (flags: DoctorFlags): Promise<number> => {
  const found = await diagnose(worldOf(flags));
  const isWell = found.every(({ level }) => level === 'note');
  if (flags.json) writeJson({ ok: isWell, checks: checks.map(({ name }) => name), found });
  else writeOut(makeSafe(found.map(textOf).join('') + summary(found)));
  return isWell ? exitCodes.done : exitCodes.taskFailed;
};
