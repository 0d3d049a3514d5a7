/**
 * Shapes of incoming values in another form than the machine's: events without a time, parts of
 * settings and of calls. `partly` makes every field optional.
 */

import { object, partly, type Shape, text, variant } from '@pawl/machine/kernel/shape';
import type { UserEvent } from './event.js';
import type { Limits, Settings } from './settings.js';
import {
  assistantPartShape,
  callOutcomeShape,
  callVerdictShape,
  limitsShape,
  settingsShape,
  usageShape,
  userEventCases,
} from './shapes.js';

type Untimed = UserEvent extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

const untimedCases: Record<string, unknown> = {};
for (const [type, { at: _, ...fields }] of Object.entries(userEventCases))
  untimedCases[type] = fields;

/** An event that a user may send, without its time. */
export const inputShape = variant<Untimed, 'type'>(
  'type',
  untimedCases as never, // the same types, each without the field that all have
);

export const settingsPatchShape = object<Partial<Settings>>(partly<Settings>(settingsShape.fields));

type RecordedSettings = Partial<Omit<Settings, 'limits'>> &
  Pick<Settings, 'model' | 'workspace' | 'rules'> & { readonly limits: Partial<Limits> };

/** Settings in the header of a journal. Those of earlier versions lack some fields. */
export const recordedSettingsShape = object<RecordedSettings>({
  ...partly<Settings>(settingsShape.fields),
  model: text,
  workspace: text,
  rules: settingsShape.fields.rules,
  limits: object<Partial<Limits>>(partly<Limits>(limitsShape.fields)),
}) as unknown as Shape<Partial<Settings>>; // the same fields, limits in part

// The fields that models, tools and hooks report; what the session adds to them is left out.

const { costUsd: _cost, unpriced: _unpriced, ...tokenCounts } = usageShape.fields;
/** Token counts of a model call, without its cost. */
export const tokenFields = tokenCounts;
/** A text or a piece of reasoning in a reply. */
export const textPartFields = assistantPartShape.cases.text;
/** The verdict on a call that can't start. */
export const invalidFields = callVerdictShape.cases.invalid;
const { blob: _blob, seen: _seen, hooks: _hooks, ...reported } = callOutcomeShape.fields;
/** What a tool itself reports of its call. */
export const outcomeFields = reported;
