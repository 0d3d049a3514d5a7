import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { workspacePackages } from '../../../../scripts/workspace-packages.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';

/**
 * A new provider takes four source files: its row, its models, its adapter and the adapter's line. The program is built
 * from sources with these four changes, and everything must know the provider.
 */

const root = fileURLToPath(new URL('../../../..', import.meta.url));

const ROW = `
  moon: {
    title: 'The Moon',
    wire: 'Moonlight',
    documentation: 'https://moon.example/api',
    defaultModel: 'full-1',
    modelNames: /^full-/,
    key: 'required',
    keyVariables: ['MOON_TICKET'],
    keysFrom: 'https://moon.example',
    urlVariable: 'MOON_ADDRESS',
    urlForm: 'url',
    address: 'https://api.moon.example',
    factsFrom: 'catalogue',
    ownServer: null,
  },
`;

const MODELS = `
const moon: Table = {
  source: 'moon.example, 2026-11-23',
  effortLevels: ['low', 'high'],
  rows: { 'full-1': row(64_000, 4_000, 'onDemand', [1, 2, 0.5, 1]) },
};
`;

const ADAPTER = `
import type { Model } from '../../ports/model.js';
import type { AdapterOptions } from './provider-adapter.js';

export const moonModel = ({ modelId, name, facts, baseUrl, apiKey = '', fetch }: AdapterOptions): Model => ({
  id: modelId,
  facts,
  canAbort: 'yes',
  async *stream() {
    const answer = await fetch!(\`\${baseUrl}/shine/\${name}\`, { method: 'POST', headers: { ticket: apiKey }, body: '{}' });
    const { text } = (await answer.json()) as { text: string };
    yield { type: 'text', text };
    const usage = { inputTokens: 1_000_000, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
    yield { type: 'completed', parts: [{ type: 'text', text }], stopReason: 'end', usage };
  },
});
`;

const rowFile = 'packages/agent/src/models/provider-table.ts';
const modelsFile = 'packages/agent/src/models/catalogue.ts';
const linesFile = 'packages/agent/src/models/choose-model.ts';
const adapterFile = 'packages/agent/src/models/providers/moon.ts';

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

/** `$&` in `to` stands for what was found. */
const replaceOnce = (text: string, from: string | RegExp, to: string): string => {
  const replaced = text.replace(from, to);
  assert.notEqual(replaced, text, `the place is gone: ${from}`);
  return replaced;
};

const planted: Readonly<Record<string, string>> = {
  [rowFile]: replaceOnce(read(rowFile), 'const rows = {\n', `const rows = {${ROW}`),
  [modelsFile]: replaceOnce(read(modelsFile), /\nconst catalogue: .* = \{ /, `${MODELS}$&moon, `),
  [linesFile]: `import { moonModel } from './moon.js';\n${replaceOnce(read(linesFile), /const adapters: [\s\S]*?\n(?=};)/, '$&  Moonlight: moonModel,\n')}`,
  [adapterFile]: ADAPTER,
};

const plant: Plugin = {
  name: 'plant',
  setup(builder) {
    builder.onResolve({ filter: /^\.\/moon\.js$/ }, () => ({ path: path.join(root, adapterFile) }));
    builder.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
      const contents = planted[path.relative(root, file)];
      return contents === undefined
        ? undefined
        : { contents, loader: 'ts', resolveDir: path.dirname(file) };
    });
  },
};

const PROBE = `
export { manualText } from './scripts/manual-page.js';
export { fillModelsPage } from './scripts/models-page.js';
export { knownModels } from './packages/agent/src/models/catalogue.js';
export { secretVariables } from './packages/agent/src/secrets/redactor.js';
`;

type Probe = {
  manualText(): string;
  fillModelsPage(page: string): string;
  knownModels(): readonly string[];
  secretVariables(environment: Readonly<Record<string, string>>): readonly string[];
};

const folder = temporaryFolder({ after }, 'provider');
const program = path.join(folder, 'dist', 'main.js');
const workspace = path.join(folder, 'work');
let probe: Probe;

