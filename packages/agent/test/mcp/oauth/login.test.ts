import '../../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { bundleProgram } from '../../../../../test/bundled-program.js';
import { atEnd, temporaryFolder } from '../../../../../test/temporary-folder.js';
import { until } from '../../../../../test/until.js';
import { type Connection, createConnection } from '../../../src/extensions/mcp/connection.js';
import {
  beginLogin,
  finishLogin,
  type LoginDialogue,
  type LoginOptions,
  logIn,
  loginFetch,
  openRedirectListener,
} from '../../../src/extensions/mcp/log-in.js';
import { expandVariables, type HttpServer } from '../../../src/extensions/mcp/server-config.js';
import {
  changeLogin,
  loginSecrets,
  readLogin,
  removeLogin,
} from '../../../src/extensions/mcp/stored-login.js';
import {
  type AuthorizationServer,
  authorizationServer,
  browse,
  type GuardedServer,
  guardedServer,
} from './oauth-servers.js';

// Logins at MCP servers by OAuth, against a real authorization server: discovery, registration, the redirect, renewal.

type Stage = {
  readonly issuer: AuthorizationServer;
  readonly server: GuardedServer;
  readonly options: LoginOptions;
  connection(): Connection;
};

const variable = (name: string): string => `\${${name}}`;

const stage = async (t: TestContext): Promise<Stage> => {
  const issuer = await authorizationServer(t);
  const server = await guardedServer(t, issuer);
  const stateFolder = temporaryFolder(t, 'oauth-state');
  const deadline = new AbortController();
  t.after(() => deadline.abort());
  return {
    issuer,
    server,
    options: { stateFolder, environment: {}, signal: deadline.signal },
    connection() {
      const connection = createConnection(server.settings, {
        environment: {},
        workspace: '/',
        stateFolder,
      });
      atEnd(t, () => connection.close());
      return connection;
    },
  };
};

const act = async (connection: Connection): Promise<string> => {
  const options = { signal: new AbortController().signal, onProgress: () => undefined };
  const { content } = await connection.call('act', {}, options);
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
};

/** A user whose browser opens the address at once. */
const agrees: LoginDialogue = { show: (address) => void browse(address) };

const logFile = ({ stateFolder }: Stage['options']): string => {
  const folder = path.join(stateFolder, 'mcp', 'oauth');
  return path.join(folder, readdirSync(folder)[0] ?? '');
};

test('without a login the server is one line that names the command; after it, its tools work', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await assert.rejects(
    connection().listTools(),
    /the MCP server web can't be used: it needs a login: pawl mcp login web/,
  );
  assert.deepEqual(issuer.seen, [], 'a session asks no authorization server');
  assert.deepEqual(await logIn(server.settings, options, agrees), { kind: 'done' });
  assert.equal(await act(connection()), 'acted');
  assert.deepEqual(issuer.seen, [
    '/.well-known/oauth-authorization-server',
    '/register',
    '/authorize',
    '/token',
  ]);
  assert.equal(statSync(logFile(options)).mode & 0o777, 0o600);
  const { tokens } = readLogin(options.stateFolder, server.settings);
  assert.ok(
    tokens?.access_token &&
      loginSecrets(options.stateFolder, server.settings).includes(tokens.access_token),
  );
  const logs = path.join(options.stateFolder, 'mcp', 'logs');
  assert.equal(existsSync(logs), false);
});

test('expired tokens are renewed once for several calls, and an ended login is said', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  const live = connection();
  await live.listTools();
  issuer.expire();
  issuer.seen.length = 0;
  assert.deepEqual(await Promise.all([act(live), act(live), act(live)]), [
    'acted',
    'acted',
    'acted',
  ]);
  assert.deepEqual(issuer.seen, ['/token']);
  issuer.revoke();
  await assert.rejects(act(live), /its login has expired: pawl mcp login web/);
  assert.equal(readLogin(options.stateFolder, server.settings).tokens, null);
  await assert.rejects(connection().listTools(), /it needs a login: pawl mcp login web/);
});

test('a request that is refused after the renewal renews nothing', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  const live = connection();
  await live.listTools();
  issuer.expire();
  issuer.seen.length = 0;
  let release: (() => void) | null = null;
  server.beforeRefusal = () => {
    server.beforeRefusal = async () => undefined;
    return new Promise((resolve) => {
      release = resolve;
    });
  };
  const first = act(live);
  await until('the first request', () => release !== null);
  assert.deepEqual([await act(live), await act(live)], ['acted', 'acted']);
  (release as (() => void) | null)?.();
  assert.equal(await first, 'acted');
  assert.deepEqual(issuer.seen, ['/token']);
});

