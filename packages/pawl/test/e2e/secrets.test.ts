import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeep } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, runPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Secrets of the environment that stand in files and outputs go nowhere. */

const COUNT = isDeep ? 500 : 100;
const KINDS = ['TOKEN', 'SECRET', 'PASSWORD', 'API_KEY', 'PRIVATE_KEY'];

const secretOf = (index: number): string =>
  createHash('sha256')
    .update(`pawl ${index}`)
    .digest(index % 2 === 0 ? 'base64' : 'hex')
    .slice(0, 12 + (index % 30));

const SECRETS = Array.from({ length: COUNT }, (_, index) => secretOf(index));
const VARIABLES = Object.fromEntries(
  SECRETS.map((value, index) =>
    index % 10 === 9
      ? [`SERVICE_${index}_ADDRESS`, `postgres://me:${encodeURIComponent(value)}@db.example/app`]
      : [`SERVICE_${index}_${KINDS[index % KINDS.length]}`, value],
  ),
);

const written = (value: string, index: number): string => {
  const forms = [
    value,
    JSON.stringify({ value }),
    encodeURIComponent(value),
    Buffer.from(`user:${value}`).toString('base64'),
    Buffer.from(value).toString('hex'),
  ];
  return `line ${index}: ${forms[index % forms.length]} end`;
};

const FILE = `${SECRETS.map(written).join('\n')}\n`;

/** Any twelve characters of a secret, as it is or encoded: what is left of one that was replaced in part. */
const leftIn = (text: string): readonly string[] =>
  SECRETS.flatMap((value) => {
    const forms = [value, Buffer.from(value).toString('hex'), encodeURIComponent(value)];
    return forms.some((form) => text.includes(form.slice(0, 12)) || text.includes(form.slice(-12)))
      ? [value]
      : [];
  });

const storedIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');

const CALLS = [
  call('c1', 'read', { path: 'secrets.txt' }),
  call('c2', 'bash', { command: 'cat secrets.txt; cat secrets.txt secrets.txt >&2; exit 3' }),
  call('c3', 'bash', {
    command: 'while IFS= read -rn 7 piece; do printf %s "$piece"; done < secrets.txt',
  }),
  call('c4', 'search', { pattern: 'line' }),
  call('c5', 'edit', { path: 'secrets.txt', edits: [{ oldText: 'line 7:', newText: 'row 7:' }] }),
  call('c6', 'bash', { command: 'cat secrets.txt; sleep 30', background: true }),
];

const MORE = [
  call('c7', 'edit', {
    path: 'secrets.txt',
    edits: [{ oldText: 'line 0: [secret:$SERVICE_0_TOKEN] end', newText: 'x' }],
  }),
  call('c8', 'write', { path: 'new.txt', content: 'key = [secret:$SERVICE_0_TOKEN]\n' }),
  call('c9', 'bash', { command: 'echo $SERVICE_0_TOKEN; env | grep SERVICE | head -3; echo over' }),
];

test(`${COUNT} secrets in files and outputs: none is journaled, kept, sent or shown`, async (context) => {
  const place = await makeServed(context, [message(...CALLS), message(...MORE), done], VARIABLES);
  writeFileSync(join(place.workspace, 'secrets.txt'), FILE);
  assert.equal(
    leftIn(FILE.split('\n')[0] ?? '').length,
    1,
    'the measure sees a secret that is there',
  );
  const ended = await runPawl(place, [
    '-p',
    'go',
    '--json',
    '--sandbox',
    'off',
    '--hooks',
    'never',
  ]);
  expectCode(ended, 0);
  expectValid(place.server);
  const sent = JSON.stringify(place.server.requests);
  assert.deepEqual(leftIn(sent), [], 'sent');
  assert.deepEqual(leftIn(storedIn(place.state)), [], 'stored');
  assert.deepEqual(leftIn(ended.stdout + ended.stderr), [], 'shown');
  assert.match(sent, /secret values replaced: \$SERVICE_0_TOKEN/);
});

test('a placeholder is never written into a file, and the model reads why', async (context) => {
  const place = await makeServed(context, [message(...MORE), done], VARIABLES);
  writeFileSync(join(place.workspace, 'secrets.txt'), FILE);
  expectCode(await runInProcess(place, ['-p', 'go', '--sandbox', 'off', '--hooks', 'never']), 0);
  assert.equal(readFileSync(join(place.workspace, 'secrets.txt'), 'utf8'), FILE);
  assert.deepEqual(readdirSync(place.workspace), ['secrets.txt']);
  const refused = JSON.stringify(place.server.requests.at(-1)).match(
    /stands in results for a secret/g,
  );
  assert.ok((refused?.length ?? 0) >= 2);
});

test('the same without the variables: nobody knows the secrets, and all of them are sent and stored', async (context) => {
  const place = await makeServed(context, [message(...CALLS.slice(0, 2)), done]);
  writeFileSync(join(place.workspace, 'secrets.txt'), FILE);
  expectCode(
    await runInProcess(place, ['-p', 'go', '--json', '--sandbox', 'off', '--hooks', 'never']),
    0,
  );
  assert.ok(leftIn(JSON.stringify(place.server.requests)).length > COUNT / 2);
  assert.ok(leftIn(storedIn(place.state)).length > COUNT / 2);
});
