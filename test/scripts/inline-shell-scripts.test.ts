import '../own-process.js';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { withShellScripts } from '../../scripts/inline-shell-scripts.js';

const COMMAND = 'packages/agent/src/command';

for (const [module, line] of [
  [`${COMMAND}/launcher.ts`, 'gate \\"$number\\" | runner \\"$number\\" | pump'],
  [`${COMMAND}/sandbox/shell-text.ts`, '\\\\0left behind\\\\n'],
] as const) {
  test(`a bundle holds the shell script that ${module} reads beside itself`, () => {
    const text = readFileSync(module, 'utf8');
    assert.match(text, /import\.meta\.url/);
    const inlined = withShellScripts(module, text);
    assert.doesNotMatch(inlined, /import\.meta\.url/);
    assert.ok(inlined.includes(line));
    assert.doesNotMatch(inlined, /\\n *# /, 'without comments');
  });
}