const CALLER = `
  import { createConnection } from './packages/agent/src/extensions/mcp/connection.js';
  const [settings = '', stateFolder = ''] = process.argv.slice(2);
  const place = { environment: {}, workspace: '/', stateFolder };
  const connection = createConnection(JSON.parse(settings), place);
  const options = { signal: new AbortController().signal, onProgress: () => undefined };
  const { content } = await connection.call('act', {}, options);
  console.log(JSON.stringify(content));
  await connection.close();`;

test('four processes with an expired token: it is renewed once, and all four calls are answered', async (t) => {
  const { issuer, server, options } = await stage(t);
  await logIn(server.settings, options, agrees);
  issuer.expire();
  issuer.seen.length = 0;
  server.tokens.length = 0;
  // Until all four have been refused. A renewal more would end the login: it uses a token twice.
  issuer.beforeRenewal = async () => {
    await until('four refusals', () => server.tokens.length >= 4);
  };
  const program = await bundleProgram(t, { code: CALLER });
  const words = [program, JSON.stringify(server.settings), options.stateFolder];
  const calls = Array.from({ length: 4 }, () => promisify(execFile)(process.execPath, words));
  for (const { stdout } of await Promise.all(calls)) assert.match(stdout, /acted/);
  assert.deepEqual(issuer.seen, ['/token']);
});

test('tokens are renewed for the scope that the login has asked for, if it has', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  const renewWith = async (askedScope: string | null | undefined): Promise<unknown> => {
    await changeLogin(
      options.stateFolder,
      server.settings,
      async ({ askedScope: _, ...login }) => ({
        ...login,
        ...(askedScope === undefined ? {} : { askedScope }),
      }),
    );
    issuer.expire();
    assert.equal(await act(connection()), 'acted');
    return issuer.renewed.at(-1);
  };
  assert.equal(readLogin(options.stateFolder, server.settings).askedScope, 'read');
  assert.equal(await renewWith('read'), 'read');
  assert.equal(await renewWith('read write offline_access'), 'read offline_access');
  assert.equal(await renewWith(undefined), 'read', 'stored by an earlier version');
  assert.equal(await renewWith(null), null);
});

test('requests with another state are answered and forgotten', async (t) => {
  const { server, options } = await stage(t);
  const pages: string[] = [];
  const attacked: LoginDialogue = {
    async show(address) {
      const url = new URL(address);
      const back = url.searchParams.get('redirect_uri') ?? '';
      pages.push(
        await browse(`${back}?code=stolen&state=guess`),
        await browse(`${back}?error=access_denied`),
      );
      pages.push(
        await browse(back.replace('127.0.0.1', 'localhost')),
        await browse(`${new URL(back).origin}/`),
      );
      await browse(address);
    },
  };
  assert.deepEqual(await logIn(server.settings, options, attacked), { kind: 'done' });
  assert.match(
    pages.join('\n'),
    /does not belong[\s\S]*does not belong[\s\S]*nothing here[\s\S]*nothing here/,
  );
});

test('a login that the user refuses, or that nobody finishes, stores no tokens', async (t) => {
  const { issuer, server, options } = await stage(t);
  issuer.refuses = true;
  await assert.rejects(logIn(server.settings, options, agrees), /access_denied/);
  assert.equal(readLogin(options.stateFolder, server.settings).tokens, null);
  const late = new AbortController();
  const waiting = logIn(
    server.settings,
    { ...options, signal: late.signal },
    { show: () => late.abort() },
  );
  await assert.rejects(waiting, /was not finished in time/);
});

test('an address that the user types finishes the login, and other texts are refused', async (t) => {
  const { server, options } = await stage(t);
  let asked: string | null = null;
  let tries = 0;
  const refused: string[] = [];
  const far: LoginDialogue = {
    show: (address) => {
      asked = address;
    },
    async typed() {
      tries += 1;
      if (tries === 1) return ' ';
      if (tries === 2) return 'what?';
      if (tries === 3) return 'http://127.0.0.1/callback?code=x&state=guess';
      return (await fetch(String(asked), { redirect: 'manual' })).headers.get('location') ?? '';
    },
    refuse: (why) => refused.push(why),
  };
  assert.deepEqual(await logIn(server.settings, options, far), { kind: 'done' });
  assert.equal(tries, 4);
  assert.equal(refused.filter((why) => why.includes('Copy the whole address')).length, 2);
});

