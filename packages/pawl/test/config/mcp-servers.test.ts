import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'smol-toml';
import { parseConfig } from '../../src/settings/configuration.js';

// The table mcp.servers of a config.toml.

const read = (text: string) => parseConfig(text, (toml) => parse(toml));

test('servers with all their settings', () => {
  const { mcpServers, faults } = read(`
[mcp.servers.github]
command = "npx"
args = ["-y", "github-server"]
env = { TOKEN = "\${GITHUB_TOKEN}" }
timeout = 1.5
tools = ["get_*"]
required = true

[mcp.servers.docs]
url = "\${API:-https://docs.example}/mcp"
headers = { Authorization = "Bearer \${T}" }
enabled = false
`);
  assert.deepEqual(faults, []);
  const common = { enabled: true, required: false, timeoutMs: 60_000, tools: null };
  assert.deepEqual(mcpServers, [
    {
      ...common,
      name: 'github',
      kind: 'stdio',
      command: 'npx',
      args: ['-y', 'github-server'],
      cwd: null,
      env: { TOKEN: `\${GITHUB_TOKEN}` },
      timeoutMs: 1_500,
      tools: ['get_*'],
      required: true,
      protocol: 'legacy',
    },
    {
      ...common,
      name: 'docs',
      kind: 'http',
      url: `\${API:-https://docs.example}/mcp`,
      enabled: false,
      protocol: 'auto',
      headers: { Authorization: `Bearer \${T}` },
    },
  ]);
});

const faulty: readonly (readonly [given: string, text: string, fault: string])[] = [
  [
    'no command and no url',
    '[mcp.servers.a]\ntimeout = 1',
    '1 mcp.servers.a needs either command or url.',
  ],
  [
    'both',
    '[mcp.servers.a]\ncommand = "x"\nurl = "http://a/b"',
    '1 mcp.servers.a needs either command or url.',
  ],
  [
    'a misspelt setting',
    '[mcp.servers.a]\ncomand = "x"',
    '2 mcp.servers.a.comand is no setting of an MCP server. Did you mean command?',
  ],
  [
    'a wrong type',
    '[mcp.servers.a]\ncommand = "x"\nargs = "y"',
    '3 mcp.servers.a.args is a list of texts: ["-y", "some-server"].',
  ],
  [
    'a secret that is no variable',
    '[mcp.servers.a]\nurl = "http://a/b"\noauth = { client_id = "x", client_secret = "abc" }',
    `3 mcp.servers.a.oauth is a table: { client_id = "…", client_secret = "\${MY_SECRET}", redirect_port = 8976 }; a secret is named by its variable.`,
  ],
  [
    'a name with a blank',
    '[mcp.servers."a b"]\ncommand = "x"',
    '1 mcp.servers.a b needs a name of at most 32 letters, digits, - and _, without two _ in a row or one at its end.',
  ],
  [
    'a name whose end could belong to a tool',
    '[mcp.servers.a_]\ncommand = "x"',
    '1 mcp.servers.a_ needs a name of at most 32 letters, digits, - and _, without two _ in a row or one at its end.',
  ],
  [
    'a type that fits the other kind',
    '[mcp.servers.a]\ntype = "http"\ncommand = "x"',
    '2 mcp.servers.a.type belongs to a server with a url.',
  ],
  [
    'a time limit of nothing',
    '[mcp.servers.a]\ncommand = "x"\ntimeout = 0.0004',
    '3 mcp.servers.a.timeout is the time limit of a call in seconds, without quotes: 60.',
  ],
  [
    'headers for a command',
    '[mcp.servers.a]\ncommand = "x"\nheaders = {}',
    '3 mcp.servers.a.headers belongs to a server with a url.',
  ],
  [
    'arguments for a url',
    '[mcp.servers.a]\nurl = "http://a/b"\nargs = []',
    '3 mcp.servers.a.args belongs to a server with a command.',
  ],
  [
    'another table',
    '[mcp.server.a]\ncommand = "x"',
    '1 there is no mcp.server. A server is a table: [mcp.servers.NAME].',
  ],
  ['no table', 'mcp = 1', '1 mcp is a table: [mcp.servers.NAME].'],
  [
    'a rule that is no pattern',
    '[rules.mcp]\nallow = ["github/"]',
    '2 a rule of rules.mcp.allow is an MCP server, one of its tools, or the beginning of their names: "github", "github/get_issue" or "github/get_*".',
  ],
];

for (const [given, text, fault] of faulty)
  test(`${given}`, () => {
    assert.deepEqual(
      read(text).faults.map(({ line, text: why }) => `${line} ${why}`),
      [fault],
    );
  });

test('rules for tools of servers', () => {
  const { rules, faults } = read('[rules.mcp]\nallow = ["github/get_*"]\ndeny = ["web"]');
  assert.deepEqual(faults, []);
  assert.deepEqual(rules, [
    { kind: 'mcp', pattern: 'github/get_*', decision: 'allow', line: 2 },
    { kind: 'mcp', pattern: 'web', decision: 'deny', line: 3 },
  ]);
});
