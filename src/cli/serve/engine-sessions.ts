import { attempt } from '../../runtime/attempt.js';
import type { NodeRuntime } from '../../serve/node-runtime.js';
import { exitCodes, Stop } from '../exit-codes.js';
import { usageStop } from '../flags.js';

/**
 * The sessions of a node on a durable engine. The package of the engine is not a part of Pawl: it is loaded by name.
 *
 * This is the door only: a node on the engine is a program of its own so far (docs/serve.md).
 */

const PACKAGE: string = '@pawl/restate';

const stop = (message: string): Stop => new Stop(exitCodes.configuration, 'configuration', message);

export const engineSessions = async (engine: string): Promise<NodeRuntime> => {
  if (!/^restate:\/\/[^/]+$/.test(engine))
    throw usageStop(
      `--engine needs restate://HOST:PORT, the address of the engine's server, not '${engine}'.`,
    );
  const loaded = await attempt(() => import(PACKAGE));
  if (loaded.kind === 'fault')
    throw stop(
      `--engine needs the package ${PACKAGE}, which is not installed beside Pawl: npm install -g ${PACKAGE}`,
    );
  throw stop(
    `--engine can't start a node of ${PACKAGE} yet. Start it from a program: docs/serve.md, "Many machines".`,
  );
};
