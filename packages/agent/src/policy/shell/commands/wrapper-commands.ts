/** Programs that run another command, and where that command begins in their words. */

export type Words = readonly (string | null)[];

/** What a command means beside its own words. */
export type Meaning = {
  /** Shell texts that it runs. */
  readonly texts?: readonly string[];
  /** Commands that it runs, given as words. */
  readonly commands?: readonly Words[];
  /** Index of the word at which the first of them begins. */
  readonly runs?: number;
  /** Index of the word from which a command may stand, for rules that ask or deny. */
  readonly mayRun?: number;
  readonly unclear?: string;
  readonly indirect?: string;
  /** It evaluates names or arithmetic, which runs substitutions in the values of variables. */
  readonly evaluates?: true;
};

type Wrapper = {
  /** Options whose value is the next word. */
  readonly valued?: readonly string[];
  /** Words before the command, besides options. */
  readonly before?: number;
  /** The command must follow one of these words. */
  readonly after?: readonly string[];
};

const plain: Wrapper = {};
const wrappers: Readonly<Record<string, Wrapper>> = {
  builtin: plain,
  bundle: { after: ['exec'] },
  bunx: plain,
  busybox: plain,
  caffeinate: { valued: ['-t', '-w'] },
  chronic: plain,
  chroot: { before: 1 },
  chrt: { before: 1 },
  command: plain,
  'cross-env': plain,
  'cross-env-shell': plain,
  'dbus-run-session': plain,
  direnv: { after: ['exec'], before: 1 },
  doas: { valued: ['-u', '-C', '-a'] },
  env: { valued: ['-u', '--unset', '-C', '--chdir'] },
  exec: { valued: ['-a'] },
  fakeroot: plain,
  firejail: plain,
  flock: { valued: ['-w', '-E', '--timeout', '--conflict-exit-code'], before: 1 },
  gtimeout: { valued: ['-s', '-k', '--signal', '--kill-after'], before: 1 },
  ionice: { valued: ['-c', '-n', '--class', '--classdata'] },
  linux32: plain,
  linux64: plain,
  ltrace: { valued: ['-e', '-o', '-n', '-s', '-u'] },
  mise: { after: ['exec', 'x'] },
  nice: { valued: ['-n', '--adjustment'] },
  nohup: plain,
  npm: { after: ['exec', 'x'], valued: ['-p', '--package', '-w', '--workspace', '--prefix'] },
  npx: { valued: ['-p', '--package', '-w', '--workspace'] },
  numactl: plain,
  nsenter: { valued: ['-t', '-S', '-G'] },
  pipenv: { after: ['run'] },
  pipx: { after: ['run'] },
  pkexec: { valued: ['--user'] },
  pnpm: { after: ['exec', 'dlx'] },
  pnpx: plain,
  poetry: { after: ['run'] },
  proxychains: plain,
  proxychains4: plain,
  rlwrap: plain,
  setarch: plain,
  setpriv: plain,
  setsid: plain,
  stdbuf: { valued: ['-i', '-o', '-e'] },
  strace: { valued: ['-e', '-o', '-s', '-u', '-E', '-P', '-a', '-O', '-S'] },
  sudo: {
    valued: [
      '-u',
      '-g',
      '-h',
      '-p',
      '-C',
      '-r',
      '-t',
      '-T',
      '-U',
      '-D',
      '-R',
      '--user',
      '--group',
      '--chdir',
    ],
  },
  'systemd-run': { valued: ['-p', '-u', '-E', '--unit', '--property'] },
  'systemd-inhibit': plain,
  taskset: { before: 1 },
  time: { valued: ['-f', '-o', '--format', '--output'] },
  timeout: { valued: ['-s', '-k', '--signal', '--kill-after'], before: 1 },
  torsocks: plain,
  toybox: plain,
  trickle: { valued: ['-d', '-u'] },
  tsocks: plain,
  unbuffer: plain,
  unshare: plain,
  uv: { after: ['run'], valued: ['--with', '-p', '--python'] },
  uvx: { valued: ['--from', '--with', '-p', '--python'] },
  valgrind: plain,
  'xvfb-run': { valued: ['-n', '-s', '-e', '-f', '-p', '-w'] },
  yarn: { after: ['exec', 'dlx', 'run'] },
};

/** The name of a program without its folder. */
export const baseName = (word: string): string => word.slice(word.lastIndexOf('/') + 1);

const skipOptions = (words: Words, from: number, valued: readonly string[]): number => {
  let at = from;
  for (;;) {
    const word = words[at];
    if (word === '--') return at + 1;
    if (word == null) return at;
    if (word.startsWith('-') && word !== '-') at += valued.includes(word) ? 2 : 1;
    else if (/^[A-Za-z_]\w*=/.test(word)) at++;
    else return at;
  }
};

/** Index of the word at which the wrapped command begins; null if the words run no other command. */
export const wrappedAt = (words: Words): number | null => {
  const name = baseName(words[0] ?? '');
  const wrapper = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
  if (wrapper === undefined) return null;
  const { valued = [], before = 0, after } = wrapper;
  let at = skipOptions(words, 1, valued);
  if (after !== undefined) {
    const next = words[at];
    if (next == null || !after.includes(next)) return null;
    at = skipOptions(words, at + 1, valued);
  }
  at = skipOptions(words, at + before, valued);
  return at < words.length ? at : null;
};

/** Replaces words that contain the placeholder by null, since their value is known only at run time. */
const withPlaceholder = (words: Words, placeholder: string): Words =>
  words.map((word) => (word?.includes(placeholder) ? null : word));

const XARGS_VALUED = [
  '-a',
  '-d',
  '-E',
  '-e',
  '-L',
  '-l',
  '-n',
  '-P',
  '-s',
  '--max-args',
  '--max-procs',
  '--delimiter',
  '--arg-file',
  '--max-lines',
];

/** The command that `xargs` runs. Words from its input are null. */
export const xargsCommand = (words: Words): Words => {
  let placeholder: string | null = null;
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word == null || !word.startsWith('-') || word === '--') break;
    const replace = /^(?:-I|-i|--replace=?|-J)(.*)$/s.exec(word);
    if (replace !== null) placeholder = replace[1] || (/^-[IJ]$/.test(word) ? (words[++at] ?? '{}') : '{}');
    else if (XARGS_VALUED.includes(word)) at++;
  }
  if (words[at] === '--') at++;
  const command = words.slice(at);
  if (command.length === 0) return ['echo', null];
  return placeholder === null ? [...command, null] : withPlaceholder(command, placeholder);
};

/** The commands after `-exec` and similar options of `find` and `fd`. */
export const findCommands = (words: Words): readonly Words[] => {
  const found: Words[] = [];
  for (const [index, word] of words.entries()) {
    if (word === null || !/^(-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word)) continue;
    if (/^-[xX]$/.test(word) && baseName(words[0] ?? '') === 'find') continue;
    const rest = words.slice(index + 1);
    const end = rest.findIndex((one) => one === ';' || one === '+');
    const command = end < 0 ? rest : rest.slice(0, end);
    found.push([...withPlaceholder(command, '{}')]);
  }
  return found;
};
