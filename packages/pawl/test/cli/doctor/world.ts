import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../../../../../test/temporary-folder.js';
import { type DoctorWorld, diagnose } from '../../../src/commands/doctor.js';

/** A healthy world of real files and programs, and ways to make it ill. */

type Place = {
  readonly folder: string;
  readonly bin: string;
  readonly world: DoctorWorld;
};

const findProgram = (name: string): string => {
  const found = (process.env.PATH ?? '')
    .split(':')
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        return readFileSync(file).length > 0;
      } catch {
        return false; // not in this folder
      }
    });
  if (found === undefined) throw new Error(`${name} is needed by this test`);
  return found;
};

export const write = (file: string, text: string, mode = 0o644): string => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
};

/** A program that prints and ends as it is told. */
export const fakeProgram = ({ bin }: Place, name: string, script: string): void => {
  rmSync(path.join(bin, name), { force: true });
  write(path.join(bin, name), `#!/bin/sh\n${script}\n`, 0o755);
};

export const makePlace = (context: TestContext): Place => {
  const folder = temporaryFolder(context, 'doctor');
  const [bin, home, work] = ['bin', 'home', 'work'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]; // as many as names
  for (const made of [bin, home, path.join(work, '.git')]) mkdirSync(made, { recursive: true });
  const place: Place = {
    folder,
    bin,
    world: {
      environment: {
        PATH: bin,
        HOME: home,
        LANG: 'C.UTF-8',
        TERM: 'xterm',
        TMPDIR: folder,
        ANTHROPIC_API_KEY: 'key',
      },
      nodeVersion: '22.1.0',
      platform: 'linux',
      userId: 1000,
      workspace: work,
      systemRoot: path.join(folder, 'root'),
      now: Date.UTC(2027, 0, 1),
      online: false,
      model: null,
    },
  };
  write(path.join(folder, 'root/etc/os-release'), 'NAME=Debian\nID=debian\n');
  symlinkSync(findProgram('bash'), path.join(bin, 'bash'));
  fakeProgram(place, 'git', 'echo git version 2.40.1');
  symlinkSync(findProgram('bwrap'), path.join(bin, 'bwrap'));
  fakeProgram(place, 'python3', 'echo Python 3.11.2');
  return place;
};

/** Git as it is on this machine. */
export const realGit = ({ bin }: Place): void => {
  rmSync(path.join(bin, 'git'));
  symlinkSync(findProgram('git'), path.join(bin, 'git'));
};

export const namesIn = async (world: DoctorWorld): Promise<readonly string[]> =>
  (await diagnose(world)).map(({ name }) => name);

/** Makes the world ill; what it gives back is the world that the doctor sees. */
export type Harm = (place: Place, context: TestContext) => DoctorWorld | Promise<DoctorWorld>;