test('without a terminal a login is begun, and finished by the address that the browser was sent to', async (t) => {
  const { server, options, connection } = await stage(t);
  const begun = await beginLogin(server.settings, options);
  assert.ok(begun.kind === 'begun');
  const sent = (await fetch(begun.address, { redirect: 'manual' })).headers.get('location') ?? '';
  await assert.rejects(
    finishLogin(server.settings, sent.replace(/state=[^&]*/, 'state=guess'), options),
    /does not belong to the login/,
  );
  assert.deepEqual(await finishLogin(server.settings, sent, options), { kind: 'done' });
  assert.equal(await act(connection()), 'acted');
  await assert.rejects(finishLogin(server.settings, sent, options), /no login was begun/);
  assert.equal(await removeLogin(options.stateFolder, server.settings), true);
  await assert.rejects(connection().listTools(), /it needs a login/);
});

test('a stored login with a part of another type is no login', async (t) => {
  const { server, options } = await stage(t);
  await logIn(server.settings, options, agrees);
  const file = logFile(options);
  const stored = JSON.parse(readFileSync(file, 'utf8'));
  for (const fault of [{ issuer: null }, { tokens: [] }, { askedScope: 3 }]) {
    writeFileSync(file, JSON.stringify({ ...stored, ...fault }));
    assert.equal(readLogin(options.stateFolder, server.settings).tokens, null);
    assert.equal(readLogin(options.stateFolder, server.settings).issuer, '');
  }
});

test('a stored login that can not be read is not replaced', async (t) => {
  const { server, options } = await stage(t);
  await logIn(server.settings, options, agrees);
  const file = logFile(options);
  const text = readFileSync(file, 'utf8').padEnd(2 * 1024 * 1024);
  writeFileSync(file, text);
  const changing = changeLogin(options.stateFolder, server.settings, async (login) => login);
  await assert.rejects(changing, /login can't be read/);
  assert.equal(readFileSync(file, 'utf8'), text);
});

test('a login that is not finished leaves the one before', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  const before = readLogin(options.stateFolder, server.settings);
  const taken = await openRedirectListener(before.redirectUrl); // so it registers for another one
  atEnd(t, () => taken.close());
  const late = new AbortController();
  const waiting = logIn(
    server.settings,
    { ...options, signal: late.signal },
    { show: () => late.abort() },
  );
  await assert.rejects(waiting, /was not finished in time/);
  assert.equal(issuer.clients.size, 2, 'control');
  const { pending, ...after } = readLogin(options.stateFolder, server.settings);
  assert.deepEqual({ ...after, pending: null }, before);
  issuer.expire();
  assert.equal(await act(connection()), 'acted');
});

test('a server that moves to another issuer gets no token of the old one there, and a new registration', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  const next = await authorizationServer(t);
  server.issuedBy = next;
  await assert.rejects(connection().listTools(), /it refuses the stored login: pawl mcp login web/);
  assert.deepEqual(next.seen, []);
  const old = readLogin(options.stateFolder, server.settings);
  next.refuses = true;
  await assert.rejects(logIn(server.settings, options, agrees), /access_denied/);
  assert.ok(!readFileSync(logFile(options), 'utf8').includes(String(old.tokens?.refresh_token)));
  next.refuses = false;
  assert.deepEqual(await logIn(server.settings, options, agrees), { kind: 'done' });
  const stored = readFileSync(logFile(options), 'utf8');
  assert.equal(JSON.parse(stored).issuer, next.issuer);
  assert.ok(!stored.includes(String(old.tokens?.refresh_token)) && !stored.includes(issuer.issuer));
  assert.equal(next.clients.size, 1);
  assert.equal(await act(connection()), 'acted');
});

test('a call that needs more rights says so, and the next login asks for them', async (t) => {
  const { issuer, server, options, connection } = await stage(t);
  await logIn(server.settings, options, agrees);
  // it may leave out the scope if that is as asked for
  await changeLogin(options.stateFolder, server.settings, async ({ tokens, ...login }) => ({
    ...login,
    tokens: tokens === null ? null : { ...tokens, scope: '' },
  }));
  server.callScope = 'write';
  await assert.rejects(act(connection()), /it asks for more rights \(write\): pawl mcp login web/);
  server.callScope = 'admin';
  await assert.rejects(act(connection()), /it asks for more rights \(admin\): pawl mcp login web/);
  assert.deepEqual(await logIn(server.settings, options, agrees), { kind: 'done' });
  assert.equal(await act(connection()), 'acted');
  assert.deepEqual([...issuer.valid.values()].at(-1), 'read write admin');
});

test('a server that asks for a login again and again is given up after three', async (t) => {
  const { issuer, server, options } = await stage(t);
  let logins = 0;
  const again: LoginDialogue = {
    async show(address) {
      logins += 1;
      await browse(address);
      issuer.revoke();
    },
  };
  server.issuedBy = { ...issuer, valid: new Map() };
  await assert.rejects(
    logIn(server.settings, options, again),
    /still asks for a login after 3|401/,
  );
  assert.ok(logins <= 3, String(logins));
});

