/** The flags of `pawl acp`: settings of the sessions that the editor opens. */

import { type RunFlags, runFlags } from '../settings/flags.js';

/** The editor decides about folder, prompt and session, and there is no screen. */
const OTHERS =
  /^(-p, --print|--json|--workspace|--on-ask|--continue|--resume|--take-over|--plain|--verbose)\b/;

export const acpFlags = runFlags.filter(([flag]) => !OTHERS.test(flag));

/** The flags that count for a new session. Others, which stand before `acp`, are dropped. */
export const newSessionFlags = (allFlags: RunFlags): RunFlags => {
  const {
    print,
    json,
    workspace,
    onAsk,
    continue: last,
    resume,
    takeOver,
    plain,
    verbose,
    ...flags
  } = allFlags;
  return flags;
};

const modelProvider = (model: string): string => model.slice(0, model.indexOf('/'));

/**
 * The flags that count for a session that is opened again: it keeps its model and effort. An address holds only for its
 * own provider.
 */
export const storedSessionFlags = (allFlags: RunFlags, recordedModel: string): RunFlags => {
  const { model, effort, profile, baseUrl, ...flags } = newSessionFlags(allFlags);
  const isElsewhere = model !== undefined && modelProvider(model) !== modelProvider(recordedModel);
  return baseUrl === undefined || isElsewhere ? flags : { ...flags, baseUrl };
};
