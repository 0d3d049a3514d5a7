import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { build } from 'esbuild';
import type { CommandLevel } from '../../../packages/agent/src/policy/decide.js';
import { inlineShellScripts } from '../../../scripts/inline-shell-scripts.js';
import { removeFolderSync } from '../../temporary-folder.js';
import { killProcessesWith } from '../tools/processes.js';
import type { Scenario, ScenarioEnd, Step, StepEnd } from './fence-runner.js';

/** Scenarios of the sandbox for commands, run by us and, where we are root, by an ordinary user who is made for it. */

export const SEEDED = 'seeded-secret-4711';
export const PORT = 40_000 + (process.pid % 20_000);

export type Place = {
  readonly who: 'root' | 'user';
  readonly workspace: string;
  readonly home: string;
  /** Beside workspace and home: nothing of it is for commands. */
  readonly outside: string;
};

export type Case = {
  readonly name: string;
  readonly who?: Place['who'];
  /** For bash, in the workspace, before anything is fenced. */
  readonly setup?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly pass?: readonly string[];
  /** `LEVEL` is the level that is tried. */
  steps(place: Place, level: CommandLevel): readonly Step[];
};

export type Account = { readonly who: Place['who']; readonly uid: number; readonly gid: number };

/**
 * A folder of the machine in which root plants what others must not read. Where mounts can be made it is seen by one
 * runner alone: a sandbox elsewhere would cover the file, and fail if it is removed at that moment.
 */
export const PLANTED = `/opt/planted-by-a-test-${process.pid}`;

const alone = (words: readonly string[]): readonly string[] => {
  mkdirSync(PLANTED, { recursive: true });
  const script = 'mount -t tmpfs tmpfs "$0" && exec "$@"';
  const inside = ['unshare', '--mount', '--', 'sh', '-c', script, PLANTED];
  const [program = '', ...others] = [...inside, 'true'];
  return spawnSync(program, others).status === 0 ? [...inside, ...words] : words;
};

/**
 * The accounts that the scenarios run as. Where root runs the tests, the second one is the user that
 * the run has added to the machine.
 */
export const testAccounts = (): readonly Account[] => {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return [{ who: 'user', uid, gid }];
  const added = JSON.parse(process.env.PAWL_TEST_USER ?? 'null');
  if (added === null) throw new Error('Start this file with `npm test -- FILE`: it adds a user.');
  return [
    { who: 'root', uid, gid },
    { who: 'user', ...added },
  ];
};

/** The runner as one file that everybody may read. */
export const buildRunner = async (folder: string, source = 'fence-runner'): Promise<string> => {
  const outfile = path.join(folder, `${source}.mjs`);
  const entry = path.join(
    import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
    `${source}.ts`,
  );
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    plugins: [inlineShellScripts],
    logLevel: 'error',
  });
  return outfile;
};

/**
 * The runner, and beside it what a script of bash makes in an empty folder; everybody may read both.
 * Gone after the tests of the file.
 */
export const prepareRunner = async (
  script = '',
): Promise<{ readonly runner: string; readonly fixture: string }> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-fence-runner-'));
  after(() => removeFolderSync(folder));
  const runner = await buildRunner(folder);
  const fixture = path.join(folder, 'fixture');
  chmodSync(folder, 0o755);
  mkdirSync(fixture);
  execFileSync('/bin/bash', ['-ec', script], { cwd: fixture });
  return { runner, fixture };
};

const SECRETS = [
  ...[
    '.ssh/id_ed25519',
    '.aws/credentials',
    '.netrc',
    '.npmrc',
    '.git-credentials',
    '.config/gh/hosts.yml',
  ],
  ...[
    '.docker/config.json',
    '.kube/config',
    '.gnupg/private-keys-v1.d/key',
    '.pypirc',
    '.mozilla/firefox/logins.json',
  ],
  ...[
    '.local/share/keyrings/login.keyring',
    '.config/gcloud/access_tokens.db',
    '.cargo/credentials.toml',
  ],
  ...[
    '.local/state/pawl/session',
    '.bash_history',
    'Documents/diary',
    '.m2/settings.xml',
    '.vault-token',
  ],
  ...[
    '.local/share/uv/credentials/credentials.toml',
    '.rye/credentials',
    '.nimble/github_api_token',
  ],
  ...['.dotnet/corefx/cryptography/x509stores/my/key.pfx', '.npm-global/etc/npmrc'],
];

