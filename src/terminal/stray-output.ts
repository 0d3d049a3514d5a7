import { makeSafe, safe } from './safe-text.js';
import { writeError, writeOut } from './write.js';

/** Output of libraries (`console`, streams of the process) and of Node's warnings, made safe for the screen. */

const WRITERS = { stdout: writeOut, stderr: writeError } as const;
type Stream = keyof typeof WRITERS;

/** Same signature as `stream.write`: bytes or text, optional encoding, optional callback. */
const writeInto =
  (stream: Stream) =>
  (given: unknown, ...rest: readonly unknown[]): boolean => {
    WRITERS[stream](makeSafe(given instanceof Uint8Array ? Buffer.from(given).toString('utf8') : `${given}`));
    const written = rest.at(-1);
    if (typeof written === 'function') process.nextTick(written);
    return true;
  };

/** Streams of the process are made when they are first looked at, which takes time: ours replace theirs then. */
const guard = (stream: Stream): void => {
  const known = Object.getOwnPropertyDescriptor(process, stream);
  const get = known?.get;
  if (get === undefined) return;
  Object.defineProperty(process, stream, {
    ...known,
    get: () => Object.assign(get.call(process), { write: writeInto(stream) }),
  });
};

/** Sends stray output through the writer, made safe. `console`, too, writes to the streams of the process. */
export const routeStrayOutput = (): void => {
  guard('stdout');
  guard('stderr');
  if (process.listenerCount('warning') === 0) return; // the user wants none
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => writeError(safe`${makeSafe(`${name}: ${message}`)}\n`));
};
