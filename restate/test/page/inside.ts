/**
 * Plays docs/build/many-machines.md in a network and a tree of mounts of its own: started by `unshare`, in the folder with
 * the installed packages. Words: `steps SCRIPT` or `compose PAGE`.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { DEFAULT_SCHEMA, load } from 'js-yaml';
import { call, message, text } from '../../../packages/pawl/test/e2e/wire-words.js';
import { NodeClient } from '../../../test/kit/serve/node-client.js';
import { startAnthropicServer } from '../../../test/servers/anthropic.js';
import { until } from '../../../test/until.js';

const folder = process.cwd();
const run = (program: string, ...words: readonly string[]): string =>
  execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** The name table of this tree of mounts only. */
const setHosts = (text: string): void => {
  const file = path.join(folder, 'hosts');
  writeFileSync(file, `127.0.0.1 localhost\n${text}`);
  run('mount', '--bind', file, '/etc/hosts');
};

const replies = [
  message(call('c1', 'bash', { command: 'echo hello > hello.txt; cat hello.txt' })),
  message(text('It is written.')),
  message(text('I go on.')),
  message(text('I wrote hello.txt.')),
];

const playSteps = async (script: string, environment: NodeJS.ProcessEnv): Promise<void> => {
  setHosts('');
  const bash = spawn('bash', ['-euo', 'pipefail', script], {
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(bash, 'exit');
  assert.equal(code, 0);
};

// ---- The compose file: each of its processes in a container of the least kind ----

type Service = {
  readonly command: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly secrets?: readonly string[];
  readonly networks:
    | readonly string[]
    | Readonly<Record<string, { readonly aliases: readonly string[] }>>;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly restart: string;
};

type Compose = {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
};

/** A root of its own with the volumes at their places, then the network, then the program. */
const CONTAINER = `
set -e
address=$1; shift
root=$1; shift
mount -t tmpfs tmpfs "$root"
for name in bin dev etc lib lib64 opt proc sbin sys tmp usr var; do
  test -e /$name || continue
  mkdir "$root/$name"
  mount --rbind /$name "$root/$name"
done
while test "$1" != --; do
  mkdir -p "$root$2"
  if test -f "$1"; then rmdir "$root$2"; touch "$root$2"; fi
  mount --bind "$1" "$root$2"
  shift 2
done
shift
read -r _
ip link set lo up
ip addr add "$address/24" dev eth0
ip link set eth0 up
cd "$root"
mkdir -p old
pivot_root . old
umount -l old
exec "$@"
`;

class Container {
  readonly name: string;
  readonly address: string;
  readonly #service: Service;
  readonly #binds: readonly string[];
  readonly #environment: NodeJS.ProcessEnv;
  #process: ChildProcess | null = null;
  starts = 0;

  constructor(name: string, index: number, compose: Compose, environment: NodeJS.ProcessEnv) {
    this.name = name;
    this.address = `10.7.0.${index + 1}`;
    const service = compose.services[name];
    assert.ok(service);
    this.#service = service;
    this.#environment = environment;
    const volumes = service.volumes.map((volume) => {
      const [from = '', to = ''] = volume.split(':');
      const source = path.join(folder, from.startsWith('.') ? from : `volume-${from}`);
      mkdirSync(source, { recursive: true });
      return [source, to];
    });
    const secrets = (service.secrets ?? []).map((secret) => [
      path.join(folder, compose.secrets[secret]?.file ?? ''),
      `/run/secrets/${secret}`,
    ]);
    this.#binds = [...volumes, ...secrets].flat();
  }

  get aliases(): readonly string[] {
    const { networks } = this.#service;
    const own = 'inside' in networks ? (networks.inside?.aliases ?? []) : [];
    return [this.name, ...own];
  }

  get log(): string {
    return readFileSync(path.join(folder, `${this.name}.log`), 'utf8');
  }

  async start(): Promise<void> {
    const { command, environment = {} } = this.#service;
    // an image's own program precedes a list of words
    const words = typeof command === 'string' ? command.split(' ') : ['restate-server', ...command];
    const root = path.join(folder, `root-${this.name}`);
    mkdirSync(root, { recursive: true });
    const log = openSync(path.join(folder, `${this.name}.log`), 'a');
    const inContainer = ['bash', '-c', CONTAINER, 'container', this.address, root, ...this.#binds];
    const filled = [...inContainer, '--', ...words].map((word, index) =>
      index > inContainer.length ? fill(word, this.#environment) : word,
    );
    const variables = Object.entries(environment).map(([name, value]) => [
      name,
      fill(value, this.#environment),
    ]);
    const started = spawn('unshare', ['-nm', ...filled], {
      env: {
        PATH: process.env.PATH,
        HOME: '/root',
        ...Object.fromEntries(variables),
        ...modelPlace,
      },
      stdio: ['pipe', log, log],
    });
    this.#process = started;
    this.starts += 1;
    const network = (pid: number | string): string => readlinkSync(`/proc/${pid}/ns/net`);
    await until('a network of its own', () => network(started.pid ?? 0) !== network('self'));
    const outer = `v${this.name}${this.starts}`;
    run(
      'ip',
      'link',
      'add',
      outer,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      String(started.pid),
    );
    run('ip', 'link', 'set', outer, 'master', 'br0', 'up');
    started.stdin?.end('\n');
    if (this.#service.restart === 'unless-stopped')
      started.once('exit', () => void (this.#process === started && this.start()));
  }

  async untilHealthy(): Promise<void> {
    const [, ...test] = this.#service.healthcheck.test;
    const inNetwork = () => `--net=/proc/${this.#process?.pid}/ns/net`;
    await until(
      () => `${this.name}: ${this.log}`,
      () => spawnSync('nsenter', [inNetwork(), ...test]).status === 0,
    );
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  stop(): void {
    const running = this.#process;
    this.#process = null;
    running?.kill('SIGKILL');
  }
}

/** `${NAME}` as Docker Compose puts it in. */
const fill = (text: string, environment: NodeJS.ProcessEnv): string =>
  text.replace(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = environment[name];
    assert.ok(value, `the variable ${name} of the compose file is empty`);
    return value;
  });

/** Where the containers find the model: not in the file, which uses Anthropic's server. */
let modelPlace: NodeJS.ProcessEnv = {};

const playCompose = async (page: string, environment: NodeJS.ProcessEnv): Promise<void> => {
  const [, yaml = ''] = /```yaml\n(x-node:[\s\S]*?)```/.exec(readFileSync(page, 'utf8')) ?? [];
  const compose = load(yaml, { schema: DEFAULT_SCHEMA }) as Compose; // its fields are looked at below
  run('openssl', 'genpkey', '-algorithm', 'ed25519', '-out', 'engine-key.pem');
  const variables: NodeJS.ProcessEnv = {
    ANTHROPIC_API_KEY: 'key',
    PAWL_SERVE_TOKEN: 'the-token-of-this-test',
    PAWL_NODE_TOKEN: 'the-secret-of-all-nodes',
  };
  run('ip', 'link', 'add', 'br0', 'type', 'bridge');
  run('ip', 'addr', 'add', '10.7.0.254/24', 'dev', 'br0');
  run('ip', 'link', 'set', 'br0', 'up');
  // the model is a server on the computer of the containers
  const { port } = new URL(environment.ANTHROPIC_BASE_URL ?? '');
  createServer((socket) => {
    const onward = connect(Number(port), '127.0.0.1').on('error', () => socket.destroy());
    socket
      .on('error', () => onward.destroy())
      .pipe(onward)
      .pipe(socket);
  }).listen(Number(port), '10.7.0.254');
  modelPlace = { ANTHROPIC_BASE_URL: `http://10.7.0.254:${port}` };
  const containers = Object.keys(compose.services).map(
    (name, index) => new Container(name, index, compose, variables),
  );
  setHosts(containers.map(({ address, aliases }) => `${address} ${aliases.join(' ')}\n`).join(''));
  const [engine, ...nodes] = containers;
  const [n1, n2] = nodes;
  assert.ok(engine && n1 && n2);
  for (const { name } of nodes) {
    const repository = path.join(folder, `git-${name}`, 'api');
    run('git', 'init', '-q', repository);
    run(
      'git',
      '-C',
      repository,
      '-c',
      'user.name=me',
      '-c',
      'user.email=me@example.com',
      'commit',
      '-q',
      '--allow-empty',
      '-m',
      'first',
    );
  }
  try {
    await engine.start();
    await engine.untilHealthy();
    variables.ENGINE_KEY = /publickeyv1_[A-Za-z0-9]*/.exec(engine.log)?.[0] ?? '';
    for (const node of nodes) await node.start();
    for (const node of nodes) await node.untilHealthy();
    const clientOf = ({ address }: Container): NodeClient =>
      new NodeClient(`http://${address}:8422`, 'the-token-of-this-test');
    const workspace = { repository: 'api', commit: 'HEAD' };
    const created = await clientOf(n1).ask('POST', '/v1/sessions', { workspace });
    assert.equal(created.status, 201, created.text);
    const id = created.body.sessionId ?? '';
    const turn = async (node: Container, words: string): Promise<string> => {
      const seq = await clientOf(node).send(id, { text: words });
      const reader = await clientOf(node).events(id, seq - 1);
      await reader.untilRestAfter(seq);
      return JSON.stringify(reader.entries);
    };
    assert.match(await turn(n2, 'Write hello.txt.'), /"text":"hello\\n.*It is written/);
    n1.kill();
    await until('n1 starts again', () => n1.starts === 2);
    await n1.untilHealthy();
    assert.match(await turn(n1, 'Say that you go on.'), /I go on/);
  } finally {
    for (const container of containers) container.stop();
  }
};

const [what = '', file = ''] = process.argv.slice(2);
run('ip', 'link', 'set', 'lo', 'up');
const server = await startAnthropicServer({ replies });
const environment = {
  ...process.env,
  ANTHROPIC_API_KEY: 'key',
  ANTHROPIC_BASE_URL: server.url,
};
if (what === 'steps') await playSteps(file, environment);
else await playCompose(file, environment);
await server.close();
process.exit(0);
