import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { configFolder } from '@pawl/agent/platform/environment';
import { startChatServer } from '../../../../../test/servers/chat.js';
import { afterTurn, forgetSessions, newestSession, run, turn } from './command-runs.js';
import { type Hostile, wellFormed } from './hostile.js';
import type { Surface } from './surface.js';

/** Commands, run in this process as the command line runs them; see `capture.ts` for where their output goes. */

const writeConfig = (hostile: Hostile, size: number): void => {
  mkdirSync('.pawl', { recursive: true });
  const text = (length: number): string => JSON.stringify(wellFormed(hostile.text(length)));
  const lines = Array.from({ length: Math.ceil(size / 200) }, () => `${text(60)} = ${text(100)}`);
  writeFileSync('.pawl/config.toml', ['model = "scripted/none"', ...lines, ''].join('\n'));
};

const configured =
  (...words: readonly string[]): Surface['show'] =>
  async (hostile, _out, size) => {
    writeConfig(hostile, Math.min(size, 4_000));
    await run(...words);
    rmSync('.pawl', { recursive: true });
  };

const doctor: Surface['show'] = async (hostile, out, size) => {
  rmSync('AGENTS.md', { force: true });
  symlinkSync(`/tmp/${hostile.name()}/${hostile.name()}`, 'AGENTS.md');
  await configured('doctor')(hostile, out, size);
  rmSync('AGENTS.md');
};

const ask: Surface['show'] = async (hostile, _out, size) => {
  const part = Math.ceil(size / 4);
  const print = (name: string, text: string) => `${name}(${JSON.stringify(text)});`;
  const program = (...lines: readonly string[]) => `\`\`\`repl\n${lines.join('\n')}\n\`\`\``;
  const replies = [
    {
      text: program(
        print('print', hostile.text(part)),
        `throw new Error(${JSON.stringify(hostile.text(60))});`,
      ),
    },
    {
      text: program(
        `answer.content = ${JSON.stringify(hostile.text(part))};`,
        'answer.ready = true;',
      ),
    },
  ];
  writeFileSync('script.json', JSON.stringify({ replies }));
  writeFileSync('input.txt', hostile.text(part).replaceAll('\0', ''));
  const flags = [
    '--context',
    'input.txt',
    '--model',
    'scripted/script.json',
    '--environment',
    'quickjs',
  ];
  forgetSessions();
  await run('ask', ...flags, '--verbose', hostile.text(part));
  await run('show', newestSession());
  await run('replay', newestSession());
};

const refused: Surface['show'] = async (hostile, _out, size) => {
  const given = () => hostile.text(Math.min(size, 300));
  const lines: readonly (readonly string[])[] = [
    [given()],
    [`--${given()}`],
    ['show', given()],
    ['inspect', given()],
    ['machine', '--bounds', given()],
    ['machine', '--view', given()],
    ['completion', given()],
    ['-p', 'x', '--model', given()],
    ['-p', 'x', '--workspace', given()],
    ['-p', 'x', '--preset', given()],
    ['--resume', given(), '-p', 'x'],
    ['ask', '--context', given(), given()],
  ];
  for (const words of lines) await run(...words);
};

const explained: Surface['show'] = async (hostile, _out, size) => {
  const command = `npm run ${hostile.text(Math.min(size, 2_000))}`;
  await run('policy', 'explain', command);
  await run('policy', 'explain', command, '--json');
};

const skills: Surface['show'] = async (hostile, _out, size) => {
  const text = (length: number): string => JSON.stringify(wellFormed(hostile.text(length)));
  const folders = [hostile.name(), hostile.name(), hostile.name()].map((name) =>
    path.join('.pawl/skills', name),
  );
  const matters = [
    `name: ${text(40)}\ndescription: ${text(Math.min(size, 2_000))}\nargument-hint: ${text(40)}`,
    `name: ${text(9)}\n${text(40)}: ${text(40)}`,
    hostile.text(200),
  ];
  for (const [index, folder] of folders.entries()) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      path.join(folder, 'SKILL.md'),
      `---\n${matters[index]}\n---\n${hostile.text(200)}`,
    );
  }
  await run('skills');
  await run('skills', hostile.text(40));
  await turn(hostile, size);
  rmSync('.pawl', { recursive: true });
};

