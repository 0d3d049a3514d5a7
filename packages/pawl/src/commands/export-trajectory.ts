/**
 * `pawl export ID --atif FILE`: the session as a trajectory (ATIF), the form in which Harbor, a
 * runner of benchmarks, takes what an agent did. `-` is stdout.
 */

import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { resumeCommand } from '@pawl/agent/journal/journal-error';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Image } from '@pawl/agent/machine/message';
import { entryStatus, errorCode } from '@pawl/agent/platform/files';
import { plural } from '@pawl/agent/platform/text';
import type { Header, SessionInfo } from '@pawl/agent/ports/journal';
import type { ToolDeclaration } from '@pawl/agent/ports/model';
import { createTrajectory, type TaskCall, type Trajectory } from '@pawl/inspector/atif-trajectory';
import { cleanValue } from '@pawl/inspector/server/inspected-sessions';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { pageRedactor } from '../sessions/inspector-page.js';
import { allSessions, findInfo, foldStored, storedBlobs } from '../sessions/stored-sessions.js';
import { usageStop } from '../settings/flags.js';

type Tasks = ReadonlyMap<string, Trajectory>;

/** A picture's path in the trajectory; null leaves it out. */
type PicturePath = (image: Image) => string | null;

const taskKey = (sessionId: string, { batchId, callId }: Omit<TaskCall, 'seq'>): string =>
  JSON.stringify([sessionId, batchId, callId]);

/**
 * The sessions whose calls stand in a journal, each with the last entry that came from it: the
 * session itself, and those that it was forked from.
 */
const journalOwners = (
  info: SessionInfo,
  all: readonly SessionInfo[],
): readonly { readonly sessionId: string; readonly seq: number }[] => {
  const owners = [{ sessionId: info.sessionId, seq: Number.POSITIVE_INFINITY }];
  let { parent } = info;
  while (parent !== null && !owners.some(({ sessionId }) => sessionId === parent?.sessionId)) {
    const { sessionId, seq } = parent;
    owners.push({ sessionId, seq: Math.min(seq, owners.at(-1)?.seq ?? seq) });
    parent = all.find((one) => one.sessionId === sessionId)?.parent ?? null;
  }
  return owners;
};

/** The tools that a blob lists; undefined if it is missing. */
const parseTools = (tools: string | undefined): readonly ToolDeclaration[] | undefined =>
  tools === undefined ? undefined : (JSON.parse(tools) as readonly ToolDeclaration[]);

type ReadJournal = { readonly header: Header; readonly steps: readonly JournalStep[] };

/** Reads each journal once: the trajectory is built twice, the first time for its pictures. */
const createReader = (): ((sessionId: string) => Promise<ReadJournal>) => {
  const journals = new Map<string, Promise<ReadJournal>>();
  const read = async (sessionId: string): Promise<ReadJournal> => {
    const steps: JournalStep[] = [];
    const { header } = await foldStored(sessionId, undefined, (step) => void steps.push(step));
    return { header, steps };
  };
  return (sessionId) => {
    const journal = journals.get(sessionId) ?? read(sessionId);
    journals.set(sessionId, journal);
    return journal;
  };
};

type Sessions = {
  readonly all: readonly SessionInfo[];
  readonly read: ReturnType<typeof createReader>;
};

/** Builds the trajectory of a stored session, with those of its tasks inside. */
const readTrajectory = async (
  info: SessionInfo,
  rootId: string,
  { all, read }: Sessions,
  picturePath: PicturePath,
): Promise<Trajectory> => {
  const owners = journalOwners(info, all);
  const tasks = new Map<string, Trajectory>();
  for (const task of all) {
    const { startedBy } = task;
    if (!owners.some(({ sessionId }) => sessionId === startedBy?.sessionId)) continue;
    if (startedBy === undefined || task.unreadable !== undefined) continue;
    const trajectory = await readTrajectory(task, rootId, { all, read }, picturePath);
    if (trajectory.steps.length > 0) tasks.set(taskKey(startedBy.sessionId, startedBy), trajectory);
  }
  const { header, steps } = await read(info.sessionId);
  const lastTools = steps.at(-1)?.state.session.settings.tools;
  const blobs = storedBlobs();
  return createTrajectory({
    header,
    steps,
    version: packageVersion(),
    rootId,
    prompt: {
      instructions: await blobs.get(header.instructions),
      // MCP servers may add tools later: the last list has them, the header's only those at the
      // start
      tools: parseTools(await blobs.get(lastTools ?? header.tools)),
    },
    picturePath,
    findTask: (call) => findTask(tasks, owners, call),
  });
};

const findTask = (
  tasks: Tasks,
  owners: ReturnType<typeof journalOwners>,
  call: TaskCall,
): Trajectory | null => {
  // a call up to `seq` was made in that session, and its task names it
  for (const { sessionId, seq } of owners) {
    const task = call.seq <= seq ? tasks.get(taskKey(sessionId, call)) : undefined;
    if (task !== undefined) return task;
  }
  return null;
};

