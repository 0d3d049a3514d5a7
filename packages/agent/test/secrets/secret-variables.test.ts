import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fencedEnvironment, openEnvironment } from '../../src/command/environment.js';
import { keyVariables, providers } from '../../src/models/provider-table.js';
import { secretValues, secretVariables } from '../../src/secrets/redactor.js';

/** Real names, with what stands in them. */
const SECRET: Readonly<Record<string, string>> = {
  OLLAMA_API_KEY: 'a',
  OPENROUTER_API_KEY: 'a',
  MISTRAL_API_KEY: 'a',
  AZURE_OPENAI_API_KEY: 'a',
  CLAUDE_CODE_OAUTH_TOKEN: 'a',
  ANTHROPIC_AUTH_TOKEN: 'a',
  AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'a',
  AWS_SESSION_TOKEN: 'a',
  AZURE_CLIENT_SECRET: 'a',
  AZURE_STORAGE_CONNECTION_STRING_KEY: 'a',
  GOOGLE_APPLICATION_CREDENTIALS: '/etc/key.json',
  DIGITALOCEAN_ACCESS_TOKEN: 'a',
  CLOUDFLARE_API_TOKEN: 'a',
  HEROKU_API_KEY: 'a',
  GITHUB_TOKEN: 'a',
  GH_TOKEN: 'a',
  GH_ENTERPRISE_TOKEN: 'a',
  GITLAB_PAT: 'a',
  CI_JOB_TOKEN: 'a',
  BITBUCKET_APP_PASSWORD: 'a',
  NPM_TOKEN: 'a',
  NODE_AUTH_TOKEN: 'a',
  'npm_config_//registry.example/:_authToken': 'a',
  TWINE_PASSWORD: 'a',
  CARGO_REGISTRY_TOKEN: 'a',
  CARGO_REGISTRIES_OWN_TOKEN: 'a',
  UV_PUBLISH_TOKEN: 'a',
  GEM_HOST_API_KEY: 'a',
  DOCKER_AUTH_CONFIG: '{}',
  COMPOSER_AUTH: '{}',
  VAULT_TOKEN: 'a',
  PGPASSWORD: 'a',
  MYSQL_PWD: 'a',
  MYSQL_ROOT_PASSWORD: 'a',
  REDISCLI_AUTH: 'a',
  SMTP_PASS: 'a',
  DB_PASSWORD: 'a',
  JWT_SECRET: 'a',
  SECRET_KEY_BASE: 'a',
  DJANGO_SECRET_KEY: 'a',
  STRIPE_KEY: 'a',
  SSHPASS: 'a',
  SSH_ASKPASS_PASSWORD: 'a',
  COOKIECUTTER_API_TOKEN: 'a',
  SSH_AUTH_SOCK: '/run/agent',
  GPG_PASSPHRASE: 'a',
  SESSION_COOKIE: 'a',
  KUBECONFIG: '/etc/kube',
  DATABASE_URL: 'postgres://me:hunter2@db.example/app',
  MONGO_URI: 'mongodb+srv://me:hunter2@db.example',
  PIP_INDEX_URL: 'https://me:hunter2@pypi.example/simple',
  UV_INDEX_URL: 'https://0123456789abcdef0123@pypi.example/simple',
  SONAR_URL: 'https://0123456789abcdef0123:@sonar.example',
  CLONE_URL: 'https://0123456789abcdef0123:x-oauth-basic@github.com/a/b',
  REPO_URL: 'https://ghp_0123456789abcdefghij0123456789abcdef:any@github.com/a/b',
  WEBHOOK: 'https://hooks.example/in?room=2&access-token=b%2Fc#top',
  GOPROXY: 'https://proxy.example,https://me:hunter2@other.example',
  HARMLESS_LOOKING: 'ghp_0123456789abcdefghij0123456789abcdef',
  DEPLOY: '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----',
};

