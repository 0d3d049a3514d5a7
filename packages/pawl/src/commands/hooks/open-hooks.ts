import type { CommandHook } from '@pawl/agent/extensions/user-hooks/session-hooks';
import type { Configured } from '../../settings/apply-config.js';

/** The hooks of a session: the user's own, then those of the project that the user has allowed. */

type Surroundings = {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly warn: (text: string) => void;
  /** Told in one line which hooks wait for an answer of the user. */
  readonly tellNotRun: (text: string) => void;
};

/** A hook that starts Pawl must not start itself again through it. */
const isInHook = (): boolean => (process.env.PAWL_HOOK ?? '') !== '';

export const openHooks = async (
  { userHooks = [], projectHooks = [] }: Configured,
  { workspace, stateFolder, warn, tellNotRun }: Surroundings,
): Promise<readonly CommandHook[]> => {
  if (isInHook()) return [];
  const own = userHooks.filter(({ enabled }) => enabled).map((hook) => ({ ...hook, folder: null }));
  if (projectHooks.length === 0) return own;
  const [{ allowedHooks }, { openTrust }] = await Promise.all([
    import('../../trust/project-hooks.js'),
    import('@pawl/agent/extensions/trust/trust-store'),
  ]);
  const trust = openTrust(stateFolder, warn);
  return [...own, ...(await allowedHooks(workspace, projectHooks, trust, warn, process.env, tellNotRun))];
};
