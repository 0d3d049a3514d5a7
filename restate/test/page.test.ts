import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { restateFolder } from './installed-pawl.js';

/**
 * docs/build/many-machines.md as it stands there: the commands from nothing to three nodes, a kill and a restore, and the
 * processes of its compose file. Tarballs of `npm pack` stand for the registry, a strict server for the model's.
 */

const root = path.join(restateFolder, '..');
const page = path.join(root, 'docs/build/many-machines.md');
const scope = { after: (hook: () => void) => after(hook) };
const folder = temporaryFolder(scope, 'page');
const home = path.join(folder, 'home');
mkdirSync(home);

/** The commands between two headings. */
const commandsIn = (from: string, to: string): readonly string[] => {
  const whole = readFileSync(page, 'utf8');
  const section = whole.slice(whole.indexOf(`\n## ${from}\n`), whole.indexOf(`\n## ${to}\n`));
  return [...section.matchAll(/^```bash\n(.*?)^```/gms)].map(([, commands = '']) => commands);
};

const npm = (cwd: string, ...words: readonly string[]): string =>
  execFileSync('npm', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** The tarball of a package; its scripts run, as the page says. */
const pack = (from: string): string => {
  const [made] = JSON.parse(
    npm(from, 'pack', '--json', '--silent', '--pack-destination', folder).replace(
      /^[^[]*(?=\[)/,
      '',
    ),
  ) as readonly { readonly filename: string }[];
  return path.join(folder, made?.filename ?? '');
};

const [install = '', ...steps] = commandsIn('Three nodes, step by step', 'With Docker Compose');

/** In a network of its own, where no port is taken and nothing else is reached. */
const inside = (...words: readonly string[]): string => {
  const program = fileURLToPath(new URL('page/inside.ts', import.meta.url));
  const asRoot = process.getuid?.() === 0 ? '-nm' : '-rnm';
  const node = `${process.execPath} --import ${import.meta.resolve('tsx')} ${program}`;
  return `unshare ${asRoot} --pid --fork --kill-child --mount-proc ${node} ${words.join(' ')}`;
};

const play = (name: string, script: string): string => {
  const file = path.join(folder, `${name}.sh`);
  writeFileSync(file, script);
  const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', file], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 300_000,
    env: {
      PATH: `${path.join(folder, 'bin')}:${process.env.PATH}`,
      HOME: home,
      TSX_TSCONFIG_PATH: path.join(restateFolder, 'tsconfig.json'),
      npm_config_cache: npm(root, 'config', 'get', 'cache').trim(),
      npm_config_registry: npm(root, 'config', 'get', 'registry').trim(),
      npm_config_prefer_offline: 'true',
    },
  });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  return stdout;
};

test('the commands of the page lead from nothing to three nodes, over a kill and a restore', () => {
  npm(root, 'run', 'pack');
  const [pawl, restate] = [pack(path.join(root, 'dist/package')), pack(restateFolder)];
  mkdirSync(path.join(folder, 'bin'));
  writeFileSync(path.join(folder, 'bin/sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  const script = path.join(folder, 'steps.sh');
  const shows =
    'curl -sf "http://127.0.0.3:8422/v1/sessions/$ID/events?after=0" -H "$AUTH" --max-time 2 || true';
  writeFileSync(script, [...steps, 'git -C api worktree list', shows].join('\n'));
  const shown = play(
    'page',
    `PAWL=${pawl} PAWL_RESTATE=${restate}\n${install}\n${inside('steps', script)}`,
  );
  for (const said of ['It is written.', 'I go on.', 'I wrote hello.txt.'])
    assert.match(shown, new RegExp(said), shown);
});

test('the processes of the compose file find each other, run commands, and come back after a kill', () => {
  const fleet = path.join(folder, 'fleet');
  const [, onPath = ''] = /^(export PATH=.*)$/m.exec(install) ?? [];
  play(
    'compose',
    `cd ${fleet}\n${onPath}\nmkdir containers && cd containers\n${inside('compose', page)}`,
  );
});
