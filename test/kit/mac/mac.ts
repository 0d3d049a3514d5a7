import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TestScope, temporaryFolder } from '../../temporary-folder.js';

/**
 * A machine that tells of its processes as a Mac does: without /proc, setsid(1) and bubblewrap, and with `ps` and
 * `sysctl` of macOS. Its `sandbox-exec` fences nothing. Programs run in a mount namespace, with the process numbers of this machine. It is no Mac: what
 * the kernel of macOS does, it can't show.
 */
export type Mac = {
  /** Program and words that run this command line there, in the process that is started. */
  readonly wrap: (line: readonly string[]) => readonly [program: string, ...words: string[]];
  /** From now on `ps` fails. */
  silencePs(): void;
  /** The paths that rules of fences have named so far. */
  placesOfRules(): readonly string[];
  /** For programs of Node. */
  readonly environment: { readonly NODE_OPTIONS: string };
};

const at = (name: string): string => fileURLToPath(new URL(`./${name}`, import.meta.url));

/** Programs that macOS lacks: a file that nobody can run stands in their place. */
const MISSING = ['setsid', 'bwrap', 'nsenter', 'unshare'];

/** Programs of macOS, by the folders in which they stand in place of those of this machine. */
const PROGRAMS = {
  '/usr/bin': { ps: 'ps.pl', 'sandbox-exec': 'sandbox-exec.sh' },
  '/bin': { ps: 'ps.pl' },
  '/usr/sbin': { sysctl: 'sysctl.sh' },
};

export const makeMac = (scope: TestScope): Mac => {
  const folder = temporaryFolder(scope, 'mac');
  const [proc, values] = [path.join(folder, 'proc'), path.join(folder, 'values')];
  mkdirSync(proc);
  writeFileSync(values, `${proc}\n${Math.floor(Date.now() / 1000 - uptime())}\nTHIS-BOOT\n`);
  const mounts = Object.entries(PROGRAMS)
    .filter(([place]) => realpathSync(place) === place) // /bin may be a link
    .map(([place, programs]) => {
      const over = path.join(folder, place.replaceAll('/', '-'));
      mkdirSync(over);
      for (const name of place === '/usr/bin' ? MISSING : [])
        writeFileSync(path.join(over, name), '');
      for (const [name, source] of Object.entries(programs)) {
        const text = readFileSync(at(source), 'utf8').replaceAll('@VALUES@', values);
        writeFileSync(path.join(over, name), text, { mode: 0o755 });
      }
      return `-t overlay none -o lowerdir=${over}:${place} ${place}`;
    });
  const all = [...mounts, `--bind /proc ${proc}`, '-t tmpfs none /proc'];
  const script = `${all.map((mount) => `mount ${mount}`).join(' && ')} && exec "$@"`;
  const enter = process.getuid?.() === 0 ? '-m' : '-rm';
  return {
    wrap: (line) => ['unshare', enter, 'sh', '-c', script, 'mac', ...line],
    silencePs() {
      writeFileSync(`${values}.silent`, '');
    },
    placesOfRules: () => readFileSync(`${values}.places`, 'utf8').split('\n'),
    environment: { NODE_OPTIONS: `--require=${at('darwin.cjs')}` },
  };
};
