import type { NodeRuntime } from '../../serve/node-runtime.js';
import { exitCodes, Stop } from '../exit-codes.js';
import { type RunFlags, usageStop } from '../flags.js';
import type { Warn } from '../settings/connect-model.js';

/** The sessions of a node on a durable engine. The package of the engine is not a part of Pawl: it is loaded by name. */

const PACKAGE: string = '@pawl/restate';

export const engineSessions = async (engine: string, _flags: RunFlags, _warn: Warn): Promise<NodeRuntime> => {
  if (!/^restate:\/\/[^/]+$/.test(engine))
    throw usageStop(
      `--engine needs restate://HOST:PORT, the address of the engine's server, not '${engine}'.`,
    );
  throw new Stop(exitCodes.configuration, 'configuration', `--engine needs the package ${PACKAGE}.`);
};
