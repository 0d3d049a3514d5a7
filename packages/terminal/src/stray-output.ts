import { makeSafe, safe } from './safe-text.js';
import { writeError, writeOut } from './write.js';

/** Makes other code's output safe for the screen: libraries (`console`, process streams) and warnings of Node. */

const WRITERS = { stdout: writeOut, stderr: writeError } as const;
type Stream = keyof typeof WRITERS;

/** Has the signature of `stream.write`: bytes or text, optional encoding, optional callback. */
const writeInto =
  (stream: Stream) =>
  (given: unknown, ...rest: readonly unknown[]): boolean => {
    WRITERS[stream](makeSafe(given instanceof Uint8Array ? Buffer.from(given).toString('utf8') : `${given}`));
    const written = rest.at(-1);
    if (typeof written === 'function') process.nextTick(written);
    return true;
  };

/** Node creates a process stream on first access, which takes time. Ours replace its methods only then. */
const guard = (stream: Stream): void => {
  const known = Object.getOwnPropertyDescriptor(process, stream);
  const get = known?.get;
  if (get === undefined) return;
  Object.defineProperty(process, stream, {
    ...known,
    get: () => Object.assign(get.call(process), { write: writeInto(stream) }),
  });
};

/** Routes stray output through write.ts. `console` uses the process streams too. */
export const routeStrayOutput = (): void => {
  guard('stdout');
  guard('stderr');
  if (process.listenerCount('warning') === 0) return; // the user turned warnings off
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => writeError(safe`${makeSafe(`${name}: ${message}`)}\n`));
};
