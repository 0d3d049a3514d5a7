import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, stringify } from 'smol-toml';
import type { EditedConfig } from '../../src/settings/edit-config.js';
import { addServer, removeServer } from '../../src/settings/edit-mcp-servers.js';

// Servers are added to and removed from a config.toml that people write: everything else stays as it is.

const format = { parse: (text: string) => parse(text), stringify };

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const textOf = (edited: EditedConfig): string => {
  assert.ok(edited.kind === 'edited', JSON.stringify(edited));
  return edited.text;
};
const whyOf = (edited: EditedConfig): string => {
  assert.ok(edited.kind === 'refused', JSON.stringify(edited));
  return edited.why;
};

const WRITTEN = `# My settings.
model = "anthropic/claude" # the good one

[rules.mcp]   # asked otherwise
allow = ["docs"]

# Issues
[mcp.servers.github]
command = "npx"
# without telemetry
args = [
  "-y", # yes
  "[mcp.servers.docs]",
]

[mcp.servers.github.env]
TOKEN = "\${GITHUB_TOKEN}"

[mcp.servers.docs] # the manual
url = "https://docs.example/mcp"
headers = { Authorization = "Bearer \${T}" }
# timeout = 5

[rules.command]
deny = ["rm"]
`;

test('an added server stands at the end, and removing it gives the old text again', () => {
  const servers = {
    'my-server': {
      command: 'npx',
      args: ['-y', 'a "b"', 'c\\d\n\u007f'],
      env: { 'A.B': `\${C}`, D: 'é' },
    },
    web: {
      url: 'https://web.example/mcp?x=1',
      headers: { Authorization: `Bearer \${T}`, 'X-A': '1' },
    },
  };
  for (const text of ['', WRITTEN, WRITTEN.replaceAll('\n', '\r\n'), 'model = "a/b"'])
    for (const [name, server] of Object.entries(servers)) {
      const added = textOf(addServer(text, name, server, format));
      assert.ok(added.startsWith(text.trimEnd()));
      assert.equal(added.includes('\r\n'), text.includes('\r\n'));
      const { mcp } = parse(added) as { mcp: { servers: Record<string, unknown> } };
      assert.deepEqual(plain(mcp.servers[name]), server);
      assert.equal(textOf(removeServer(added, name, format)).trimEnd(), text.trimEnd());
    }
});

test('a removed server takes its tables and the comments inside them along, and nothing else', () => {
  const [start] = WRITTEN.split('[mcp.servers.github]');
  const rest = WRITTEN.slice(WRITTEN.indexOf('[mcp.servers.docs] #'));
  assert.equal(textOf(removeServer(WRITTEN, 'github', format)), `${start}\n${rest}`);
  const without = textOf(removeServer(WRITTEN, 'docs', format));
  assert.match(without, /GITHUB_TOKEN\}"\n\n# timeout = 5\n\n\[rules\.command\]/);
});

test('a server with a quoted name, dotted keys or an inline table is removed too', () => {
  for (const text of [
    '[mcp.servers]\na.command = "x"\nb = { url = "https://b" } # B\na.args = ["1"]\n',
    '["mcp" . servers."a"]\ncommand = "x"\n[mcp.servers.b]\nurl = "https://b"\n',
    '[mcp]\nservers.a = { command = "x" }\nservers.b.url = "https://b"\n',
  ]) {
    const cut = textOf(removeServer(text, 'a', format));
    assert.deepEqual(plain(parse(cut).mcp), { servers: { b: { url: 'https://b' } } });
  }
});

test('what can not be changed safely is refused with a reason', () => {
  const inline = '[mcp]\nservers = { a = { command = "x" } }\n';
  const server = { command: 'x' };
  assert.match(whyOf(removeServer(inline, 'a', format)), /can't be cut out. Remove it by hand/);
  assert.match(whyOf(addServer(inline, 'b', server, format)), /Add b by hand/);
  assert.match(whyOf(addServer('mcp = 1', 'b', server, format)), /must be tables/);
  assert.match(whyOf(addServer('a = = 1', 'b', server, format)), /it has an error/);
  assert.match(whyOf(removeServer('a = = 1', 'b', format)), /it has an error/);
  assert.match(
    whyOf(addServer(WRITTEN, 'GitHub', server, format)),
    /already has an MCP server github/,
  );
  assert.match(whyOf(addServer(WRITTEN, 'a b', server, format)), /needs a name of at most 32/);
  assert.match(
    whyOf(addServer(WRITTEN, '__proto__', server, format)),
    /needs a name of at most 32/,
  );
  assert.match(
    whyOf(removeServer(WRITTEN, 'none', format)),
    /has no MCP server none. It has github, docs/,
  );
  assert.match(whyOf(removeServer('', 'none', format)), /It has none/);
});