const mcp: Surface['show'] = async (hostile, _out, size) => {
  const text = (length: number): string =>
    JSON.stringify(wellFormed(hostile.text(length)).replaceAll('$', ''));
  const folder = configFolder(process.env);
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'config.toml');
  const script = 'printf %s "$0" >&2; exit 1';
  writeFileSync(
    file,
    `[mcp.servers.a]\ncommand = "sh"\nargs = ["-c", ${JSON.stringify(script)}, ${text(Math.min(size, 2_000))}]\n` +
      `[mcp.servers.b]\ncommand = ${text(200)}\n` +
      '[mcp.servers.c]\nurl = "http://127.0.0.1:9/mcp"\n',
  );
  await run('mcp');
  await run('mcp', 'test');
  await run('mcp', hostile.text(40), hostile.text(40));
  await run('mcp', 'test', hostile.text(40));
  for (const what of ['login', 'logout', 'remove', 'add'])
    for (const name of ['a', 'c', hostile.text(40)]) await run('mcp', what, name);
  await run('mcp', 'add', 'd', '--', hostile.text(40), hostile.text(40));
  await run('mcp', 'add', 'e', '--url', hostile.text(40), '--header', hostile.text(40));
  await run('mcp', 'login', 'c', hostile.text(40));
  await run('mcp', 'serve', hostile.text(40));
  rmSync(file);
};

const hooks: Surface['show'] = async (hostile, _out, size) => {
  const text = (length: number): string =>
    JSON.stringify(wellFormed(hostile.text(length)).replaceAll('\0', ''));
  const table = (name: string): string =>
    `[hook.${name}]\non = "before-tool"\ncommand = "echo " + x\n`.replace(
      '"echo " + x',
      text(Math.min(size, 2_000)),
    );
  const folder = configFolder(process.env);
  const file = path.join(folder, 'config.toml');
  for (const made of [folder, '.pawl']) mkdirSync(made, { recursive: true });
  writeFileSync(file, table('mine'));
  writeFileSync('.pawl/config.toml', table('theirs'));
  await run('hooks');
  await run('hooks', hostile.text(40));
  await run('trust', 'allow', 'hook', 'theirs');
  await run('hooks', 'list');
  await turn(hostile, size);
  rmSync(file);
  rmSync('.pawl', { recursive: true });
};

/** The models that a hostile server lists. */
const models: Surface['show'] = async (hostile, _out, size) => {
  const listed = Array.from({ length: 5 }, () => ({ id: hostile.text(Math.min(size, 400)) }));
  const server = await startChatServer(() => ({ type: 'message', parts: [] }), { listed });
  const file = path.join(configFolder(process.env), 'config.toml');
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(
    file,
    `[providers.mine]\nbase_url = "${server.url}/v1"\n[providers.theirs]\n` +
      `base_url = "${server.url}/v1"\nkey_command = "exit 3"\n`,
  );
  await run('models');
  for (const name of ['mine', 'theirs', hostile.text(40)]) await run('models', name);
  rmSync(file);
  await server.close();
};

const trust: Surface['show'] = async (hostile, _out, size) => {
  const server = {
    command: wellFormed(hostile.text(Math.min(size, 2_000))),
    args: [hostile.text(40)],
  };
  writeFileSync(
    '.mcp.json',
    JSON.stringify({ mcpServers: { mine: server, [hostile.text(20)]: server } }),
  );
  await run('trust');
  await run('trust', 'allow', 'mcp-server', 'mine');
  await turn(hostile, size);
  writeFileSync(
    '.mcp.json',
    JSON.stringify({ mcpServers: { mine: { ...server, args: [hostile.text(40)] } } }),
  );
  await run('trust', 'list', '--all');
  await run('trust', 'allow', 'mcp-server', 'mine');
  await run('trust', 'revoke', 'mcp-server', 'mine');
  await run('trust', hostile.text(20), hostile.text(20), hostile.text(20));
  await run('trust', 'revoke', 'mcp-server', hostile.text(20));
  rmSync('.mcp.json');
};

