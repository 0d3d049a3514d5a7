import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BUILDS } from '../../../../scripts/test-runner/check.js';
import { startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

/**
 * What a stranger gets: the packed tarball, installed into an empty folder by someone with an empty home.
 */

const root = fileURLToPath(new URL('../../../..', import.meta.url));

type Output = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** How this machine reaches the network: the one thing that a stranger with an empty home has set up too. */
const NETWORK =
  /^(NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|SSL_CERT_(FILE|DIR)|(HTTPS?|ALL|NO)_PROXY|npm_config_registry)$/i;

/** The runner of the tests hides the certificates, which slow each process down (scripts/test.ts). */
const network = (): NodeJS.ProcessEnv => {
  const found = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => NETWORK.test(name)),
  );
  const { CA_CERTS_OF_NPM: file } = process.env;
  return file === undefined ? found : { ...found, NODE_EXTRA_CA_CERTS: file };
};

const runIn = (
  folder: string,
  home: string,
  program: string,
  words: readonly string[],
): Promise<Output> =>
  new Promise((resolve, reject) => {
    const environment = {
      ...(program === 'npm' ? network() : {}),
      PATH: process.env.PATH,
      HOME: home,
      TMPDIR: path.join(home, 'tmp'),
      npm_config_fund: 'false',
      npm_config_audit: 'false',
    };
    execFile(
      program,
      words,
      { cwd: folder, env: environment, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        if (error && typeof error.code !== 'number') reject(error);
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      },
    );
  });

const assertOk = ({ code, stdout, stderr }: Output): void =>
  assert.equal(code, 0, `${stdout}\n${stderr}`);

