import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Needs } from '../../src/policy/judged-call.js';
import { type Preset, presetRules } from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';
import { EVERYDAY, EVERYDAY_TEXT } from './everyday/commands.js';

/** Of the file as it was chosen. A change of it is a tuned measure. */
const CHOSEN = '7756500063b9f53e09b0292a1e93e1839ede14d9735ef49ac3c12450ad90ccf3';

test('the everyday commands are the thousand that were chosen before the rules were written', () => {
  assert.equal(createHash('sha256').update(EVERYDAY_TEXT).digest('hex'), CHOSEN);
  assert.equal(EVERYDAY.commands.length, 1000);
  assert.equal(new Set(EVERYDAY.commands).size, 1000);
});

test('each everyday command starts with one of the programs, and bash can read it', () => {
  const programs = new Set(EVERYDAY.programs);
  for (const command of EVERYDAY.commands) {
    const first = command.split(/\s+/).find((word) => !/^[A-Za-z_]\w*=/.test(word));
    assert.ok(programs.has(first ?? ''), command);
  }
  // Each as a function's body: one bash reads them all, and a fault names its line.
  const functions = EVERYDAY.commands
    .map((command, index) => `f${index}() {\n${command}\n}`)
    .join('\n');
  const { status, stderr } = spawnSync('bash', ['-n'], {
    input: `${functions}\n`,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});

/** How many of a thousand are asked about or denied. */
const questionsOf = async (
  preset: Preset,
  needsOf: (command: string) => Needs | undefined,
): Promise<number> => {
  const settings = {
    rules: presetRules[preset],
    preset,
    sandbox: 'workspace',
    workspace: '/w',
    writtenRules: [],
  } as const;
  let count = 0;
  for (const command of EVERYDAY.commands) {
    const needs = needsOf(command);
    const explained = await explainCommand(command, settings, {
      find: (name) => `/usr/bin/${name}`,
      ...(needs === undefined ? {} : { needs }),
    });
    if (explained.decision !== 'allow') count++;
  }
  return count;
};

/** What reaches servers, by its words: installing, fetching, pushing. What is local says so in its address. */
const REACHES =
  /\b(?:npm (?:ci|i|install|audit|publish|view|outdated|update)|(?:pnpm|yarn|bun) (?:add|install|dlx)|npx (?!tsc|eslint|prettier|jest|vitest|playwright)[@a-z]|pip3? install|uv (?:add|pip|sync)|poetry (?:add|install)|git (?:push|pull|fetch|clone)|gh |cargo (?:install|audit|add|update)|go (?:get|install|mod download)|docker(?: compose|-compose)? (?:pull|push|build|up|login)|composer (?:install|require|audit|update)|bundle (?:install|update)|dotnet (?:add|restore)|wget |curl (?![^|]*(?:localhost|127\.0\.0\.1))|ssh |scp |rsync [^ ]*:)/;

test('at most 5 % of everyday commands ask under auto, and 15 % under careful', async (context) => {
  const inside = (): undefined => undefined;
  const [auto, careful] = [await questionsOf('auto', inside), await questionsOf('careful', inside)];
  const needs = (command: string): Needs | undefined =>
    REACHES.test(command) ? 'network' : undefined;
  const [autoNet, carefulNet] = [
    await questionsOf('auto', needs),
    await questionsOf('careful', needs),
  ];
  context.diagnostic(`asked of 1000: auto ${auto}, careful ${careful}`);
  context.diagnostic(
    `where a call says that it needs the network: auto ${autoNet}, careful ${carefulNet}`,
  );
  assert.ok(auto <= 50, `${auto} under auto`);
  assert.ok(careful <= 150, `${careful} under careful`);
});