const serve: Surface['show'] = async (hostile, _out, size) => {
  await turn(hostile, size);
  const place = `none/${hostile.text(40)}`;
  await run('serve', '--folder', place, '--model', 'scripted/script.json', '--port', 'x');
  for (const flag of ['--host', '--port', '--keys', '--engine', '--drain-seconds'])
    await run(
      'serve',
      '--folder',
      '.',
      '--model',
      'scripted/script.json',
      flag,
      `x${hostile.text(40)}`,
    );
  const onEngine = [
    '--folder',
    '.',
    '--model',
    'scripted/script.json',
    '--engine',
    'restate://127.0.0.1:1',
  ];
  for (const flag of [
    '--engine-admin',
    '--node',
    '--node-address',
    '--node-ports',
    '--peer',
    '--engine-key',
  ])
    await run('serve', ...onEngine, flag, `x${hostile.text(40)}`);
  await run('serve', '--repository', `${hostile.text(20)}=.`);
  const before = process.listeners('SIGTERM').at(-1);
  const words = [
    '--folder',
    '.',
    '--port',
    '0',
    '--model',
    'scripted/script.json',
    '--name',
    hostile.text(40),
  ];
  let isOver = false;
  const served = run('serve', ...words).then(() => {
    isOver = true;
  });
  while (!isOver && process.listeners('SIGTERM').at(-1) === before) await new Promise(setImmediate);
  assert.equal(isOver, false, 'the node did not start');
  process.emit('SIGTERM');
  await served;
};

const rewind: Surface['show'] = async (hostile, _out, size) => {
  await turn(hostile, size);
  const id = newestSession();
  await run('rewind', id);
  await run('rewind', id, '--json');
  for (const at of ['1', '999', hostile.text(40)]) await run('rewind', id, '--at', at);
  await run('redo', id);
  await run('redo', hostile.text(40));
};

const checkpoints: Surface['show'] = async (hostile, _out, size) => {
  await turn(hostile, size);
  for (const words of [[], [newestSession()], ['--prune'], [hostile.text(40)]])
    await run('checkpoints', ...words);
};

const bisect: Surface['show'] = async (hostile, _out, size) => {
  await turn(hostile, size);
  await run('bisect', newestSession(), '--', hostile.text(40));
  await run('bisect', hostile.text(40), '--', 'true');
};

const READERS = [
  'packages/pawl/src/commands/show.ts',
  'packages/pawl/src/commands/ask-show.ts',
  'packages/pawl/src/sessions/session-text.ts',
];

const TRANSFER = ['packages/pawl/src/commands/transfer.ts'];
const FIGURES = ['packages/pawl/src/commands/figures.ts'];

/** A detached session whose record is hostile, and whose process is gone. */
const detached: Surface['show'] = async (hostile, _out, size) => {
  await turn(hostile, size);
  const sessionId = newestSession();
  const folder = path.join(process.env.XDG_STATE_HOME ?? '', 'pawl', 'detached');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const activity = {
    ...{ kind: 'waiting', words: hostile.text(200), sinceMs: 0, costUsd: 1, rounds: 1 },
    questions: ['batchId', 'callId'].map((name) => ({
      ...{ batchId: name, callId: hostile.text(20), tool: hostile.text(20) },
      title: hostile.text(100),
    })),
  };
  const record = {
    ...{ version: 1, sessionId, workspace: hostile.text(60), cwd: '/', title: hostile.text(200) },
    ...{ flags: { model: hostile.text(20) }, startedAtMs: 0, activity },
    process: { pid: 1, started: '0', bootId: 'another', pids: '' },
    end: { kind: 'failed', words: hostile.text(200), atMs: 0 },
  };
  writeFileSync(path.join(folder, `${sessionId}.json`), JSON.stringify(record));
  for (const words of [
    ['sessions', '--live'],
    ['logs', sessionId],
    ['stop', sessionId],
  ])
    await run(...words);
  for (const command of ['attach', 'answer', 'resume']) await run(command, hostile.text(20), 'yes');
  await run('answer', sessionId, hostile.text(20), 'yes');
};