/** Bytes of all files below, links not followed. */
const sizeOf = (file: string): number => {
  const found = lstatSync(file);
  if (!found.isDirectory()) return found.size;
  return readdirSync(file).reduce((sum, name) => sum + sizeOf(path.join(file, name)), 0);
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

type Locked = { readonly packages: Readonly<Record<string, { readonly hasInstallScript?: true }>> };

const readLock = (file: string): Locked =>
  // Written by npm a moment ago; the lock format has had `packages` since version 2.
  JSON.parse(readFileSync(file, 'utf8')) as Locked;

describe('the packed tarball, installed into an empty folder', () => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-pack-'));
  const home = path.join(scratch, 'home');
  const folder = path.join(scratch, 'app');
  const globally = path.join(scratch, 'global');
  let installed: Output;
  let tarball = '';
  const readManifest = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
  const { version } = readManifest('packages/pawl/package.json');
  const { scripts } = readManifest('package.json');

  before(async () => {
    mkdirSync(path.join(home, 'tmp'), { recursive: true });
    mkdirSync(folder);
    // The whole run of the tests has just put it together; this file alone does it here.
    if (!existsSync(path.join(root, 'packages/pawl/dist/types')))
      assertOk(await runIn(root, home, 'npm', ['run', 'pack']));
    assertOk(
      await runIn(path.join(root, 'dist/package'), home, 'npm', [
        'pack',
        '--pack-destination',
        scratch,
      ]),
    );
    tarball = path.join(scratch, `pawl-${version}.tgz`);
    writeFileSync(
      path.join(folder, 'package.json'),
      JSON.stringify({ private: true, type: 'module' }),
    );
    installed = await runIn(folder, home, 'npm', ['install', tarball]);
    assertOk(installed);
    assertOk(
      await runIn(folder, home, 'npm', ['install', '--global', '--prefix', globally, tarball]),
    );
  });

  after(() => removeFolderSync(scratch));

  it('is built before by what the tests build', () => {
    const nameOf = (program: string): string =>
      program === process.execPath ? 'node' : path.basename(program);
    const commands = BUILDS.map(({ program, words }) => [nameOf(program), ...words].join(' '));
    assert.equal(scripts.pack, commands.join(' && '));
  });

  it('keeps the rules of packages', async () => {
    const publint = path.join(root, 'node_modules', '.bin', 'publint');
    assertOk(await runIn(folder, home, publint, ['run', tarball, '--strict']));
  });

  it('installs few packages, none of which runs a script', (t) => {
    const packages = Object.entries(
      readLock(path.join(folder, 'package-lock.json')).packages,
    ).filter(([place]) => place !== '' && existsSync(path.join(folder, place)));
    const size = sizeOf(path.join(folder, 'node_modules'));
    const own = sizeOf(path.join(folder, 'node_modules', 'pawl'));
    t.diagnostic(
      `installed: pawl (${megabytes(own)}) and ${packages.length - 1} dependencies, ${megabytes(size)} in all`,
    );
    assert.deepEqual(
      packages.filter(([, found]) => found.hasInstallScript).map(([place]) => place),
      [],
    );
    assert.ok(packages.length <= 5, `${packages.length} packages: each needs a reason`);
    assert.ok(size < 20e6, `${size} bytes installed`);
  });

  it('is installed without a warning of its scripts, with its manual page', () => {
    assert.doesNotMatch(installed.stderr, /script/);
    assert.match(
      readFileSync(path.join(globally, 'share', 'man', 'man1', 'pawl.1'), 'utf8'),
      /^[.]TH/m,
    );
  });

  it('has the licences and the documents, and nothing of the workshop', () => {
    const names = readdirSync(path.join(folder, 'node_modules', 'pawl'));
    for (const name of [
      'LICENSE',
      'README.md',
      'THIRD-PARTY.md',
      'CHANGELOG.md',
      'bin',
      'dist',
      'demo',
    ]) {
      assert.ok(names.includes(name), `${name} is not in the package`);
    }
    for (const name of ['src', 'test', 'scripts', 'tsconfig.json', '.ci']) {
      assert.ok(!names.includes(name), `${name} is in the package`);
    }
  });

  it('has the documents that are made from its sources', () => {
    const read = (name: string): string =>
      readFileSync(path.join(folder, 'node_modules', 'pawl', name), 'utf8');
    assert.match(read('docs/reference/pawl.md'), /^### createAgent$/m);
    assert.match(read('docs/reference/machine.md'), /^### step$/m);
    assert.match(read('docs/reference/testing.md'), /^### scriptedModel$/m);
    assert.match(read('THIRD-PARTY.md'), /^## commander /m);
    assert.match(
      JSON.parse(read('docs/json-stream.schema.json')).title,
      /^One line of pawl --json/,
    );
  });

  it('answers --version with the version of its package', async () => {
    const output = await runIn(folder, home, path.join(folder, 'node_modules', '.bin', 'pawl'), [
      '--version',
    ]);
    assertOk(output);
    assert.equal(output.stdout, `${version}\n`);
  });

  it('runs the demo, without a key and without a build', async () => {
    const output = await runIn(folder, home, path.join(folder, 'node_modules', '.bin', 'pawl'), [
      'demo',
    ]);
    assertOk(output);
    assert.match(output.stdout + output.stderr, /Waiting|Done|commit/i);
  });

  it('answers a prompt, with a key and the address of a server', async (context) => {
    const reply = { type: 'message', parts: [{ type: 'text', text: 'Hello.' }] } as const;
    const server = await startAnthropicServer({ replies: [reply] });
    context.after(() => server.close());
    const words = ['ANTHROPIC_API_KEY=key', `ANTHROPIC_BASE_URL=${server.url}`];
    const pawl = path.join(globally, 'bin', 'pawl');
    const output = await runIn(folder, home, '/usr/bin/env', [...words, pawl, '-p', 'hi']);
    assertOk(output);
    assert.equal(output.stdout, 'Hello.\n');
  });

  it('runs the example of the library', async () => {
    // without types it is a program for any Node
    const example = readFileSync(path.join(root, 'examples/02-hello.ts'), 'utf8');
    writeFileSync(path.join(folder, 'hello.mjs'), example);
    const output = await runIn(folder, home, process.execPath, ['hello.mjs']);
    assertOk(output);
    assert.match(output.stdout, /^Hello! What shall we build\?\nanswered/);
  });

  it('is installed into an image by the feature for devcontainers', async () => {
    const prefix = path.join(scratch, 'image');
    const script = path.join(root, 'integrations/devcontainer/src/pawl/install.sh');
    const words = [
      `npm_config_prefix=${prefix}`,
      `PATH=${prefix}/bin:${process.env.PATH}`,
      `VERSION=file:${tarball}`,
      ...Object.entries(network()).map(([name, value]) => `${name}=${value}`),
    ];
    const output = await runIn(folder, home, '/usr/bin/env', [...words, '/bin/sh', script]);
    assertOk(output);
    assert.match(output.stdout, new RegExp(`^${version}$`, 'm'));
  });

  it('can be imported under its three names', async () => {
    const program = `
      import * as pawl from 'pawl';
      import * as machine from 'pawl/machine';
      import * as testing from 'pawl/testing';
      console.log(JSON.stringify([pawl, machine, testing].map((face) => Object.keys(face).length > 0)));
      console.log(typeof machine.step, typeof machine.initialState, typeof pawl.createAgent);`;
    const output = await runIn(folder, home, process.execPath, [
      '--input-type=module',
      '-e',
      program,
    ]);
    assertOk(output);
    assert.equal(output.stdout, '[true,true,true]\nfunction function function\n');
  });

  /** Compiles one file as a stranger would; whatever is wrong with the package's own declarations counts too. */
  const compile = async (
    name: string,
    lines: readonly string[],
    environment: object,
  ): Promise<void> => {
    const project = path.join(folder, `${name}.json`);
    const strict = {
      target: 'ES2023',
      module: 'NodeNext',
      strict: true,
      noEmit: true,
      skipLibCheck: false,
    };
    writeFileSync(path.join(folder, `${name}.ts`), `${lines.join('\n')}\n`);
    writeFileSync(
      project,
      JSON.stringify({ compilerOptions: { ...strict, ...environment }, files: [`${name}.ts`] }),
    );
    assertOk(
      await runIn(folder, home, path.join(root, 'node_modules', '.bin', 'tsc'), ['-p', project]),
    );
  };

  it('brings types that a strict program on Node can use', () =>
    compile(
      'consumer',
      [
        "import * as pawl from 'pawl';",
        "import * as testing from 'pawl/testing';",
        'export const names: readonly string[] = Object.keys({ ...pawl, ...testing });',
        '// @ts-expect-error: the faces are typed, so what they do not have is a fault',
        'export const nothing = pawl.doesNotExist;',
        '// @ts-expect-error: the same',
        'export const neither = testing.doesNotExist;',
      ],
      { types: ['node'], typeRoots: [path.join(root, 'node_modules', '@types')] },
    ));

  it('brings types of the machine that need neither Node nor a browser', () =>
    compile(
      'pure',
      [
        "import { initialState, step } from 'pawl/machine';",
        'export const functions: readonly string[] = [step.name, initialState.name];',
        '// @ts-expect-error: a state is no number',
        'step(1);',
      ],
      { types: [], lib: ['ES2023'] },
    ));
});
