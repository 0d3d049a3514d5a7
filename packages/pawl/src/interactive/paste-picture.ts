/**
 * Ctrl+V in the terminal: takes a picture from the clipboard into the input line. From top to
 * bottom: storing and mentioning it; and reading the clipboard by an installed program.
 */

import path from 'node:path';
import { makeFolder, pastedFolder, writeWhole } from '@pawl/agent/journal/state-folder';
import { attempt } from '@pawl/agent/platform/attempt';
import { stateFolder } from '@pawl/agent/platform/environment';
import { searchPrograms } from '@pawl/agent/platform/find-program';
import { runProgram } from '@pawl/agent/platform/run-program';
import type { Session } from '@pawl/agent/session/create-agent';
import type { Composer } from '@pawl/terminal/composer';
import { indentWords, paint } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { pictureMention } from '../sessions/typed-input.js';
import type { SlashCommandContext } from './slash-command.js';

/** Characters of the hash in a picture's file name. */
const NAME_DIGITS = 12;

/**
 * Stores the clipboard's picture with the session. Returns the word that names it; rejects with why
 * there is none.
 */
const keepClipboard = async (
  session: Pick<Session, 'id' | 'keepPicture'>,
  workspace: string,
  signal: AbortSignal,
): Promise<string> => {
  const bytes = await readClipboard({
    platform: process.platform,
    environment: process.env,
    workspace,
    signal,
  });
  // a picture that no model accepts is refused here, not only when the text is sent
  const { sha256 } = await session.keepPicture(bytes);
  const folder = pastedFolder(stateFolder(process.env), session.id);
  const file = path.join(folder, `pasted-${sha256.slice(0, NAME_DIGITS)}.png`);
  const mention = pictureMention(file);
  if (mention === null)
    throw new Error(`${file} can't be mentioned because its path contains spaces and quotes`);
  await makeFolder(folder);
  await writeWhole(file, [bytes]);
  return mention;
};

/** Inserts the clipboard's picture into the input line, or says why that failed. Never rejects. */
export const pastePicture = async (
  context: SlashCommandContext,
  composer: Composer,
  signal: AbortSignal,
): Promise<void> => {
  const { session, workspace, view, look } = context;
  const mention = await attempt(() => keepClipboard(session, workspace, signal));
  if (signal.aborted) return; // the session has ended
  if (mention.kind === 'fault') {
    const text =
      `Can't paste a picture: ${mention.fault.message}. Or save it as a file and mention it: ` +
      '@shot.png';
    view.print(paint(look, 'yellow', indentWords(makeSafe(text), look.columns)));
  } else if (look.plain === 'yes') {
    // Don't insert a word into a line that the user can't see.
    view.print(
      safe`· the picture is stored: mention it in your text as ${makeSafe(mention.value)}`,
    );
  } else composer.putWord(mention.value);
  view.redraw();
};

// Reading the clipboard with the first program that is installed. Only that one is tried: the
// clipboard of macOS and those of displays may differ, and the first is the user's.

const DEADLINE_MS = 3_000;
/**
 * Larger than any picture that models accept, so that the message can say what is wrong with the
 * picture.
 */
const PICTURE_BYTES_MAX = 40_000_000;

/** Environment variables for those programs. Keys of providers are not among them. */
const PASSED_VARIABLES = [
  'HOME',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
  'XDG_RUNTIME_DIR',
  'TMPDIR',
];

type Reader = {
  readonly program: string;
  readonly words: readonly string[];
  readonly package: string;
  /** Extracts the picture from the program's output. */
  decode(output: Buffer): Buffer;
};

const unchanged = (output: Buffer): Buffer => output;

const wayland: Reader = {
  program: 'wl-paste',
  words: ['--type', 'image/png'],
  package: 'wl-clipboard',
  decode: unchanged,
};
const x11: Reader = {
  program: 'xclip',
  words: ['-selection', 'clipboard', '-t', 'image/png', '-o'],
  package: 'xclip',
  decode: unchanged,
};
const macOs: readonly Reader[] = [
  { program: 'pngpaste', words: ['-'], package: 'pngpaste', decode: unchanged },
  {
    program: 'osascript',
    words: ['-e', 'get the clipboard as «class PNGf»'],
    package: 'osascript',
    // the output is «data PNGf89504E47…»
    decode: (output) =>
      Buffer.from(/PNGf([0-9A-F]+)/.exec(output.toString('latin1'))?.[1] ?? '', 'hex'),
  },
];

type ClipboardPlace = {
  readonly platform: NodeJS.Platform;
  readonly environment: NodeJS.ProcessEnv;
  /** Real absolute path. Programs inside it are never run. */
  readonly workspace: string;
  readonly signal: AbortSignal;
  /** How long the program may take. Default: 3 s. */
  readonly deadlineMs?: number;
};

const clipboardReaders = ({ platform, environment }: ClipboardPlace): readonly Reader[] => [
  ...(platform === 'darwin' ? macOs : []),
  ...(environment.WAYLAND_DISPLAY ? [wayland] : []),
  ...(environment.DISPLAY ? [x11] : []),
];

/** Rejects with half a sentence about why there is no picture. */
export const readClipboard = async (place: ClipboardPlace): Promise<Buffer> => {
  const { environment, workspace, signal, deadlineMs = DEADLINE_MS } = place;
  const readers = clipboardReaders(place);
  if (readers.length === 0)
    throw new Error(
      'there is no access to a clipboard, because neither WAYLAND_DISPLAY nor DISPLAY is set',
    );
  const programs = searchPrograms({ environment, workspace });
  for (const { program, words, decode } of readers) {
    const file = programs.find(program);
    if (file === null) continue;
    const variables = PASSED_VARIABLES.flatMap((name) =>
      environment[name] ? [[name, environment[name]]] : [],
    );
    const { code, output, errors } = await runProgram({
      program: file,
      words,
      title: program,
      folder: path.dirname(file),
      input: null,
      signal,
      bytesMax: PICTURE_BYTES_MAX,
      atMax: 'fail',
      deadlineMs,
      environment: {
        ...Object.fromEntries(variables),
        PATH: programs.folders.join(path.delimiter),
      },
    });
    const picture = code === 0 ? decode(output) : output.subarray(0, 0);
    if (picture.length > 0) return picture;
    const reason = errors === '' ? '' : ` (${errors.split('\n')[0]})`;
    throw new Error(`${program} finds no picture in the clipboard${reason}`);
  }
  const packages = readers.map((reader) => reader.package).join(' or ');
  throw new Error(`the clipboard can't be read without ${packages}, which is not installed`);
};
