import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withRegular } from '../platform/files.js';
import type { Header, MachineTypes } from '../ports/journal.js';
import { encodeHeader } from './codec.js';
import { errorCode } from './journal-error.js';
import { FILE_MODE, makeFolder, ownerPath, syncFolder } from './state-folder.js';

/**
 * Tells the sessions that were created in a state folder from those that came from elsewhere.
 *
 * 1. The folder has a secret, `owner.key`. Beside each journal that is created here stands
 *    `ID.owner`, a code of the secret and the journal's header. Exports contain neither, and an
 *    import writes none: a journal without the right code is foreign, whoever wrote it.
 * 2. The secret names its own inode. In a copy of the folder it has another one: then all sessions
 *    of the copy are foreign, and the next session that is created there makes a new secret.
 * 3. A foreign session becomes one of this folder by the user's first prompt.
 */
const SECRET_BYTES = 32;
const FILE_BYTES_MAX = 1024;

/** The secret is there already, or the file system has no hard links. */
const LINK_REFUSALS = new Set([
  'EEXIST',
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
  'EXDEV',
]);

const secretPath = (folder: string): string => join(folder, 'owner.key');

/** The text of a secret: the secret in hexadecimal, and the inode of its file. */
const SECRET = /^([0-9a-f]{64}) (\d+)\n$/;

/** The text of a small file; null if there is none. Rejects if it can't be read. */
const readSmall = async (
  path: string,
): Promise<{ readonly text: string; readonly inode: string } | null> => {
  try {
    return await withRegular(path, async (file, { size, ino }) => ({
      text: size > FILE_BYTES_MAX ? '' : await file.readFile('utf8'),
      inode: String(ino),
    }));
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTREG' || code === 'EISDIR' || code === 'ELOOP')
      return null;
    throw error;
  }
};

/** The secret of the folder; null if there is none, or only that of another folder. */
const readSecret = async (folder: string): Promise<Buffer | null> => {
  const read = await readSmall(secretPath(folder));
  const [, secret, inode] = SECRET.exec(read?.text ?? '') ?? [];
  return secret === undefined || read?.inode !== inode ? null : Buffer.from(secret, 'hex');
};

/**
 * Gives the draft its name. Resolves with the secret of another process that was faster, or null.
 */
const placeSecret = async (folder: string, draft: string): Promise<Buffer | null> => {
  const path = secretPath(folder);
  try {
    await link(draft, path);
    return null;
  } catch (error) {
    if (!LINK_REFUSALS.has(errorCode(error))) throw error;
    const other = await readSecret(folder);
    if (other === null) await rename(draft, path);
    return other;
  }
};

const makeSecret = async (folder: string): Promise<Buffer> => {
  await makeFolder(folder);
  const draft = `${secretPath(folder)}.${randomUUID()}`;
  const secret = randomBytes(SECRET_BYTES);
  try {
    const handle = await open(draft, 'wx', FILE_MODE);
    try {
      const { ino } = await handle.stat();
      await handle.appendFile(`${secret.toString('hex')} ${ino}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const other = await placeSecret(folder, draft);
    await syncFolder(folder);
    return other ?? secret;
  } finally {
    await rm(draft, { force: true });
  }
};

const codeFor = <M extends MachineTypes>(secret: Buffer, header: Header<M>): string =>
  createHmac('sha256', secret).update(encodeHeader(header).bytes).digest('hex');

/**
 * Whether the session with this header was created in this state folder. Rejects if that can't be
 * read.
 */
export const isOwn = async <M extends MachineTypes>(
  folder: string,
  header: Header<M>,
): Promise<boolean> => {
  const written = await readSmall(ownerPath(folder, header.sessionId));
  const secret = written === null ? null : await readSecret(folder);
  if (written === null || secret === null) return false;
  const code = Buffer.from(codeFor(secret, header));
  const stored = Buffer.from(written.text.trim());
  return stored.length === code.length && timingSafeEqual(stored, code);
};

/**
 * Whether the session of this journal was created in the state folder where the journal is. Rejects
 * if that can't be read.
 */
export const isOwnJournal = <M extends MachineTypes>(
  path: string,
  header: Header<M>,
): Promise<boolean> => isOwn(dirname(dirname(path)), header);

/**
 * Whether the session has a code, right or wrong: only sessions that were created in some state
 * folder have one.
 */
export const hasCode = async (folder: string, sessionId: string): Promise<boolean> =>
  stat(ownerPath(folder, sessionId)).then(
    () => true,
    (error: unknown) => errorCode(error) !== 'ENOENT',
  );

/**
 * Makes the session one of this folder. The name of the file is durable once the folder is synced.
 */
export const makeOwn = async <M extends MachineTypes>(
  folder: string,
  header: Header<M>,
): Promise<void> => {
  const secret = (await readSecret(folder)) ?? (await makeSecret(folder));
  const handle = await open(ownerPath(folder, header.sessionId), 'w', FILE_MODE);
  try {
    await handle.appendFile(`${codeFor(secret, header)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
};
