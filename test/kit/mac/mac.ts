import { chmodSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TestScope, temporaryFolder } from '../../temporary-folder.js';

/**
 * A machine that tells of its processes as a Mac does: without /proc, setsid(1) and bubblewrap, and with `ps` and
 * `sysctl` of macOS. Programs run in a mount namespace, with the process numbers of this machine. It is no Mac: what
 * the kernel of macOS does, it can't show.
 */
export type Mac = {
  /** Program and words that run this command line there, in the process that is started. */
  readonly wrap: (line: readonly string[]) => readonly [program: string, ...words: string[]];
  /** For programs of Node. */
  readonly environment: { readonly NODE_OPTIONS: string };
};

const at = (name: string): string => fileURLToPath(new URL(`./${name}`, import.meta.url));

/** Programs that macOS lacks: an empty file that nobody can run stands there. */
const MISSING = ['setsid', 'bwrap', 'nsenter', 'unshare'].map((name) => `/usr/bin/${name}`);

export const makeMac = (scope: TestScope): Mac => {
  const folder = temporaryFolder(scope, 'mac');
  const [proc, values] = [path.join(folder, 'proc'), path.join(folder, 'values')];
  mkdirSync(proc);
  writeFileSync(values, `${proc}\n${Math.floor(Date.now() / 1000 - uptime())}\nTHIS-BOOT\n`);
  const program = (name: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, readFileSync(at(name), 'utf8').replaceAll('@VALUES@', values));
    chmodSync(file, 0o755);
    return file;
  };
  const mounts = [
    `--bind ${program('ps.pl')} ${realpathSync('/bin/ps')}`,
    `--bind ${program('sysctl.sh')} ${realpathSync('/usr/sbin/sysctl')}`,
    ...MISSING.map((file) => `--bind /dev/null ${realpathSync(file)}`),
    `--bind /proc ${proc}`,
    '-t tmpfs none /proc',
  ];
  const script = `${mounts.map((mount) => `mount ${mount}`).join(' && ')} && exec "$@"`;
  const enter = process.getuid?.() === 0 ? '-m' : '-rm';
  return {
    wrap: (line) => ['unshare', enter, 'sh', '-c', script, 'mac', ...line],
    environment: { NODE_OPTIONS: `--require=${at('darwin.cjs')}` },
  };
};
