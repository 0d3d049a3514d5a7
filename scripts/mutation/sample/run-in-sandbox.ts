/**
 * Runs a compiled test file in a sandbox: a mutant of code that removes files or kills processes
 * reaches nothing else. It sees the file system read-only, but for a `/tmp` of its own and the
 * folder of the switches; its own processes, and no network but its own.
 */

import { spawn } from 'node:child_process';
import path from 'node:path';

export type SandboxedRun = {
  /** Names of the tests that failed. Only the first one where the run ends with it. */
  readonly failed: readonly string[];
  /** Why the file as a whole failed, null if it came to its end. */
  readonly fault: string | null;
  readonly hung: boolean;
  readonly durationMs: number;
};

type SandboxedFile = {
  /** The working directory. */
  readonly tree: string;
  readonly stateFolder: string;
  readonly program: string;
  readonly timeMaxMs: number;
  /** Whether a failure of this test ends the run. */
  readonly endsAt: (name: string) => boolean;
};

const sandbox = (tree: string, stateFolder: string): readonly string[] => [
  ...['--ro-bind', '/', '/', '--dev-bind', '/dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
  ...['--bind', stateFolder, stateFolder, '--dir', '/tmp/home', '--chdir', tree],
  // What runs as root makes sandboxes of its own in the tests.
  ...(process.getuid?.() === 0 ? ['--cap-add', 'ALL'] : []),
  ...[
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-net',
    '--die-with-parent',
    '--new-session',
    '--clearenv',
  ],
  ...[
    '--setenv',
    'PATH',
    process.env.PATH ?? '',
    '--setenv',
    'HOME',
    '/tmp/home',
    '--setenv',
    'TMPDIR',
    '/tmp',
  ],
  ...[
    '--setenv',
    'LANG',
    'C.UTF-8',
    '--setenv',
    'PAWL_SEED',
    '7',
    '--setenv',
    'PAWL_TIER',
    'quick',
  ],
];

const FAILED = /^\s*not ok \d+ - (.*)$/;
const SKIPPED = / # (?:TODO|SKIP)\b/;
const OUTPUT_LINE_MAX = 100_000;

/** The name of a test that a line of TAP tells as failed. */
const failureIn = (line: string): string | null => {
  const name = FAILED.exec(line)?.[1];
  return name === undefined || SKIPPED.test(line) ? null : name;
};

export const runInSandbox = ({
  tree,
  stateFolder,
  program,
  timeMaxMs,
  endsAt,
}: SandboxedFile): Promise<SandboxedRun> =>
  new Promise((resolve) => {
    const startedAtMs = performance.now();
    const words = [...sandbox(tree, stateFolder), process.execPath, '--test-reporter=tap', program];
    const child = spawn('bwrap', words, { stdio: ['ignore', 'pipe', 'ignore'] });
    const failed: string[] = [];
    let [rest, hung, isWhole] = ['', false, false];
    // Its processes die with the sandbox.
    const timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, timeMaxMs);
    const read = (line: string): void => {
      isWhole ||= line.startsWith('# pass ');
      const name = failureIn(line);
      if (name === null) return;
      failed.push(name);
      if (endsAt(name)) child.kill('SIGKILL');
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\n');
      rest = (lines.pop() ?? '').slice(-OUTPUT_LINE_MAX);
      lines.forEach(read);
    });
    const end = (why: string): void => {
      clearTimeout(timer);
      const fault = isWhole ? null : `${path.basename(program)}: ${why}`;
      resolve({ failed, fault, hung, durationMs: performance.now() - startedAtMs });
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) =>
      end(hung ? 'did not end' : `ended early with ${code ?? signal}`),
    );
  });
