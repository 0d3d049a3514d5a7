import { modelChecks } from './doctor/models.js';
import { placeChecks } from './doctor/places.js';
import { programChecks } from './doctor/programs.js';
import { sessionChecks } from './doctor/sessions.js';
import { lookSafely, settingChecks } from './doctor/settings.js';
import type { Check, Found, World } from './doctor/world.js';
import { exitCodes } from './exit-codes.js';

/** `pawl doctor`: looks for everything that is known to go wrong around the agent, and says how each is repaired. */

export type DoctorFlags = {
  readonly online?: true;
  readonly json?: true;
  readonly workspace?: string;
  readonly model?: string;
};

/** In the order in which they are looked at; each fault has its own name. */
export const checks: readonly Check[] = [
  ...programChecks,
  ...placeChecks,
  ...settingChecks,
  ...modelChecks,
  ...sessionChecks,
];

export type Diagnosis = Pick<Check, 'name' | 'level'> & Found;

/** Everything that was found, in the order of the checks. */
export const diagnose = async (world: World): Promise<readonly Diagnosis[]> => {
  const looked = await Promise.all(
    checks.map(async (check) => {
      const found = await lookSafely(check, world);
      return found === null ? [] : [{ name: check.name, level: check.level, ...found }];
    }),
  );
  return looked.flat();
};

const worldOf = (flags: DoctorFlags): World => ({
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

/** Exit code 1 if something does not work; what merely works otherwise than expected is no fault. */
export const runDoctor = async (flags: DoctorFlags): Promise<number> => {
  const found = await diagnose(worldOf(flags));
  const isWell = found.every(({ level }) => level === 'note');
  process.stdout.write(
    flags.json
      ? `${JSON.stringify({ ok: isWell, checks: checks.map(({ name }) => name), found })}\n`
      : found.map(textOf).join('') + summary(found),
  );
  return isWell ? exitCodes.done : exitCodes.taskFailed;
};
