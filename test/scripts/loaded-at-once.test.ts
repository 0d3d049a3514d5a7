import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { build } from 'esbuild';
import { array, number, object, parse, string } from 'valibot';
import { prepareAsk, program } from '../../packages/pawl/test/e2e/asking.js';
import { expectCode, makePlace, root, start } from '../../packages/pawl/test/e2e/pawl.js';
import { buildLibrary, sourcesLoadedAtOnce } from '../../scripts/bundle.js';
import { workspacePackages } from '../../scripts/workspace-packages.js';

/** The agent is loaded without ask: ask comes with its first use. */

/** What stands in for ask until its first use. */
const FACES = ['packages/ask/src/index.ts', 'packages/ask/src/run/eager-values.ts'];

const ofAsk = (sources: readonly string[]): readonly string[] =>
  sources.filter((source) => source.startsWith('packages/ask/src/') && !FACES.includes(source));

const ASK = 'packages/ask/src/create-asker.ts';
const AGENT = 'packages/agent/src/machine/table.ts';
/** The packages of ACP and MCP, in a file of their own. */
const PROTOCOLS = 'protocols.cjs';

const coverageShape = object({
  result: array(
    object({
      url: string(),
      functions: array(
        object({ functionName: string(), ranges: array(object({ count: number() })) }),
      ),
    }),
  ),
});

/**
 * The sources of the built program that were loaded while it ran, and `protocols.cjs`, by the coverage that Node writes:
 * a source that loads late is a function of its name.
 */
const loadedWhile = async (
  context: TestContext,
  wordsFor: (place: ReturnType<typeof makePlace>) => readonly string[],
): Promise<readonly string[]> => {
  const place = makePlace(context);
  const coverage = path.join(place.folder, 'coverage');
  const covered = { ...place, environment: { ...place.environment, NODE_V8_COVERAGE: coverage } };
  const words = [path.join(root, 'packages/pawl/dist/cli.cjs'), ...wordsFor(place)];
  expectCode(await start(covered, process.execPath, words).ended, 0);
  const files = readdirSync(coverage).flatMap(
    (file) =>
      parse(coverageShape, JSON.parse(readFileSync(path.join(coverage, file), 'utf8'))).result,
  );
  const sources = files
    .filter(({ url }) => url.endsWith('/cli.cjs'))
    .flatMap(({ functions }) => functions)
    .filter(
      ({ functionName, ranges: [whole] }) =>
        functionName.startsWith('packages/') && whole?.count !== 0,
    )
    .map(({ functionName }) => functionName);
  return [
    ...sources,
    ...(files.some(({ url }) => url.endsWith(`/${PROTOCOLS}`)) ? [PROTOCOLS] : []),
  ];
};

const REPLY = { replies: [{ text: 'Hello.' }] };
const ANSWER = { replies: [{ text: program('answer.content = "3"', 'answer.ready = true') }] };

const promptWords =
  (...flags: readonly string[]) =>
  ({ workspace }: { readonly workspace: string }): readonly string[] => {
    writeFileSync(path.join(workspace, 'script.json'), JSON.stringify(REPLY));
    return ['-p', 'hi', '--model', 'scripted/script.json', ...flags];
  };

const ofEditors = (sources: readonly string[]): readonly string[] =>
  sources.filter((source) =>
    /^protocols\.cjs$|^packages\/pawl\/src\/editor\/(?!acp-flags|mcp-server)/.test(source),
  );

describe('ask and the parts for editors are loaded with their first use', () => {
  it("not by import 'pawl'; by 'pawl/machine', which offers its machine", async () => {
    const { metafile } = await buildLibrary(root);
    const library = sourcesLoadedAtOnce(metafile, 'packages/pawl/dist/index.js');
    assert.deepEqual(ofAsk(library), []);
    assert.ok(library.includes(AGENT));
    assert.deepEqual(
      library.filter((source) => /telemetry/.test(source)),
      [],
    );
    // control: the same look finds it where it is loaded at once
    const machine = sourcesLoadedAtOnce(metafile, 'packages/pawl/dist/machine.js');
    assert.ok(ofAsk(machine).includes('packages/ask/src/run/table.ts'));
    assert.ok(
      Object.values(metafile.outputs).some(({ inputs }) => ASK in inputs),
      'it is in the bundle',
    );
  });

  it('not by the start of the program', async () => {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: ['packages/pawl/src/main.ts'],
      ...({ bundle: true, splitting: true, metafile: true, write: false } as const),
      ...({ format: 'esm', platform: 'node', packages: 'external', outdir: 'out' } as const),
      plugins: [workspacePackages(root)],
    });
    const atOnce = sourcesLoadedAtOnce(metafile, 'out/main.js');
    assert.ok(atOnce.includes('packages/pawl/src/commands/command-line.ts'));
    assert.deepEqual(ofAsk(atOnce), []);
  });

  it('not by pawl -p, and not by --explore before the tool is called; by pawl ask', async (context) => {
    const plain = await loadedWhile(context, promptWords());
    assert.ok(plain.includes(AGENT));
    assert.deepEqual([ofAsk(plain), ofEditors(plain)], [[], []]);
    // nor telemetry, which nobody asked for: packages/pawl/test/e2e/telemetry.test.ts is the control
    assert.deepEqual(
      plain.filter((source) =>
        /^packages\/inspector\/src\/spans\/|export-spans|^protocols\.cjs$/.test(source),
      ),
      [],
    );
    const exploring = await loadedWhile(context, promptWords('--explore'));
    assert.ok(exploring.includes('packages/pawl/src/sessions/explore-tool.ts'));
    assert.deepEqual(ofAsk(exploring), []);
    // control: where it is used, the same look finds it
    const asking = await loadedWhile(context, (place) => [
      ...prepareAsk(place, ANSWER),
      'what is in it?',
    ]);
    assert.ok(asking.includes(ASK));
  });

  it('the parts for editors by pawl acp', async (context) => {
    // the control of the look above
    const serving = await loadedWhile(context, () => ['acp']);
    for (const source of ['packages/pawl/src/editor/acp-agent.ts', PROTOCOLS])
      assert.ok(ofEditors(serving).includes(source), serving.join(' '));
  });
});
