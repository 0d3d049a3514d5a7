import { randomBytes } from 'node:crypto';
import { readRegularSync } from '@pawl/agent/platform/files/regular-file';
import { keyOfToken, type ReadKeys, readKeys, type ServeKey } from '@pawl/serve/http/keys';
import { exitCodes, Stop } from '../../exit-codes.js';

/** The keys of a node: from a file, from PAWL_SERVE_TOKEN, or one that is made now. Never from the command line. */

export type NodeKeys = {
  readonly keys: readonly ServeKey[];
  /** The token that was made and has to be shown; null if the operator gave the keys. */
  readonly made: string | null;
};

const FILE_BYTES_MAX = 1024 * 1024;

const stop = (message: string): Stop => new Stop(exitCodes.configuration, 'configuration', message);

const keysIn = (what: string, read: ReadKeys): readonly ServeKey[] => {
  if (read.kind === 'ok') return read.keys;
  throw stop(`${what} can't be used: ${read.why}.`);
};

const readFile = (file: string): string => {
  const loaded = readRegularSync(file, FILE_BYTES_MAX);
  if (loaded.kind === 'absent') throw stop(`There is no file of keys ${file}. docs/serve.md has an example.`);
  if (loaded.kind !== 'file') throw stop(`${file} is not a file of keys: it is not a regular file.`);
  const { status, bytes } = loaded;
  if (status.uid !== process.getuid?.())
    throw stop(`${file} belongs to another user. Use a file of your own.`);
  if ((status.mode & 0o077) !== 0)
    throw stop(`Others may read ${file}. Make it yours alone: chmod 600 ${file}`);
  return bytes.toString('utf8');
};

export const nodeKeys = (
  file: string | undefined,
  { PAWL_SERVE_TOKEN: token = '' }: NodeJS.ProcessEnv,
): NodeKeys => {
  if (file !== undefined && token !== '')
    throw stop('There are keys in --keys and a token in PAWL_SERVE_TOKEN. Give one of them.');
  if (file !== undefined) return { keys: keysIn(file, readKeys(readFile(file))), made: null };
  if (token !== '') return { keys: keysIn('PAWL_SERVE_TOKEN', keyOfToken(token)), made: null };
  const made = randomBytes(24).toString('base64url');
  return { keys: keysIn('the token', keyOfToken(made)), made };
};
