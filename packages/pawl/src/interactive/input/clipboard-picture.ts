import path from 'node:path';
import { searchPrograms } from '@pawl/agent/platform/programs/find-program';
import { runProgram } from '@pawl/agent/workspace/run-program';

/** Reads the picture in the clipboard with the first installed program that can. */

const DEADLINE_MS = 3_000;
/** Larger than any picture that models accept, so that the message can say what is wrong with the picture. */
const BYTES_MAX = 40_000_000;

/** Environment variables for those programs. Keys of providers are not among them. */
const NEEDED = ['HOME', 'DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'XDG_RUNTIME_DIR', 'TMPDIR'];

type Reader = {
  readonly program: string;
  readonly words: readonly string[];
  readonly package: string;
  /** Extracts the picture from the program's output. */
  decode(output: Buffer): Buffer;
};

const asIs = (output: Buffer): Buffer => output;

const wayland: Reader = {
  program: 'wl-paste',
  words: ['--type', 'image/png'],
  package: 'wl-clipboard',
  decode: asIs,
};
const x11: Reader = {
  program: 'xclip',
  words: ['-selection', 'clipboard', '-t', 'image/png', '-o'],
  package: 'xclip',
  decode: asIs,
};
const macOs: readonly Reader[] = [
  { program: 'pngpaste', words: ['-'], package: 'pngpaste', decode: asIs },
  {
    program: 'osascript',
    words: ['-e', 'get the clipboard as «class PNGf»'],
    package: 'osascript',
    // the output is «data PNGf89504E47…»
    decode: (output) => Buffer.from(/PNGf([0-9A-F]+)/.exec(output.toString('latin1'))?.[1] ?? '', 'hex'),
  },
];

export type ClipboardPlace = {
  readonly platform: NodeJS.Platform;
  readonly environment: NodeJS.ProcessEnv;
  /** Real absolute path. Programs inside it are never run. */
  readonly workspace: string;
  readonly signal: AbortSignal;
};

const readersOf = ({ platform, environment }: ClipboardPlace): readonly Reader[] => [
  ...(environment.WAYLAND_DISPLAY ? [wayland] : []),
  ...(environment.DISPLAY ? [x11] : []),
  ...(platform === 'darwin' ? macOs : []),
];

const firstLine = (text: string): string => text.split('\n')[0] ?? '';

/** Rejects with half a sentence about why there is no picture. */
export const readClipboard = async (place: ClipboardPlace): Promise<Buffer> => {
  const { environment, workspace, signal } = place;
  const readers = readersOf(place);
  if (readers.length === 0)
    throw new Error('there is no access to a clipboard, because neither WAYLAND_DISPLAY nor DISPLAY is set');
  const programs = searchPrograms({ environment, workspace });
  for (const { program, words, decode } of readers) {
    const found = programs.find(program);
    if (found === null) continue;
    const kept = NEEDED.flatMap((name) => (environment[name] ? [[name, environment[name]]] : []));
    const { code, output, errors } = await runProgram({
      program: found,
      words,
      title: program,
      folder: path.dirname(found),
      input: null,
      signal,
      bytesMax: BYTES_MAX,
      atMax: 'fail',
      deadlineMs: DEADLINE_MS,
      environment: { ...Object.fromEntries(kept), PATH: programs.folders.join(path.delimiter) },
    });
    const picture = code === 0 ? decode(output) : output.subarray(0, 0);
    if (picture.length > 0) return picture;
    const said = errors === '' ? '' : ` (${firstLine(errors)})`;
    throw new Error(`${program} finds no picture in the clipboard${said}`);
  }
  const packages = readers.map((reader) => reader.package).join(' or ');
  throw new Error(`the clipboard can't be read without ${packages}, which is not installed`);
};
