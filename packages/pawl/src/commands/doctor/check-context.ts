import { type ProgramSearch, searchPrograms } from '@pawl/agent/platform/programs/find-program';
import { askProgram } from '@pawl/agent/platform/programs/start-program';

/** The machine as the checks see it. A test passes its own. */

export type ProbeRun = { readonly code: number; readonly text: string };

export type DoctorWorld = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Format of `process.versions.node`: `20.19.0`. */
  readonly nodeVersion: string;
  readonly platform: string;
  /** Null where the system has no numeric user ids. */
  readonly userId: number | null;
  /** Path as the user gave it. It may not exist. */
  readonly workspace: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Whether checks may use the network (`--online`). */
  readonly online: boolean;
  /** The model to check; null for the configured one. */
  readonly model: string | null;
};

export type Found = {
  /** One line: what is wrong. */
  readonly what: string;
  /** What to do about it. */
  readonly repair: string;
};

export type Check = {
  readonly name: string;
  /** `fault`: something does not work. `note`: it works, but maybe not as the user expects. */
  readonly level: 'fault' | 'note';
  /** Name of a check that covers this one: if that one finds something, this finding is left out. */
  readonly partOf?: string;
  /** The finding; null if all is well. */
  look(world: DoctorWorld): Promise<Found | null> | Found | null;
};

const LIMIT_MS = 10_000;

/** The search path for programs, with the same rules as the agent's. */
export const programsOf = ({ environment, workspace }: DoctorWorld): ProgramSearch =>
  searchPrograms({ environment, workspace });

/** Runs a program that is found as the agent would find it; null if there is none. `text` is stdout, then stderr. */
export const runProgram = async (
  world: DoctorWorld,
  program: string,
  words: readonly string[],
  folder?: string,
): Promise<ProbeRun | null> => {
  const programs = programsOf(world);
  const found = programs.find(program);
  if (found === null) return null;
  const answer = await askProgram(found, words, {
    environment: world.environment,
    searchPath: programs.folders,
    timeoutMs: LIMIT_MS,
    ...(folder === undefined ? {} : { folder }),
  });
  if (answer === null) return null;
  const text = `${answer.output}${answer.errors}`.trim();
  return { code: answer.code, text: text || (answer.fault ?? '') };
};

/** Whether version `a.b.c` is `wanted` or newer. */
export const isAtLeast = (version: string, wanted: string): boolean => {
  const [have, need] = [version, wanted].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (have?.[index] ?? 0) - (need?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
};

/** The first version number in a text; null if there is none. */
export const versionIn = (text: string): string | null => /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? null;
