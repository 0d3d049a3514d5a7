import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDeep } from '../../../../test/tier.js';
import { quickjs } from '../../src/environments/quickjs/quickjs.js';
import { createEnvironment } from '../../src/environments/restartable-environment.js';
import type { Environment } from '../../src/ports.js';
import { conforms, runCell, withEnvironment } from './conformance.js';

conforms(quickjs);

describe('quickjs alone', () => {
  it('tells at once of a promise that nothing can settle', () =>
    withEnvironment(quickjs, [], async (environment) => {
      const report = await runCell(environment, 'let a = 1\nawait new Promise(() => {})');
      assert.equal(report.status, 'raised');
      assert.match(report.stderr, /a promise that nothing can settle/);
    }));

  it('says which name of ours the code has made impossible to restore', () =>
    withEnvironment(quickjs, [], async (environment) => {
      const fix =
        'Object.defineProperty(globalThis, "llm_query", { get: () => 1, configurable: false })';
      assert.equal((await runCell(environment, fix)).stderr, '');
      assert.match(
        (await runCell(environment, 'print(1)')).stderr,
        /made llm_query impossible to restore/,
      );
    }));

  /** Each runs a core until the environment gives up. */
  const endless: readonly (readonly [string, (environment: Environment) => Promise<void>])[] = [
    [
      'is replaced where the code makes the report of its own cell endless',
      async (environment) => {
        const report = await runCell(
          environment,
          'answer = { get content() { for (;;); }, ready: true }',
        );
        assert.deepEqual(
          [report.status, report.variablesLost, report.answer],
          ['died', 'yes', null],
        );
        assert.equal((await runCell(environment, 'print(answer.ready)')).stdout, 'false\n');
      },
    ],
    [
      'has no text of a variable that never ends to become one',
      async (environment) => {
        await runCell(environment, 'endless = { toJSON() { for (;;); } }; kept = 1');
        assert.equal(await environment.read('endless'), null);
        assert.equal(await environment.read('kept'), '1');
      },
    ],
  ];
  for (const [title, look] of isDeep ? endless : [])
    it(title, () => withEnvironment(quickjs, [], look));

  it('makes no call for code that runs while its report is written', () =>
    withEnvironment(quickjs, [], async (environment) => {
      const code =
        'answer = { get content() { try { return llm_query("x") } catch (e) { return e.message } }, ready: true }';
      const report = await runCell(environment, code, { answer: () => assert.fail('nobody asks') });
      assert.match(report.answer ?? '', /no call can be made/);
    }));
});

it('an environment that is closed while its process is replaced refuses the work', async () => {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let starts = 0;
  const environment = await createEnvironment('It', async () => {
    starts += 1;
    if (starts === 2) await begun;
    return {
      run: () => assert.fail('it was closed'),
      read: () => assert.fail('it was closed'),
      hasEnded: () => true,
      end: async () => undefined,
    };
  });
  const read = environment.read('x');
  await environment.close();
  begin();
  await assert.rejects(read, /this environment is closed/);
});