before(async () => {
  mkdirSync(workspace);
  for (const name of ['node_modules', 'package.json'])
    symlinkSync(path.join(root, name), path.join(folder, name));
  await build({
    absWorkingDir: root,
    entryPoints: { main: 'packages/pawl/src/main.ts', probe: 'probe' },
    outdir: path.join(folder, 'dist'),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
    plugins: [
      workspacePackages(root),
      {
        name: 'probe',
        setup(builder) {
          builder.onResolve({ filter: /^probe$/ }, () => ({ path: path.join(root, 'probe.ts') }));
          builder.onLoad({ filter: /[/\\]probe\.ts$/ }, ({ path: file }) =>
            file === path.join(root, 'probe.ts')
              ? { contents: PROBE, loader: 'ts', resolveDir: root }
              : undefined,
          );
        },
      },
      plant,
    ],
  });
  probe = (await import(pathToFileURL(path.join(folder, 'dist', 'probe.js')).href)) as Probe; // what PROBE exports
});

/** Runs the program and gives everything that it prints. */
const run = async (words: readonly string[], variables: Readonly<Record<string, string>> = {}) => {
  const environment = { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', ...variables };
  const options = { cwd: workspace, env: environment, timeout: 60_000 };
  const ended = promisify(execFile)(process.execPath, [program, ...words], options);
  ended.child.stdin?.end();
  return ended.then(
    ({ stdout, stderr }) => stdout + stderr,
    ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => stdout + stderr, // execFile rejects with both
  );
};

const serveMoon = async () => {
  const seen: (readonly [url: string | undefined, ticket: unknown])[] = [];
  const server = http.createServer(({ url, headers }, out) => {
    seen.push([url, headers.ticket]);
    out.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"It shines."}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a server that listens at a port
  return { seen, url: `http://127.0.0.1:${port}`, close: () => server.close() };
};

test('its model answers, and what it costs is known from its prices', async (context) => {
  const moon = await serveMoon();
  context.after(moon.close);
  const variables = { MOON_TICKET: 'ticket-1', MOON_ADDRESS: moon.url };
  const printed = await run(
    ['-p', 'Shine.', '--json', '--model', 'moon/full-1', '--sandbox', 'off'],
    variables,
  );
  assert.deepEqual(moon.seen, [['/shine/full-1', 'ticket-1']], printed);
  assert.match(printed, /It shines\./);
  assert.match(printed, /"costUsd":1\b/);
});

test('its models are in the list, and its names suggest it', async () => {
  assert.ok(probe.knownModels().includes('moon/full-1'));
  assert.match(
    await run(['-p', 'x', '--model', 'full-2']),
    /There are moon, .*Did you mean moon\/full-2\?/,
  );
  assert.match(await run(['-p', 'x', '--model', 'moon']), /moon\/NAME, e\.g\. moon\/full-1/);
});

test('doctor says how to get a key for it', async () => {
  assert.match(
    await run(['doctor'], { PAWL_MODEL: 'moon/full-1' }),
    /No API key found for moon\/full-1[\s\S]*MOON_TICKET to a key from https:\/\/moon\.example/,
  );
  assert.match(
    await run(['doctor'], { PAWL_MODEL: 'moon/full-9', MOON_TICKET: 'a-b' }),
    /full-9 is not in the catalogue/,
  );
});

test('its settings, help, completion, manual page and document are made', async () => {
  assert.match(
    await run(['config'], { MOON_ADDRESS: 'https://moon.example' }),
    /providers\.moon\.base_url.*https:\/\/moon\.example/,
  );
  assert.match(await run(['--help']), /First: set [\s\S]*MOON_TICKET/);
  assert.match(await run(['completion', 'bash']), /moon\//);
  assert.match(probe.manualText(), /MOON_TICKET\n/);
  assert.match(
    probe.fillModelsPage(read('docs/set-up/models.md')),
    /^\| `moon\/NAME` \| \[Moonlight\]/m,
  );
});

test('its key is a secret, whatever its variable is called', () => {
  assert.deepEqual(
    probe.secretVariables({ MOON_TICKET: 'a', MOON_ADDRESS: 'b', SUN_TICKET: 'c' }),
    ['MOON_TICKET'],
  );
});
