import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { schemaText } from '../../../../scripts/json-schema.js';
import { commands } from '../../src/commands/command-list.js';
import { recordSchema } from '../../src/headless/record-schema.js';
import { exitCodes } from '../../src/process/exit-codes.js';

const read = (name: string): string =>
  readFileSync(new URL(`../../../../docs/use/${name}`, import.meta.url), 'utf8');

test('docs/use/headless.md lists exactly the exit codes there are, in their order', () => {
  const text = read('headless.md');
  const section = text.slice(text.indexOf('## Exit codes'), text.indexOf('## Limits'));
  const listed = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(listed, Object.values(exitCodes));
});

test('docs/use/command-line.md leads there and has no list of its own', () => {
  const text = read('command-line.md');
  assert.match(text, /\(headless\.md#exit-codes\)/);
  assert.doesNotMatch(text, /^\| \d+ \|/m);
});

test('the published JSON Schema has each record, and lets fields be added', () => {
  const schema = JSON.parse(schemaText());
  assert.equal(schema.oneOf.length, recordSchema.options.length);
  assert.ok(recordSchema.options.length > 10);
  assert.ok(!schemaText().includes('"additionalProperties": false'));
});

test('each command with its arguments that a program or the page names is there', () => {
  const packages = new URL('../../../', import.meta.url);
  const sources = readdirSync(packages, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /^[a-z]+\/src\/.*\.ts$/.test(name),
  );
  const named = sources.flatMap((name) =>
    [...readFileSync(new URL(name, packages), 'utf8').matchAll(/pawl ([a-z]+) \$\{/g)].map(
      ([, command]) => command ?? '',
    ),
  );
  assert.ok(named.length > 40, 'the control: most messages name one');
  const known = new Set(commands.map(({ name }) => name));
  assert.deepEqual(
    named.filter((command) => !known.has(command) && !PROSE.includes(command)),
    [],
  );
});

/** "pawl changed …" is a sentence. */
const PROSE = ['changed'];
