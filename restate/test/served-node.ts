import { type Place, start } from '../../packages/pawl/test/e2e/pawl.js';
import { atEnd, type TestScope } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import type { Engine } from '../src/start-engine.js';

/** The first port of each of two nodes, which are peers. */
export type Ports = readonly [number, number];

/** One of two nodes on the engine, n0 or n1, by the command `pawl serve`. */
export const startServedNode = async (
  scope: TestScope,
  { place, program, engine }: { place: Place; program: string; engine: Engine },
  index: 0 | 1,
  { ports, nodesPort }: { readonly ports: Ports; readonly nodesPort: number },
  more: readonly string[],
) => {
  const words = [
    ...['--engine', engine.ingressUrl.replace('http:', 'restate:')],
    ...['--engine-admin', engine.adminUrl, '--node', `n${index}`],
    ...['--node-ports', String(ports[index]), '--nodes', `http://127.0.0.1:${nodesPort}`],
    ...['--peer', `http://127.0.0.1:${(ports[1 - index] ?? 0) + 2}`, '--port', '0', ...more],
  ];
  const running = start(place, process.execPath, [program, 'serve', ...words], null);
  atEnd(scope, () => void running.child.kill('SIGKILL'));
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  return { running, address };
};
