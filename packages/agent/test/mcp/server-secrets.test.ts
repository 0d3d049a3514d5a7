import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { openSession, placeIn } from '../../../../test/kit/mcp/open-servers.js';
import { plainScript, settingsOf, stdioServer } from '../../../../test/kit/mcp/test-servers.js';
import type { McpServer } from '../../src/extensions/mcp/server-config.js';
import {
  secretsByName,
  serverSecrets,
  shownStart,
} from '../../src/extensions/mcp/server-secrets.js';

// Secrets in the settings of servers: which values they are, and that no log and no message holds them.

const server = (table: object): McpServer => settingsOf('s', table);
const environment = { MINE: 'tok-4fX9qLw2Zr77', PLAIN: 'hello' };

const rows: readonly (readonly [
  given: string,
  table: object,
  secrets: readonly string[],
  shown: string,
])[] = [
  [
    'headers',
    {
      url: 'https://a.example/mcp',
      headers: { Authorization: `Bearer \${MINE}`, 'X-Team': 'red-42-key', Accept: 'text/plain' },
    },
    ['tok-4fX9qLw2Zr77', 'red-42-key'],
    'https://a.example/mcp',
  ],
  [
    'a password',
    {
      url: 'https://a.example',
      headers: { authorization: `Basic ${Buffer.from('me:pass9word').toString('base64')}` },
    },
    [Buffer.from('me:pass9word').toString('base64'), 'pass9word'],
    'https://a.example',
  ],
  [
    'an address with secrets',
    { url: 'https://me:pa55@a.example/x?api_key=k-123&page=2' },
    ['pa55', 'k-123'],
    'https://…@a.example/x?…',
  ],
  [
    'variables',
    { command: 'x', env: { GH_TOKEN: `\${MINE}`, MODE: 'fast', DB: 'postgres://u:pw-1@h/d' } },
    ['tok-4fX9qLw2Zr77', 'pw-1'],
    'x',
  ],
  [
    'arguments',
    {
      command: 'x',
      args: [
        '--token',
        'abc',
        '--api-key=def',
        '-H',
        'Authorization: Bearer ghi',
        '-v',
        'jkl',
        'ghp_0123456789abcdefghij',
      ],
    },
    ['abc', 'def', 'ghi', 'ghp_0123456789abcdefghij'],
    'x --token … --api-key=… -H Authorization: Bearer … -v jkl …',
  ],
  [
    'headers in arguments',
    {
      command: 'x',
      args: [
        ...['--header', 'Api-Key: abc', '-H', 'DD: def', '--header=Authorization: Bearer ghi'],
        ...['PRIVATE-TOKEN: jkl', 'mode: fast', '--header', 'Accept: text/plain'],
      ],
    },
    ['abc', 'def', 'ghi', 'jkl'],
    'x --header Api-Key: … -H DD: … --header=Authorization: Bearer … PRIVATE-TOKEN: … mode: fast ' +
      '--header Accept: text/plain',
  ],
  [
    'assignments in arguments',
    {
      command: 'docker',
      args: [
        ...['run', '-e', 'GITHUB_TOKEN=abc', '--env=API_KEY=def', '-e', 'MODE=fast'],
        ...['--token', 'ghi=jkl=', 'x'],
      ],
    },
    ['abc', 'def', 'ghi=jkl='],
    'docker run -e GITHUB_TOKEN=… --env=API_KEY=… -e MODE=fast --token … x',
  ],
  [
    'addresses in arguments and variables',
    {
      command: 'npx',
      args: [
        ...['mcp-remote', 'https://a.example/mcp?api_key=abc&page=2'],
        ...['--url=https://me:def@a.example/?token=g%2Fh', 'HOOK=https://a.example#auth_token=ghi'],
        ...['--url', `https://a.example/?key=\${MINE}&from=https://b.example`],
      ],
      env: { HOOK_URL: 'https://a.example/?key=jkl' },
    },
    ['jkl', 'abc', 'def', 'g%2Fh', 'g/h', 'ghi', 'tok-4fX9qLw2Zr77'],
    'npx mcp-remote https://a.example/mcp?api_key=…&page=2 --url=https://me:…@a.example/?token=… ' +
      `HOOK=https://a.example#auth_token=… --url https://a.example/?key=\${MINE}&from=https://b.example`,
  ],
  [
    'unset variables',
    { command: 'x', args: ['-H', 'Authorization: Bearer  '] },
    [],
    'x -H Authorization: Bearer  ',
  ],
  [
    'references in arguments',
    { command: 'x', args: ['--token', `\${MINE}`, '--mode', `\${PLAIN}`] },
    ['tok-4fX9qLw2Zr77'],
    `x --token \${MINE} --mode \${PLAIN}`,
  ],
];

for (const [given, table, secrets, shown] of rows)
  test(`the secrets of a server with ${given}`, () => {
    assert.deepEqual(
      serverSecrets(server(table), environment).map(({ value }) => value),
      secrets,
    );
    assert.equal(shownStart(server(table)), shown);
  });

test('secrets of the same place have names of their own', () => {
  const table = { command: 'x', args: ['--token', 'abc', '--secret', 'def'] };
  assert.deepEqual(secretsByName([server(table)], {}, '/none'), {
    's.args': 'abc',
    's.args.2': 'def',
  });
});

test('a server that writes its token, in pieces, and refuses with it: log and message do not hold it', async (t) => {
  const script = plainScript(
    t,
    `process.stderr.write('starts with tok-4fX9');
     setTimeout(() => { process.stderr.write('qLw2Zr77\\n'); process.exit(3); }, 20);`,
  );
  const place = placeIn(t);
  const odd = stdioServer('odd', script, { env: { A_TOKEN: `\${MINE}` } });
  const { session, warned } = await openSession(t, place, [odd], {
    environment: { ...process.env, ...environment },
  });
  session.connect();
  assert.match(await warned('odd'), /Its last words: starts with \[secret:\$odd\.env\.A_TOKEN\]$/);
  const log = readFileSync(path.join(place.stateFolder, 'mcp', 'logs', 'odd.log'), 'utf8');
  assert.equal(log, 'starts with [secret:$odd.env.A_TOKEN]\n');
});

test('a header that can not be sent is not repeated by the message', async (t) => {
  const web = settingsOf<McpServer & { kind: 'http' }>('web', {
    url: 'http://127.0.0.1:9/mcp',
    headers: { Authorization: 'Bearer tok-wrong-\u{1f600}-88' },
  });
  const { session, warned } = await openSession(t, placeIn(t), [web]);
  session.connect();
  assert.doesNotMatch(await warned('web'), /tok-wrong/);
});
