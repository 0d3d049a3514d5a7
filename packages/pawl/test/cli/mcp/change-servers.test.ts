import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { readServers } from '@pawl/agent/extensions/mcp/server-config';
import { isTable } from '@pawl/agent/platform/untrusted-input';
import { parse } from 'smol-toml';
import { temporaryFolder } from '../../../../../test/temporary-folder.js';
import { addToFile, type NewServerFlags, removeFromFile } from '../../../src/commands/mcp.js';
import { Stop } from '../../../src/process/exit-codes.js';

// `pawl mcp add` and `remove` on real files.

/** The user's config.toml of this test; `text` null: there is none. */
const configFile = (t: TestContext, text: string | null): string => {
  const home = temporaryFolder(t, 'config');
  const before = process.env.XDG_CONFIG_HOME;
  process.env.XDG_CONFIG_HOME = home;
  t.after(() => {
    if (before === undefined) delete process.env.XDG_CONFIG_HOME;
    else process.env.XDG_CONFIG_HOME = before;
  });
  const folder = path.join(home, 'pawl');
  if (text !== null) {
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'config.toml'), text, { mode: 0o640 });
  }
  return path.join(folder, 'config.toml');
};

test('the first server makes the file, private to the user, and a literal secret is pointed out', async (t) => {
  const file = configFile(t, null);
  const said = await addToFile('docs', [], {
    url: 'https://d.example',
    header: ['Authorization: Bearer abc'],
  });
  assert.match(said.join('\n'), /^Added docs to .*\n.*now holds a secret/);
  assert.equal(statSync(path.dirname(file)).mode & 0o777, 0o700);
  assert.match(
    readFileSync(file, 'utf8'),
    /^\[mcp\.servers\.docs\]\nurl = "https:\/\/d\.example"\nheaders = \{ Authorization = "Bearer abc" \}\n$/,
  );
});

test('a symlink stays, its target keeps its mode and its other text', async (t) => {
  const file = configFile(t, '# mine\nmodel = "a/b" # yes\n');
  const target = path.join(temporaryFolder(t, 'dotfiles'), 'pawl.toml');
  writeFileSync(target, readFileSync(file), { mode: 0o640 });
  unlinkSync(file);
  symlinkSync(target, file);
  const said = await addToFile('gh', ['npx', '-y', '--url'], { env: [`T=\${GH}`] });
  assert.equal(said.length, 1);
  assert.ok(lstatSync(file).isSymbolicLink());
  assert.equal(statSync(target).mode & 0o777, 0o640);
  assert.match(
    readFileSync(target, 'utf8'),
    /^# mine\nmodel = "a\/b" # yes\n\n\[mcp\.servers\.gh\]/,
  );
  await removeFromFile('gh');
  assert.equal(readFileSync(target, 'utf8'), '# mine\nmodel = "a/b" # yes\n');
  assert.deepEqual(readdirSync(path.dirname(target)), ['pawl.toml']);
});

test('a file that can not be changed stays, and the reason is said', async (t) => {
  const faulty: readonly (readonly [bytes: string | Buffer, says: RegExp])[] = [
    ['a = = 1', /is not changed: it has an error/],
    [Buffer.from([0xff, 0x61]), /not text in UTF-8/],
    [`# ${'x'.repeat(16_360)}`, /more than 16384 bytes/],
  ];
  const file = configFile(t, '');
  for (const [bytes, says] of faulty) {
    writeFileSync(file, bytes);
    await assert.rejects(addToFile('a', ['b'], {}), says);
    assert.deepEqual(readFileSync(file), Buffer.from(bytes));
  }
});

test('a folder that can not be made is said', async (t) => {
  const home = configFile(t, null);
  mkdirSync(path.dirname(path.dirname(home)), { recursive: true });
  writeFileSync(path.dirname(home), 'a file where the folder would be');
  await assert.rejects(addToFile('a', ['b'], {}), (error: unknown) => {
    assert.ok(error instanceof Stop);
    assert.match(error.message, /config\.toml is not changed: its folder can't be made: /);
    return true;
  });
});

test('a server is added with the client that it is registered as', async (t) => {
  const file = configFile(t, '');
  const flags = { url: 'https://x/mcp', oauthClientId: 'pawl', oauthRedirectPort: '8976' };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
  const [added] = await addToFile('docs', [], { ...flags, oauthClientSecret: '${DOCS_SECRET}' });
  assert.match(added ?? '', /Log in: pawl mcp login docs$/);
  const { mcp } = parse(readFileSync(file, 'utf8'));
  assert.ok(isTable(mcp) && isTable(mcp.servers));
  const [server] = readServers(mcp.servers, []).servers;
  assert.deepEqual(server?.kind === 'http' ? server.oauth : null, {
    clientId: 'pawl',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    clientSecret: '${DOCS_SECRET}',
    redirectPort: 8976,
  });
  await removeFromFile('docs');
  assert.doesNotMatch(readFileSync(file, 'utf8'), /docs|oauth/);
  const wrong: readonly (readonly [given: NewServerFlags, says: RegExp])[] = [
    [{ ...flags, oauthClientSecret: 's3cret' }, /named by its variable/],
    [{ ...flags, oauthRedirectPort: '80a' }, /is a number from 1 to 65535/],
    [{ ...flags, oauthRedirectPort: '70000' }, /is a number from 1 to 65535/],
    [{ ...flags, oauthRedirectPort: '0' }, /is a number from 1 to 65535/],
    [{ url: 'https://x', oauthRedirectPort: '1' }, /^--oauth-redirect-port needs --oauth-client/],
  ];
  for (const [given, says] of wrong) {
    await assert.rejects(addToFile('docs', [], given), (error: Error) => {
      assert.match(error.message, says);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  }
  await assert.rejects(
    addToFile('docs', ['b'], { oauthRedirectPort: '1' }),
    /^\S*: --oauth-redirect-port is for a server with --url/,
  );
});

test('wrong words are refused without repeating a secret', async (t) => {
  configFile(t, '');
  await assert.rejects(addToFile('a', [], {}), /has a program or an address/);
  await assert.rejects(addToFile('a', ['b'], { url: 'https://x' }), /has a program or an address/);
  await assert.rejects(addToFile('a', ['b'], { header: ['A: b'] }), /--header is for/);
  await assert.rejects(addToFile('a', [], { url: 'https://x', env: ['A=b'] }), /--env is for/);
  await assert.rejects(
    addToFile('a', [], { url: 'https://x', header: ['s3cret'] }),
    (error: Error) => {
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    },
  );
  await assert.rejects(addToFile('a', [], { url: 'ftp://x' }), /is an http or https URL/);
});