const HARMLESS: Readonly<Record<string, string>> = {
  PATH: '/usr/bin:/bin',
  HOME: '/me',
  PWD: '/w',
  OLDPWD: '/w',
  INIT_CWD: '/w',
  LANG: 'C.UTF-8',
  NODE_OPTIONS: '--max-old-space-size=4096',
  NODE_ENV: 'test',
  MAX_TOKENS: '4096',
  ANTHROPIC_MAX_TOKENS: '4096',
  MAX_THINKING_TOKENS: '1',
  TOKENIZERS_PARALLELISM: 'false',
  SSH_ASKPASS: '/usr/bin/ask',
  SSH_ASKPASS_REQUIRE: 'never',
  GIT_ASKPASS: '/usr/bin/ask',
  GPG_KEY: 'E3FF2839C048B25C084DEBE9B26995E310250568',
  PUBLIC_KEY: 'a',
  PASSWORD_STORE_DIR: '/store',
  SECRET_NAME: 'of-a-secret',
  TOKEN_TTL: '3600',
  AUTH_URL: 'https://auth.example/',
  SEARCH_URL: 'https://search.example/?page=2&max_tokens=4096#key',
  API_KEY_FILE: '/etc/key',
  ANTHROPIC_BASE_URL: 'https://api.example',
  XDG_SESSION_ID: '3',
  XDG_ACTIVATION_TOKEN: 'a',
  DATABASE_URL_PLAIN: 'postgres://db.example/app',
  HTTPS_PROXY: 'http://me:hunter2@proxy.example:3128',
  ALL_PROXY: 'me:hunter2@proxy.example:3128',
  REMOTE: 'https://me@git.example/project',
  OTHER_REMOTE: 'https://me:@git.example/project',
  KEYBOARD_LAYOUT: 'de',
  COLORTERM: 'truecolor',
  DISPLAY: ':0',
  MONKEY: 'patch',
  COMPASS: 'north',
  BYPASS: '1',
};

test('commands inherit no secret by name or by value, and everything else', () => {
  const all = { ...SECRET, ...HARMLESS };
  assert.deepEqual([...secretVariables(all)].sort(), Object.keys(SECRET).sort());
});

test('the keys of every provider in the table are secrets', () => {
  for (const { keyVariables: own } of providers)
    for (const name of own) assert.ok(keyVariables.includes(name));
  const environment = Object.fromEntries(keyVariables.map((name) => [name, 'a']));
  assert.deepEqual(secretVariables(environment), keyVariables);
});

test('the secret of a variable is its value, the password of an address, and nothing of a socket', () => {
  const values = secretValues({
    ...SECRET,
    ...HARMLESS,
    PIP_INDEX_URL: 'https://me:two%20words@pypi.example/simple',
  });
  const of = (name: string) => values.filter((one) => one.name === name).map(({ value }) => value);
  assert.deepEqual(of('DATABASE_URL'), ['hunter2']);
  assert.deepEqual(of('PIP_INDEX_URL'), ['two%20words', 'two words']);
  for (const name of ['HTTPS_PROXY', 'ALL_PROXY', 'GOPROXY'])
    assert.deepEqual(of(name), ['hunter2'], name);
  for (const name of ['UV_INDEX_URL', 'SONAR_URL', 'CLONE_URL'])
    assert.ok(of(name).includes('0123456789abcdef0123'), name);
  assert.ok(of('REPO_URL').includes('ghp_0123456789abcdefghij0123456789abcdef'));
  assert.deepEqual(of('WEBHOOK'), ['b%2Fc', 'b/c']);
  assert.deepEqual(of('SSH_AUTH_SOCK'), []);
  assert.deepEqual(of('GOOGLE_APPLICATION_CREDENTIALS'), []);
  assert.deepEqual(of('GITHUB_TOKEN'), ['a']);
  assert.deepEqual(of('PATH'), []);
});

test('a fenced command gets no address with a token, and what the user passes by name as it is', () => {
  const token = 'https://0123456789abcdef0123@registry.example';
  const given = { CI: 'false', EDITOR: 'vim', npm_config_registry: token, all_proxy: 'a:b@proxy' };
  const fenced = fencedEnvironment(given, ['CI'], true);
  assert.deepEqual(
    [fenced.CI, fenced.EDITOR, openEnvironment(given, []).CI],
    ['false', 'true', '1'],
  );
  assert.equal(fenced.npm_config_registry ?? fenced.all_proxy, undefined);
  const passed = fencedEnvironment(given, ['npm_config_registry'], true);
  assert.equal(passed.npm_config_registry, token);
});
