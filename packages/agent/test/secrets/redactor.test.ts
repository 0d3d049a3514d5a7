import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createCommandOutput } from '../../src/command/output.js';
import { createRedactor, isDistinctive, redactionNote } from '../../src/secrets/redactor.js';

const KEY = 'sk-ant-api03-Zq8+f/3xW~k9_T2$mN"7vB\\1';
const redactor = createRedactor([
  { name: 'KEY', value: KEY },
  { name: 'TOKEN', value: 'ghp_0123456789abcdefghij0123456789ABCDEF' },
  { name: 'SHORT', value: 'true' },
  {
    name: 'PEM',
    value:
      '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----',
  },
]);

/** Every way that a value is written down by accident. */
const WRITTEN: Readonly<Record<string, (value: string) => string>> = {
  itself: (value) => value,
  quoted: (value) => `"${value}"`,
  json: (value) => JSON.stringify({ key: value }),
  url: (value) => `https://a.example/?key=${encodeURIComponent(value)}&x=1`,
  'lower-case url': (value) =>
    encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase()),
  form: (value) => new URLSearchParams({ key: value }).toString(),
  base64: (value) => Buffer.from(value).toString('base64'),
  'base64 of a line': (value) => Buffer.from(`${value}\n`).toString('base64'),
  'base64 of a user and it': (value) => Buffer.from(`x-access-token:${value}`).toString('base64'),
  'base64 of text around it': (value) => Buffer.from(`a${value}bcd`).toString('base64'),
  base64url: (value) => Buffer.from(`ab${value}`).toString('base64url'),
  hex: (value) => Buffer.from(value).toString('hex'),
  HEX: (value) => Buffer.from(value).toString('hex').toUpperCase(),
  header: (value) => `Authorization: Bearer ${value}\r\n`,
  twice: (value) => value + value,
};

for (const [form, write] of Object.entries(WRITTEN))
  test(`a secret is found as ${form}`, () => {
    const written = write(KEY);
    const { text, count, names } = redactor.redact(`before ${written} behind`);
    assert.equal(count, form === 'twice' ? 2 : 1);
    assert.deepEqual(names, ['KEY']);
    assert.match(text, /^before .*\[secret:\$KEY\].* behind$/s);
    // Of an encoding that does not begin with the value, its neighbours' characters stay, and nothing of it.
    assert.ok(!text.includes(written.slice(8, 24)), text);
    assert.ok(!text.includes(KEY.slice(0, 8)), text);
  });

test('a secret whose end may begin another one is replaced as a whole, and the one behind it', () => {
  const values = ['Abcdef1!zz', 'Qwerty2?kk', 'zzQwerty2?kkXtail!9', 'kkX7Zx!q9'];
  const secrets = values.map((value, index) => ({ name: `S${index}`, value }));
  const stream = createRedactor(secrets).stream();
  const shown = stream.add('Abcdef1!zzQwerty2?kkX') + stream.add('.') + stream.end();
  assert.equal(shown, '[secret:$S0][secret:$S1]X.');
});

test('half a secret before a gap in live output is left out, and nothing before an ellipsis', () => {
  const half = KEY.slice(0, 20);
  const show = (first: string, second: string): string => {
    const stream = redactor.stream();
    let shown = '';
    const output = createCommandOutput((piece) => {
      shown += stream.add(piece);
    });
    for (const text of [first, second]) output.add(Buffer.from(text));
    output.finish();
    return shown + stream.end();
  };
  const long = ' behind'.repeat(2_000);
  const shown = show(`before ${half}`, long);
  assert.match(shown, /^before … behind/);
  assert.ok(shown.length < long.length);
  assert.match(show(`before ${half}`, `${'x'.repeat(9_000)} ${long}`), /^before …/);
  for (const rest of [' behind', '… behind'])
    assert.equal(show(`before ${half}`, rest), `before ${half}${rest}`);
});

test('a secret encoded over several lines is found in each of them', () => {
  const value = createHash('sha512').update('a').digest('base64');
  const long = createRedactor([{ name: 'LONG', value }]);
  const lines = (
    Buffer.from(value)
      .toString('base64')
      .match(/.{1,76}/g) ?? []
  ).join('\n');
  assert.equal(long.clean(lines).replaceAll('[secret:$LONG]', '').trim(), '');
});

test('a private key is found line by line', () => {
  assert.equal(redactor.clean('  MIIEvQIBADANBgkqhkiG9w0B\n'), '  [secret:$PEM]\n');
});

test('a secret that is split between pieces is found, and nothing waits for longer than it must', () => {
  const text = `a ${KEY} b ${Buffer.from(KEY).toString('base64')} c sk-ant-api03-Zq |`;
  for (let size = 1; size < 40; size++) {
    const stream = redactor.stream();
    let given = '';
    for (let at = 0; at < text.length; at += size) given += stream.add(text.slice(at, at + size));
    assert.ok(given.endsWith('|'), `held back: ${text.length - given.length}`);
    given += stream.end();
    assert.equal(given, 'a [secret:$KEY] b [secret:$KEY] c sk-ant-api03-Zq |');
  }
});

test('words, numbers and paths are no secrets, whatever variable they stand in', () => {
  const plain =
    'true 1234 development postgres password1 changeme /usr/bin/env localhost:8080 2024-01-01 12345678 node_modules my-app-name http://localhost:3000/path/to/page application/json 0000000000000000 qwertyuiop camelCaseName secret-token v1.2.3-beta.4'.split(
      ' ',
    );
  assert.deepEqual(plain.filter(isDistinctive), []);
  const real = `wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY hunter2x p@ssw0rd Tr0ub4dor&3 aB3dE6gH correcthorsebatterystaple f47ac10b-58cc-4372-a567-0e02b2c3d479 ${KEY}`;
  assert.deepEqual(
    real.split(' ').filter((value) => !isDistinctive(value)),
    [],
  );
});

test('a placeholder is known again, and no other text', () => {
  assert.equal(redactor.placeholderIn('a [secret:$TOKEN] b'), '[secret:$TOKEN]');
  assert.equal(redactor.placeholderIn('a [secret:$OTHER] b'), null);
  assert.equal(redactor.placeholderIn('a [secret:$SHORT] b'), null);
});

test('the note says how many and which', () => {
  assert.equal(redactionNote({ count: 1, names: ['A'] }), '[1 secret value replaced: $A]');
  assert.equal(
    redactionNote({ count: 3, names: ['A', 'B'] }),
    '[3 secret values replaced: $A, $B]',
  );
});

test('without secrets nothing is done, with many the time stays linear', () => {
  assert.ok(createRedactor([{ name: 'A', value: 'true' }]).isIdle);
  const many = createRedactor(
    Array.from({ length: 200 }, (_, index) => ({
      name: `S${index}`,
      value: createHash('sha256').update(String(index)).digest('base64'),
    })),
  );
  const text = 'const answer = await fetch(new URL(address), { headers });\n'.repeat(40_000);
  const before = process.cpuUsage();
  assert.equal(many.clean(text), text);
  const { user, system } = process.cpuUsage(before);
  const tookMs = (user + system) / 1_000;
  assert.ok(tookMs < 2_000, `${tookMs} ms for ${text.length} characters`);
});
