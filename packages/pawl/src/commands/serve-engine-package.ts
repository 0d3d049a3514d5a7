/**
 * Loads the package with the engine. It is not a part of Pawl, so that nobody installs an engine
 * who does not use it: it is loaded by its name, beside Pawl or where Node finds packages, and
 * never from the current folder.
 */

import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { attempt } from '@pawl/agent/platform/attempt';
import type { EngineNodeOptions, SharedRuntime } from '@pawl/serve/node-runtime';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';

/** The type `string` keeps the compiler from looking for the package, which may be missing. */
const ENGINE_PACKAGE: string = '@pawl/restate';

type StartedEngineNode = {
  readonly runtime: SharedRuntime;
  stop(): Promise<void>;
};

/** The exports that are used. The package's own tests check that they fit. */
export type EnginePackage = {
  readonly version: string;
  readonly machineFingerprint: string;
  startEngineNode(options: EngineNodeOptions): Promise<StartedEngineNode>;
};

const packageFault = (message: string): Stop =>
  new Stop(exitCodes.configuration, 'configuration', message);

const isMissing = (fault: Error): boolean =>
  'code' in fault &&
  /MODULE_NOT_FOUND$/.test(String(fault.code)) &&
  fault.message.includes(ENGINE_PACKAGE);

/** Throws a Stop that says what to install. */
export const loadEnginePackage = async (): Promise<EnginePackage> => {
  const pawlVersion = packageVersion();
  const install = `npm install -g pawl@${pawlVersion} ${ENGINE_PACKAGE}@${pawlVersion}`;
  const loaded = await attempt(async (): Promise<Partial<EnginePackage>> => import(ENGINE_PACKAGE));
  if (loaded.kind === 'fault')
    throw packageFault(
      isMissing(loaded.fault)
        ? `--engine needs the package ${ENGINE_PACKAGE}, which is not installed beside Pawl: ${install}`
        : `The package ${ENGINE_PACKAGE} can't be loaded: ${loaded.fault.message}. Install it again: ` +
            `${install}`,
    );
  const { version = 'unknown', machineFingerprint = '', startEngineNode } = loaded.value;
  if (version !== pawlVersion || startEngineNode === undefined)
    throw packageFault(
      `The package ${ENGINE_PACKAGE} beside Pawl is version ${version}, and this is Pawl ` +
        `${pawlVersion}. Install the same of both: ${install}`,
    );
  if (machineFingerprint !== agentMachine.fingerprint)
    throw packageFault(
      `The package ${ENGINE_PACKAGE} works with another copy of Pawl, whose machine is different. ` +
        `Install both in one place: ${install}`,
    );
  return { version, machineFingerprint, startEngineNode };
};