export const commandSurfaces: readonly Surface[] = [
  {
    name: 'a hostile record of a detached session',
    covers: ['packages/pawl/src/commands/detached.ts'],
    commands: ['attach', 'answer', 'logs', 'resume', 'stop'],
    show: detached,
  },
  {
    name: 'a turn without a terminal: story and answer',
    covers: [
      'packages/pawl/src/headless/headless.ts',
      'packages/pawl/src/commands/command-line.ts',
    ],
    commands: ['run'],
    show: (hostile, _out, size) => turn(hostile, size, '--verbose'),
  },
  {
    name: 'the JSON stream of a turn',
    covers: ['packages/pawl/src/headless/headless.ts'],
    show: (hostile, _out, size) => turn(hostile, size, '--json'),
  },
  {
    name: 'the page of a hostile session',
    covers: ['packages/pawl/src/commands/inspect.ts'],
    commands: ['inspect'],
    show: afterTurn('export', 'ID', '--html', 'page.html'),
  },
  {
    name: 'MCP servers with hostile settings and output',
    covers: ['packages/pawl/src/commands/mcp.ts'],
    commands: ['mcp'],
    show: mcp,
  },
  {
    name: 'hooks with hostile commands and outputs',
    covers: ['packages/pawl/src/commands/hooks.ts'],
    commands: ['hooks'],
    show: hooks,
  },
  {
    name: 'models that a hostile server lists',
    covers: ['packages/pawl/src/commands/models.ts'],
    commands: ['models'],
    show: models,
  },
  {
    name: 'skills with hostile names and texts',
    covers: ['packages/pawl/src/commands/skills.ts'],
    commands: ['skills'],
    show: skills,
  },
  {
    name: 'answers about hostile servers of a project',
    covers: ['packages/pawl/src/commands/trust.ts'],
    commands: ['trust'],
    show: trust,
  },
  {
    name: 'sessions',
    covers: ['packages/pawl/src/commands/sessions.ts'],
    commands: ['sessions'],
    show: afterTurn('sessions'),
  },
  { name: 'show', covers: READERS, commands: ['show'], show: afterTurn('show', 'ID') },
  { name: 'show --request', covers: READERS, show: afterTurn('show', 'ID', '--request') },
  { name: 'show --view', covers: READERS, show: afterTurn('show', 'ID', '--view', 'minimal') },
  { name: 'sessions --stats', covers: FIGURES, show: afterTurn('sessions', '--stats') },
  { name: 'show --time', covers: FIGURES, show: afterTurn('show', 'ID', '--time') },
  { name: 'replay', covers: READERS, commands: ['replay'], show: afterTurn('replay', 'ID') },
  {
    name: 'serve',
    covers: ['packages/pawl/src/commands/serve-node.ts'],
    commands: ['serve'],
    show: serve,
  },
  {
    name: 'diff of files between two lines',
    covers: ['packages/pawl/src/commands/diff-files.ts'],
    commands: ['diff'],
    show: afterTurn('diff', 'ID', '--at', '1..3'),
  },
  {
    name: 'rewind and redo',
    covers: ['packages/pawl/src/commands/rewind.ts', 'packages/pawl/src/sessions/closed-model.ts'],
    commands: ['rewind', 'redo'],
    show: rewind,
  },
  {
    name: 'checkpoints',
    covers: ['packages/pawl/src/commands/checkpoints.ts'],
    commands: ['checkpoints'],
    show: checkpoints,
  },
  {
    name: 'bisect',
    covers: ['packages/pawl/src/commands/bisect.ts'],
    commands: ['bisect'],
    show: bisect,
  },
  {
    name: 'verify',
    covers: ['packages/pawl/src/commands/verify.ts'],
    commands: ['verify'],
    show: afterTurn('verify', 'ID'),
  },
  {
    name: 'export --atif',
    covers: ['packages/pawl/src/commands/export-trajectory.ts'],
    show: afterTurn('export', 'ID', '--atif', 'trajectory.json'),
  },
  { name: 'export', covers: TRANSFER, commands: ['export'], show: afterTurn('export', 'ID') },
  {
    name: 'import',
    covers: TRANSFER,
    commands: ['import'],
    show: afterTurn('import', 'script.json'),
  },
  {
    name: 'fork',
    covers: ['packages/pawl/src/commands/fork.ts'],
    commands: ['fork'],
    show: afterTurn('fork', 'ID', '--at', '2'),
  },
  {
    name: 'config of the project',
    covers: ['packages/pawl/src/commands/config.ts'],
    commands: ['config'],
    show: configured('config', '--origin'),
  },
  {
    name: 'warnings of a turn',
    covers: [],
    show: configured('-p', 'x', '--model', 'scripted/none'),
  },
  {
    name: 'policy',
    covers: ['packages/pawl/src/commands/policy.ts'],
    commands: ['policy'],
    show: explained,
  },
  {
    name: 'doctor',
    covers: ['packages/pawl/src/commands/doctor.ts'],
    commands: ['doctor'],
    show: doctor,
  },
  { name: 'ask', covers: ['packages/pawl/src/commands/ask.ts'], commands: ['ask'], show: ask },
  {
    name: 'a refused command line',
    covers: ['packages/pawl/src/commands/command-line.ts'],
    show: refused,
  },
];
