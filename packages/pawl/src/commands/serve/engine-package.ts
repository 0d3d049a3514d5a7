import { agentMachine } from '@pawl/agent/journal/read/journaled-agent-machine';
import { attempt } from '@pawl/agent/session/attempt';
import type { SharedRuntime } from '@pawl/serve/adapt-runtime-to-node';
import type { EngineNodeOptions } from '@pawl/serve/engine-node-options-types';
import { exitCodes, Stop } from '../../exit-codes.js';
import { packageVersion } from '../../package-folder.js';

/**
 * The package with the engine. It is not a part of Pawl, so that nobody installs an engine who does not use it: it is
 * loaded by its name, beside Pawl or where Node finds packages, and never from the current folder.
 */

const PACKAGE: string = '@pawl/restate';

export type StartedEngineNode = {
  readonly runtime: SharedRuntime;
  stop(): Promise<void>;
};

/** What is used of the package. Its own tests check that it fits. */
export type EnginePackage = {
  readonly version: string;
  readonly machineFingerprint: string;
  startEngineNode(wishes: EngineNodeOptions): Promise<StartedEngineNode>;
};

const stop = (message: string): Stop => new Stop(exitCodes.configuration, 'configuration', message);

const isMissing = (fault: Error): boolean =>
  'code' in fault && /MODULE_NOT_FOUND$/.test(String(fault.code)) && fault.message.includes(PACKAGE);

/** Throws a Stop that says what to install. */
export const loadEnginePackage = async (): Promise<EnginePackage> => {
  const own = packageVersion();
  const install = `npm install -g pawl@${own} ${PACKAGE}@${own}`;
  const loaded = await attempt(async (): Promise<Partial<EnginePackage>> => import(PACKAGE));
  if (loaded.kind === 'fault')
    throw stop(
      isMissing(loaded.fault)
        ? `--engine needs the package ${PACKAGE}, which is not installed beside Pawl: ${install}`
        : `The package ${PACKAGE} can't be loaded: ${loaded.fault.message}. Install it again: ${install}`,
    );
  const { version = 'unknown', machineFingerprint = '', startEngineNode } = loaded.value;
  if (version !== own || startEngineNode === undefined)
    throw stop(
      `The package ${PACKAGE} beside Pawl is version ${version}, and this is Pawl ${own}. Install the same of both: ${install}`,
    );
  if (machineFingerprint !== agentMachine.fingerprint)
    throw stop(
      `The package ${PACKAGE} works with another copy of Pawl, whose machine is different. Install both in one place: ${install}`,
    );
  return { version, machineFingerprint, startEngineNode };
};
