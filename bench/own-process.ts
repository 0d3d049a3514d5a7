/**
 * Runs a benchmark file in a process of its own, so that candidates share neither compiled code
 * nor heap.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Bundles the file, so that no loader is in the way, runs it in Node with `--own-process` and
 * `words`, and returns what it printed as JSON.
 */
export const inOwnProcess = async <T>(file: string, ...words: readonly string[]): Promise<T> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  try {
    const bundle = path.join(folder, 'bench.mjs');
    const banner =
      "import { createRequire as benchRequire } from 'node:module'; const require = benchRequire(import.meta.url);";
    const { build } = await import('esbuild');
    await build({
      entryPoints: [file],
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      keepNames: true, // the fingerprint of the machine holds names
      banner: { js: banner },
      logLevel: 'error',
      external: ['esbuild', '@vscode/ripgrep'],
    });
    const { stdout } = await run(
      process.execPath,
      ['--expose-gc', bundle, '--own-process', ...words],
      {
        maxBuffer: 64 * 1024 * 1024,
      },
    );
    // The child prints what `measure` returns; both sides are in the same file.
    return JSON.parse(stdout) as T;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
