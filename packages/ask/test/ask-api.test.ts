import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import {
  answers,
  askAbout,
  askedOf,
  environments,
  makeFolder,
  memoryRuns,
  notingModel,
  program,
} from '../../../test/kit/ask/ask-stage.js';
import { createAsker } from '../src/create-asker.js';
import type { EnvironmentKind } from '../src/ports.js';
import { EnvironmentUnavailable } from '../src/run/eager-values.js';

/** Code mode as a library: what is chosen, what is refused, what a run says of itself. */

const absent = (kind: EnvironmentKind): EnvironmentKind => ({
  ...kind,
  probe: async () => 'it is not here',
});
const script = { replies: [{ text: answers('context') }] };

test('a run says what it is set to; defaults are those of code mode', async (context) => {
  const { run } = await askAbout(context, 'some text', { script });
  const { settings } = run;
  assert.deepEqual(
    [settings.environment, settings.depthMax, settings.iterationsMax],
    ['quickjs', 1, 30],
  );
  assert.deepEqual(settings.inputs, [{ name: 'input.txt', type: 'text', characters: 9 }]);
  assert.equal(settings.files.length, 1);
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'answered' && outcome.answer === 'some text');
});

test('sub-calls go to the sub-model, and the root to its own', async (context) => {
  const folder = await makeFolder(context);
  const model = notingModel(
    { replies: [{ text: program('a = llm_query("leaf")') }, { text: answers('a') }] },
    'scripted/root',
  );
  const subModel = notingModel(
    { replies: [], rules: [{ when: '^leaf', text: 'small' }] },
    'scripted/leaf',
  );
  const asker = createAsker({ model, subModel, journals: memoryRuns(), environments });
  const run = await asker.ask({ question: 'q', contexts: [], workspace: folder });
  const outcome = await run.outcome;
  await run.close();
  assert.ok(outcome.status === 'answered' && outcome.answer === 'small');
  assert.deepEqual([model.requests.length, askedOf(subModel)], [2, ['leaf']]);
});

test('where the environment does not work no other one takes its place', async (context) => {
  const folder = await makeFolder(context);
  const parts = { model: notingModel(script), journals: memoryRuns() };
  for (const [name, kind] of Object.entries(environments)) {
    const asker = createAsker({
      ...parts,
      environments: { ...environments, [name]: absent(kind) },
    });
    const named = name === 'python' ? ({ environment: name } as const) : {}; // quickjs: the default
    await assert.rejects(
      asker.ask({ question: 'q', contexts: [], workspace: folder, ...named }),
      (fault) =>
        fault instanceof EnvironmentUnavailable &&
        fault.message.endsWith(`${name} can't be used here: it is not here`),
    );
  }
});

test('a limit in dollars is refused without prices, in a new run and in one that goes on', async (context) => {
  const journals = memoryRuns();
  const limits = { usd: 1, tokens: 0, timeMs: 0 };
  const unpriced = notingModel({ ...script, facts: { prices: null } });
  const folder = await makeFolder(context);
  const asker = createAsker({ model: unpriced, journals, environments });
  const asking = { question: 'q', contexts: [], workspace: folder, settings: { limits } };
  await assert.rejects(asker.ask(asking), /the price of scripted\/script is not known/);
  const priced = await askAbout(context, 'x', {
    journals,
    script,
    options: { settings: { limits } },
  });
  await priced.run.close();
  await assert.rejects(asker.resume(priced.run.id), /is not known/);
  const again = await createAsker({ model: notingModel(script), journals, environments }).resume(
    priced.run.id,
  );
  await again.outcome;
  await again.close();
  const ended = await asker.resume(priced.run.id); // is only read, and asks no model
  assert.equal((await ended.outcome).status, 'answered');
  await ended.close();
});

test('a run that can not go on leaves its journal free', async (context) => {
  const { run, journals } = await askAbout(context, 'x', {
    script: { replies: [{ text: program('1'), delayMs: 5_000 }] },
  });
  await run.close();
  const [file] = run.settings.files;
  assert.ok(file !== undefined && file.path !== null);
  await writeFile(file.path, 'y');
  const asker = createAsker({ model: notingModel(script), journals, environments });
  await assert.rejects(asker.resume(run.id), { name: 'InputError', kind: 'changed' });
  await writeFile(file.path, 'x');
  const quickjs = absent(environments.quickjs);
  const without = createAsker({
    model: notingModel(script),
    journals,
    environments: { ...environments, quickjs },
  });
  await assert.rejects(without.resume(run.id), EnvironmentUnavailable);
  const again = await asker.resume(run.id);
  const outcome = await again.outcome;
  assert.ok(outcome.status === 'answered' && outcome.answer === 'x');
  await again.close();
});

test('a faulty input is reported before anything is written', async (context) => {
  const folder = await makeFolder(context);
  const journals = memoryRuns();
  const asker = createAsker({ model: notingModel(script), journals, environments });
  const contexts = [{ path: path.join(folder, 'none') }];
  await assert.rejects(asker.ask({ question: 'q', contexts, workspace: folder }), {
    kind: 'notFound',
  });
  for await (const info of journals.list()) assert.fail(`${info.sessionId} was made`);
});

test('a program names the model of a call, by its whole name or without the provider; others are refused', async (context) => {
  const folder = await makeFolder(context);
  const rules = (text: string) => ({ replies: [], rules: [{ when: '^leaf', text }] });
  const model = notingModel(
    {
      replies: [
        {
          text: program(
            'a = [llm_query("leaf"), llm_query("leaf", "other"), llm_query("leaf", "none")]',
          ),
        },
        { text: answers('a.join("|")') },
      ],
    },
    'scripted/root',
  );
  const subModel = notingModel(rules('usual'), 'scripted/leaf');
  const models = [notingModel(rules('named'), 'scripted/other')];
  const asker = createAsker({ model, subModel, models, journals: memoryRuns(), environments });
  const run = await asker.ask({ question: 'q', contexts: [], workspace: folder });
  const outcome = await run.outcome;
  await run.close();
  assert.ok(outcome.status === 'answered');
  assert.match(
    outcome.answer,
    /^usual\|named\|Error: there is no model none here: name one of scripted\/root/,
  );
  assert.match(
    model.requests[0]?.instructions ?? '',
    /scripted\/root, scripted\/leaf, scripted\/other/,
  );
});