const existingFile = (file: string): Stop =>
  new Stop(
    exitCodes.badInput,
    'cannotWrite',
    `${file} is there already and stays as it is. Name another file.`,
  );

const refuseExistingFile = (file: string): void => {
  if (entryStatus(file) !== null) throw existingFile(file);
};

const extensions = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const satisfies Readonly<Record<Image['mediaType'], string>>;

/** The folder of the pictures beside a file: `run-pictures` beside `run.json`. */
const pictureFolder = (target: string): string =>
  path.join(path.dirname(target), `${path.parse(target).name}-pictures`);

/** Reads the pictures of a session and its tasks, by the names of their files. */
const readPictures = async (
  info: SessionInfo,
  sessions: Sessions,
): Promise<ReadonlyMap<string, Buffer>> => {
  const images = new Map<string, Image>();
  await readTrajectory(info, info.sessionId, sessions, (image) => {
    images.set(pictureName(image), image);
    return null;
  });
  const pictures = new Map<string, Buffer>();
  for (const [name, { sha256 }] of images) {
    const base64 = await storedBlobs().get(sha256);
    if (base64 !== undefined) pictures.set(name, Buffer.from(base64, 'base64'));
  }
  return pictures;
};

const pictureName = ({ sha256, mediaType }: Image): string => `${sha256}.${extensions[mediaType]}`;

/** Writes a new file. If that fails, nothing of it stays. */
export const writeNewFile = async (file: string, text: string): Promise<void> => {
  try {
    await writeFile(file, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    // one that was there already is not ours; the first failure is the one to report
    if (errorCode(error) !== 'EEXIST') await rm(file, { force: true }).catch(() => undefined);
    throw error;
  }
};

/** Writes pictures and file; removes what it wrote if that fails. */
const writeTrajectory = async (
  target: string,
  trajectory: unknown,
  pictures: ReadonlyMap<string, Buffer>,
): Promise<void> => {
  const folder = pictureFolder(target);
  refuseExistingFile(target);
  if (pictures.size > 0) refuseExistingFile(folder);
  let isOurs = false;
  try {
    if (pictures.size > 0) {
      await mkdir(folder, { mode: 0o700 });
      isOurs = true;
    }
    for (const [name, bytes] of pictures)
      await writeFile(path.join(folder, name), bytes, { flag: 'wx', mode: 0o600 });
    await writeNewFile(target, `${JSON.stringify(trajectory, null, 2)}\n`);
  } catch (error) {
    if (isOurs) await rm(folder, { recursive: true, force: true });
    throw cannotExport(target, error);
  }
};

/** A new file that could not be written. */
export const cannotExport = (target: string, error: unknown): Stop => {
  if (errorCode(error) === 'EEXIST') return existingFile(target);
  const why = error instanceof Error ? error.message : String(error);
  return new Stop(
    exitCodes.cannotWrite,
    'cannotWrite',
    `Can't write ${target}: ${why}. Nothing was exported. Name another file.`,
  );
};

export const exportTrajectory = async (id: string, atif: string): Promise<number> => {
  const info = await findInfo(id);
  const { sessionId, kind, unreadable, title } = info;
  if (unreadable !== undefined)
    throw new Stop(
      exitCodes.badInput,
      unreadable,
      `The session ${sessionId} can't be exported: ${title}`,
    );
  if (kind !== 'agent')
    throw usageStop(
      `${sessionId} is a run of pawl ask, which has no trajectory. To go on with it: ` +
        `${resumeCommand(kind)} ${sessionId}`,
    );
  const target = atif === '-' ? null : path.resolve(atif);
  const sessions = { all: await allSessions(), read: createReader() };
  const pictures = target === null ? new Map<string, Buffer>() : await readPictures(info, sessions);
  const trajectory = await readTrajectory(info, sessionId, sessions, (image) => {
    const name = pictureName(image);
    return target !== null && pictures.has(name)
      ? `${path.basename(pictureFolder(target))}/${name}`
      : null;
  });
  if (trajectory.steps.length === 0)
    throw usageStop(`The session ${sessionId} has sent nothing yet: there is no step to export.`);
  const redactor = pageRedactor(); // replaces the secrets of this environment
  const redacted = cleanValue(redactor, trajectory);
  if (target === null) writeJson(redacted);
  else await writeTrajectory(target, redacted, pictures);
  writeError(
    makeSafe(
      `${plural(trajectory.steps.length, 'step')} in clear text: what was said, called and ` +
        'returned. The keys and tokens of this environment are replaced, secrets from ' +
        'elsewhere are not.\n',
    ),
  );
  if (target !== null) writeOut(safe`${makeSafe(target)}\n`);
  return exitCodes.done;
};