test('a redirect is taken once: the same address again is refused with words', async (t) => {
  const listener = await openRedirectListener(null);
  atEnd(t, () => listener.close());
  const received = listener.receive('a-state');
  const ask = async () => {
    const answered = await fetch(`${listener.redirectUrl}?code=x&state=a-state`);
    return { status: answered.status, text: await answered.text() };
  };
  assert.equal((await ask()).status, 200);
  assert.equal((await received).get('code'), 'x');
  const again = await ask();
  assert.equal(again.status, 400);
  assert.match(again.text, /was used already/);
});

test('a client that the settings name logs in with its secret, renews, and is sent to no other issuer', async (t) => {
  const free = await openRedirectListener(null);
  free.close();
  const secret = 'the-secret-of-the-client';
  const redirectPort = Number(new URL(free.redirectUrl).port);
  const issuer = await authorizationServer(t, {
    id: 'pawl-app',
    secret,
    redirect: free.redirectUrl,
  });
  const server = await guardedServer(t, issuer);
  const oauth = { clientId: 'pawl-app', clientSecret: variable('OAUTH_SECRET'), redirectPort };
  const settings: HttpServer = { ...server.settings, oauth };
  const environment = { OAUTH_SECRET: secret };
  const { stateFolder, ...rest } = (await stage(t)).options;
  const options = { ...rest, stateFolder, environment };
  const expanded = expandVariables(settings, environment);
  assert.ok(expanded.kind === 'ok' && expanded.server.kind === 'http');
  assert.deepEqual(await logIn(expanded.server, options, agrees), { kind: 'done' });
  assert.ok(!issuer.seen.includes('/register'));
  const connect = (): Connection => {
    const connection = createConnection(settings, { environment, workspace: '/', stateFolder });
    atEnd(t, () => connection.close());
    return connection;
  };
  issuer.expire();
  assert.equal(await act(connect()), 'acted', 'it is renewed with the secret');
  const files = readdirSync(path.join(stateFolder, 'mcp', 'oauth'));
  for (const file of files)
    assert.ok(
      !readFileSync(path.join(stateFolder, 'mcp', 'oauth', file), 'utf8').includes(secret),
      file,
    );
  const next = await authorizationServer(t);
  server.issuedBy = next;
  await assert.rejects(
    logIn(expanded.server, options, agrees),
    /another authorization server than before/,
  );
  assert.ok(!next.seen.includes('/token') && !next.seen.includes('/register'), next.seen.join(' '));
  await assert.rejects(openRedirectListener(null, Number(new URL(next.issuer).port)), /is in use/);
});

test('an authorization server that does not announce PKCE is refused', async (t) => {
  const { issuer, server, options } = await stage(t);
  const begin = (): Promise<unknown> => beginLogin(server.settings, options);
  for (const methods of [undefined, [], ['plain']]) {
    issuer.metadata = { code_challenge_methods_supported: methods };
    await assert.rejects(begin(), /does not announce PKCE with S256/);
  }
  issuer.metadata = {};
  await begin();
});

test('the deadline of a login also ends its own requests: a token endpoint that does not answer', async (t) => {
  const { issuer, server, options } = await stage(t);
  const deadline = new AbortController();
  issuer.silent = () => deadline.abort(new Error('the time is over'));
  const begun = await beginLogin(server.settings, options);
  assert.equal(begun.kind, 'begun');
  const address = begun.kind === 'begun' ? begun.address : '';
  const { headers } = await fetch(address, { redirect: 'manual' });
  const finishing = finishLogin(server.settings, headers.get('location') ?? '', {
    ...options,
    signal: deadline.signal,
  });
  await assert.rejects(finishing);
});

test('metadata of a login have a limit in size', async (t) => {
  const { issuer, server, options } = await stage(t);
  issuer.metadata = { padding: 'x'.repeat(17 << 20) };
  await assert.rejects(beginLogin(server.settings, options), /longer than 16 MB/);
});

test('a server elsewhere names no program of this computer for its login; one of this computer may', async () => {
  const options = { environment: {}, signal: new AbortController().signal };
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '127.1',
    'a.localhost',
    '0.0.0.0',
    '[::ffff:127.0.0.1]',
  ]) {
    const refused = loginFetch(
      { url: 'https://mcp.example/x' },
      options,
    )(`http://${host}:1/metadata`);
    await assert.rejects(refused, /which is this computer/, host);
  }
  const local = loginFetch({ url: 'http://127.0.0.1:2/x' }, options)('http://127.0.0.1:1/metadata');
  await assert.rejects(local, (fault: Error) => !fault.message.includes('this computer'));
});
