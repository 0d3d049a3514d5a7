/**
 * Programs that the tests need and npm does not install. With Debian's packages they are installed,
 * with a message. Elsewhere the message says what is missing and how to install it.
 */
import { spawnSync } from 'node:child_process';

type Need = {
  /** Works when this ends with 0. */
  readonly program: string;
  readonly words: readonly string[];
  /** Debian's package that brings it. */
  readonly debian: string;
  /** Other reasons why it may not work. */
  readonly else?: string;
};

const USER_NAMESPACES =
  'programs may not make user namespaces here: docs/set-up/permissions.md says what to do';

const NEEDS: readonly Need[] = [
  { program: 'git', words: ['--version'], debian: 'git' },
  {
    program: 'unshare',
    words: ['--user', '--map-root-user', '--mount', 'true'],
    debian: 'util-linux',
    else: USER_NAMESPACES,
  },
  { program: 'ps', words: ['--version'], debian: 'procps' },
  { program: 'bash', words: ['--version'], debian: 'bash' },
  {
    program: 'bwrap',
    words: ['--unshare-all', '--ro-bind', '/', '/', 'true'],
    debian: 'bubblewrap',
    else: USER_NAMESPACES,
  },
  { program: 'python3', words: ['-c', 'pass'], debian: 'python3' },
  { program: 'perl', words: ['-e', '1'], debian: 'perl' },
  { program: 'tmux', words: ['-V'], debian: 'tmux' },
  { program: 'make', words: ['--version'], debian: 'make' },
  { program: 'gcc', words: ['--version'], debian: 'gcc' },
  // It has the headers of C too.
  {
    program: 'gcc',
    words: ['-E', '-include', 'stdio.h', '-x', 'c', '/dev/null'],
    debian: 'libc6-dev',
  },
  // The inspector's page is tested in the first of these that is there
  // (test/kit/inspector/browser.ts).
  {
    program: 'sh',
    words: ['-c', 'chromium --version || chromium-browser --version || google-chrome --version'],
    debian: 'chromium',
  },
  // Where the tests run as root they make an ordinary user.
  ...(process.getuid?.() === 0
    ? [{ program: 'useradd', words: ['--help'], debian: 'passwd' }]
    : []),
];

const works = ({ program, words }: Need): boolean =>
  spawnSync(program, words, { stdio: 'ignore' }).status === 0;

const canInstall = (): boolean =>
  process.getuid?.() === 0 && spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;

const aptGet = (words: readonly string[]): boolean => {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync('apt-get', ['-qq', ...words], { stdio: 'inherit', env }).status === 0;
};

const install = (packages: readonly string[]): void => {
  console.log(`installing what the tests use: ${packages.join(' ')}`);
  // Another installation may be under way.
  const waitForLock = ['-o', 'DPkg::Lock::Timeout=120'];
  if (aptGet(['update', ...waitForLock]))
    aptGet(['install', '-y', ...waitForLock, '--no-install-recommends', ...packages]);
};

/**
 * Installs missing programs if possible. Returns one sentence for each program that still does not
 * work.
 */
export const missingNeeds = (): readonly string[] => {
  const absent = NEEDS.filter((need) => !works(need));
  if (absent.length > 0 && canInstall()) install([...new Set(absent.map(({ debian }) => debian))]);
  return absent
    .filter((need) => !works(need))
    .map(
      ({ program, words, debian, else: other }) =>
        `'${[program, ...words].join(' ')}' does not work here. Install it: apt-get install ${debian}` +
        (other === undefined ? '' : `; or ${other}`),
    );
};
