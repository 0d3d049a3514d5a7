import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readTextOrEmpty } from '../files/regular-file.js';
import type { Header } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import { encodeHeader } from './format/line-codec.js';
import { codeOf } from './journal-error.js';
import { FILE_MODE, makeFolder, ownerPath, syncFolder } from './paths-and-durable-writes.js';

/**
 * Tells the sessions that were created in a state folder from those that came from elsewhere.
 *
 * 1. The folder has a secret, `owner.key`. Beside each journal that is created here stands `ID.owner`, a code of the secret
 *    and the journal's header. Exports contain neither, and an import writes none: a journal without the right code is
 *    foreign, whoever wrote it.
 * 2. The secret names its own inode. In a copy of the folder it has another one: then all sessions of the copy are foreign,
 *    and the next session that is created there makes a new secret.
 * 3. A foreign session becomes one of this folder by the user's first prompt.
 */
const SECRET_BYTES = 32;
const FILE_BYTES_MAX = 1024;

const secretPath = (folder: string): string => join(folder, 'owner.key');

/** The text of a secret: the secret in hexadecimal, and the inode of its file. */
const SECRET = /^([0-9a-f]{64}) (\d+)\n$/;

const readSecret = async (folder: string): Promise<Buffer | null> => {
  const path = secretPath(folder);
  const [, secret, inode] = SECRET.exec(await readTextOrEmpty(path, FILE_BYTES_MAX)) ?? [];
  if (secret === undefined) return null;
  const status = await stat(path).catch(() => null); // removed meanwhile: there is no secret
  return status !== null && String(status.ino) === inode ? Buffer.from(secret, 'hex') : null;
};

/** Gives the draft its name. A secret that another process has just made stays; one that is not valid is replaced. */
const placeSecret = async (folder: string, draft: string): Promise<void> => {
  const path = secretPath(folder);
  try {
    await link(draft, path);
  } catch {
    // it exists, or the file system has no hard links
    if ((await readSecret(folder)) === null) await rename(draft, path);
  }
};

const makeSecret = async (folder: string): Promise<Buffer> => {
  await makeFolder(folder);
  const draft = `${secretPath(folder)}.${randomUUID()}`;
  try {
    const handle = await open(draft, 'wx', FILE_MODE);
    try {
      const { ino } = await handle.stat();
      await handle.appendFile(`${randomBytes(SECRET_BYTES).toString('hex')} ${ino}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await placeSecret(folder, draft);
    await syncFolder(folder);
  } finally {
    await rm(draft, { force: true });
  }
  const made = await readSecret(folder);
  if (made === null) throw new Error(`${secretPath(folder)} was changed while it was made. Try again.`);
  return made;
};

const codeFor = <M extends MachineTypes>(secret: Buffer, header: Header<M>): string =>
  createHmac('sha256', secret).update(encodeHeader(header).bytes).digest('hex');

/** Whether the session with this header was created in this state folder. Never rejects. */
export const isOwn = async <M extends MachineTypes>(folder: string, header: Header<M>): Promise<boolean> => {
  const path = ownerPath(folder, header.sessionId);
  try {
    const written = (await readTextOrEmpty(path, FILE_BYTES_MAX)).trim();
    if (written === '') return false;
    const secret = await readSecret(folder);
    if (secret === null) return false;
    const code = Buffer.from(codeFor(secret, header));
    const found = Buffer.from(written);
    return found.length === code.length && timingSafeEqual(found, code);
  } catch {
    return false; // a session that can't be told is foreign
  }
};

/** Whether the session of this journal was created in the state folder where the journal is. Never rejects. */
export const isOwnJournal = <M extends MachineTypes>(path: string, header: Header<M>): Promise<boolean> =>
  isOwn(dirname(dirname(path)), header);

/** Whether the session has a code, right or wrong: only sessions that were created in some state folder have one. */
export const hasCode = async (folder: string, sessionId: string): Promise<boolean> =>
  stat(ownerPath(folder, sessionId)).then(
    () => true,
    (error: unknown) => codeOf(error) !== 'ENOENT',
  );

/** Makes the session one of this folder. The name of the file is durable once the folder is synced. */
export const makeOwn = async <M extends MachineTypes>(folder: string, header: Header<M>): Promise<void> => {
  const secret = (await readSecret(folder)) ?? (await makeSecret(folder));
  const handle = await open(ownerPath(folder, header.sessionId), 'w', FILE_MODE);
  try {
    await handle.appendFile(`${codeFor(secret, header)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
};
