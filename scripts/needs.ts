/**
 * What the tests use that npm does not bring. On a new machine with Debian's packages it is installed, and said;
 * elsewhere the message says what is missing and how it is repaired.
 */
import { spawnSync } from 'node:child_process';

type Need = {
  /** Works when this ends with 0. */
  readonly program: string;
  readonly words: readonly string[];
  /** Debian's package that brings it. */
  readonly debian: string;
  /** What else may be in the way. */
  readonly else?: string;
};

const USER_NAMESPACES =
  'let users make user namespaces (sysctl -w user.max_user_namespaces=10000; on Ubuntu also sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)';

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
];

const works = ({ program, words }: Need): boolean =>
  spawnSync(program, words, { stdio: 'ignore' }).status === 0;

const canInstall = (): boolean =>
  process.getuid?.() === 0 && spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;

/** Its output is shown where it fails: the reason is in it. */
const aptGet = (words: readonly string[]): boolean => {
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const { status, stdout, stderr } = spawnSync('apt-get', words, { encoding: 'utf8', env: environment });
  if (status !== 0) console.error(`apt-get ${words.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`);
  return status === 0;
};

const install = (packages: readonly string[]): void => {
  console.log(`installing what the tests use: ${packages.join(' ')}`);
  if (aptGet(['update', '-q'])) aptGet(['install', '-q', '-y', '--no-install-recommends', ...packages]);
};

/** Installs what is missing where that can be done; one sentence for each program that does not work even then. */
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
