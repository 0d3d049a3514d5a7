import type { Settings } from '../machine/settings.js';
import type { Redactor } from '../platform/secrets/redactor.js';
import type { Clock } from '../ports/clock.js';
import type { Model } from '../ports/model.js';
import type { NewSession } from '../ports/session-runtime.js';
import { instruct } from './session-instructions.js';
import { type Fenced, probeFor } from './session-sandbox-level.js';
import { newSettings } from './session-settings.js';

type PreparingParts = {
  readonly model: Model;
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly moreInstructions: string;
  report(fault: Error): void;
};

/** The settings and instructions of a new session, and what the probe of the sandbox found. */
export const prepareSession = async (
  { model, clock, redactor, moreInstructions, report }: PreparingParts,
  workspace: string,
  wishes: Parameters<typeof newSettings>[2],
): Promise<{ readonly prepared: NewSession; readonly fenced: Fenced }> => {
  const { preset = 'auto' } = wishes;
  const probing = probeFor(wishes.sandbox, workspace);
  const deciding = probing.then((fenced) => newSettings(model, workspace, wishes, fenced));
  const sandbox: Promise<NonNullable<Settings['sandbox']>> = deciding.then(
    (settings) => settings.sandbox ?? 'off',
  );
  const { writtenRules } = wishes.settings ?? {};
  const own = await instruct({ workspace, preset, clock, sandbox, writtenRules }, report);
  const instructions = moreInstructions === '' ? own : `${own}\n\n${moreInstructions}`;
  const [settings, fenced] = await Promise.all([deciding, probing]);
  return { prepared: { settings, instructions: redactor.clean(instructions) }, fenced };
};
