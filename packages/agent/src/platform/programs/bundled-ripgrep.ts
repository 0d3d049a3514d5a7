import type { ProgramPath } from './find-program.js';

/** The ripgrep that is installed with Pawl. Rejects if the package is missing. */
export const ripgrepProgram = async (): Promise<ProgramPath> => {
  const { rgPath } = await import('@vscode/ripgrep');
  return rgPath as ProgramPath; // a file of our own installation, as trusted as this one
};
