import '../own-process.js';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { startAnthropicServer } from '../servers/anthropic.js';
import { temporaryFolder } from '../temporary-folder.js';

/** The programs in the documents run to their end, as a stranger runs them: none of them waits for somebody who is not there. */

const root = fileURLToPath(new URL('../..', import.meta.url));

const documents = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => path.join('docs', file));

/** Programs by where they stand. A model that one only declares is a scripted one here. */
const programs = ['README.md', ...documents].flatMap((document) =>
  [
    ...readFileSync(path.join(root, document), 'utf8').matchAll(/^```ts\n(import [\s\S]*?)^```$/gm),
  ].map(({ 1: program = '' }, index) => ({
    name: `${document.replace(/\W/g, '-')}-${index}`,
    program: program.replace(
      'declare const model: Model;',
      `import { scriptedModel } from 'pawl/testing';\nconst model = scriptedModel({ replies: [] });`,
    ),
  })),
);

/** The tool of the library's page is called in a session with the default preset, and without a callback. */
const CALL = `
import { openSession } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';
export const useTools = async (tools) => {
  const calls = [{ tool: 'weather', input: { town: 'Bern' } }];
  const model = scriptedModel({ replies: [{ calls }, { text: 'No weather today.' }] });
  const session = await openSession({ model, tools, journals: memoryJournals(), workspace: '.' });
  console.log(JSON.stringify((await session.prompt('the weather?')).reason));
  await session.close();
};`;

test('each program of the documents ends by itself', async (context) => {
  const server = await startAnthropicServer({
    replies: Array.from({ length: 40 }, () => ({
      type: 'message' as const,
      parts: [{ type: 'text' as const, text: 'Fine.' }],
    })),
  });
  context.after(() => server.close());
  const project = temporaryFolder(context, 'documents');
  symlinkSync(path.join(root, 'node_modules'), path.join(project, 'node_modules'));
  writeFileSync(path.join(project, 'server.log'), 'error in request 7\n');
  writeFileSync(path.join(project, 'call.mjs'), CALL);
  for (const { name, program } of programs) {
    const { code } = await transform(program, { loader: 'ts' });
    writeFileSync(path.join(project, `${name}.mjs`), code);
  }
  const names = JSON.stringify(programs.map(({ name }) => name));
  writeFileSync(
    path.join(project, 'main.mjs'),
    `import { useTools } from './call.mjs';
for (const name of ${names}) {
  const { tools, session } = await import('./' + name + '.mjs');
  if (tools !== undefined) await useTools(tools);
  await session?.close();
  console.log('ended ' + name);
}`,
  );
  const child = spawn(process.execPath, ['main.mjs'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: temporaryFolder(context, 'home'),
      ANTHROPIC_API_KEY: 'key',
      ANTHROPIC_BASE_URL: server.url,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [status] = await once(child, 'close');
  const ended = programs.filter(({ name }) => output.includes(`ended ${name}\n`));
  assert.deepEqual(
    ended.map(({ name }) => name),
    programs.map(({ name }) => name),
    output,
  );
  assert.equal(status, 0, output);
  assert.match(output, /"unapproved":\[\{"tool":"weather",.*"hosts":\["weather\.example"\]/);
});