const seedHome = (home: string): void => {
  for (const name of SECRETS) {
    mkdirSync(path.join(home, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(home, name), SEEDED);
  }
  writeFileSync(
    path.join(home, '.gitconfig'),
    '[user]\n\tname = Ada\n\temail = ada@example.org\n[alias]\n\tx = !echo\n',
  );
  mkdirSync(path.join(home, '.cargo/bin'), { recursive: true });
  writeFileSync(path.join(home, '.cargo/bin/own-tool'), '#!/bin/sh\necho own tool\n', {
    mode: 0o755,
  });
};

const environmentOf = (home: string): Record<string, string> => ({
  PATH: `${home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin`,
  HOME: home,
  LANG: 'C.UTF-8',
  OPENAI_API_KEY: SEEDED,
  OLLAMA_API_KEY: SEEDED,
  GITHUB_TOKEN: SEEDED,
  AWS_SECRET_ACCESS_KEY: SEEDED,
  DATABASE_URL: `postgres://me:${SEEDED}@db/x`,
  SSH_AUTH_SOCK: `/tmp/${SEEDED}`,
  WHATEVER: SEEDED,
  NODE_ENV: 'test',
});

const owned = (folder: string, { uid, gid }: Account): void => {
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', '-h', `${uid}:${gid}`, folder]);
};

const scenarioOf = (one: Case, level: CommandLevel, account: Account, top: string): Scenario => {
  const place: Place = {
    who: account.who,
    workspace: path.join(top, 'project/work'),
    home: path.join(top, 'home'),
    outside: path.join(top, 'outside'),
  };
  for (const folder of [place.workspace, place.home, place.outside])
    mkdirSync(folder, { recursive: true });
  seedHome(place.home);
  writeFileSync(path.join(place.outside, 'secret'), SEEDED);
  const state = { XDG_STATE_HOME: path.join(top, 'state') };
  const environment = { ...environmentOf(place.home), ...state, ...one.environment };
  owned(top, account);
  const setup: readonly Step[] = one.setup === undefined ? [] : [{ host: `set -e\n${one.setup}` }];
  return {
    name: one.name,
    workspace: place.workspace,
    environment,
    ...(one.pass === undefined ? {} : { pass: one.pass }),
    sessionFolder: path.join(top, 'state/sandbox', `${process.pid}-test`),
    steps: [...setup, ...one.steps(place, level)],
  };
};

export type Ran = {
  readonly place: Pick<Place, 'who'>;
  readonly level: CommandLevel;
  /** Without those of the set-up. */
  readonly ends: ReadonlyMap<string, readonly StepEnd[]>;
};

type Order = {
  readonly cases: readonly Case[];
  readonly level: CommandLevel;
  readonly account: Account;
};

/** Runs all cases in one process of that account. Throws where a set-up fails or a scenario can't be run. */
export const runCases = (runner: string, { cases, level, account }: Order): Ran => {
  const top = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-fence-')));
  chmodSync(top, 0o755);
  try {
    const mine = cases.filter(({ who }) => who === undefined || who === account.who);
    const scenarios = mine.map((one, index) =>
      scenarioOf(one, level, account, path.join(top, String(index))),
    );
    const file = path.join(top, 'scenarios.json');
    writeFileSync(file, JSON.stringify(scenarios));
    const program = path.join(top, 'runner.mjs');
    cpSync(runner, program);
    for (const place of [file, program, top]) chownSync(place, account.uid, account.gid);
    const words = [process.execPath, program, file, String(PORT), path.join(top, 'host.sock')];
    const [first = '', ...others] = account.who === 'root' ? alone(words) : words;
    const { stdout, stderr, status } = spawnSync(first, others, {
      encoding: 'utf8',
      uid: account.uid,
      gid: account.gid,
      cwd: top,
      maxBuffer: 64 * 1024 * 1024,
      env: { PATH: '/usr/bin:/bin', HOME: top, SEEDED_IN_PARENT: SEEDED },
    });
    if (status !== 0) throw new Error(`the runner ended with ${status}: ${stderr}`);
    const results: readonly ScenarioEnd[] = JSON.parse(stdout);
    const ends = results.map(({ name, ends: all, fault }) => {
      const one = mine.find((other) => other.name === name);
      const first = all[0];
      if (fault !== null) throw new Error(`${account.who}, ${level}, ${name}: ${fault}`);
      if (one?.setup !== undefined && first?.code !== 0)
        throw new Error(`set-up of ${name}: ${first?.output}`);
      return [name, one?.setup === undefined ? all : all.slice(1)] as const;
    });
    return { place: { who: account.who }, level, ends: new Map(ends) };
  } finally {
    killProcessesWith(top); // servers and sleepers that a set-up left
    removeFolderSync(top);
    removeFolderSync(PLANTED);
  }
};
