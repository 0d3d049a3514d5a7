import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file of the state folder that only the user may read. Readers see the old text or the new one. */
export const writePrivate = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    const made = await open(temporary, 'wx', 0o600);
    try {
      await made.writeFile(text);
      await made.datasync();
    } finally {
      await made.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
};
