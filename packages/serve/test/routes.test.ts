import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { routes } from '../src/http.js';

/** Only the user's own processes ask by it. */
const UNLISTED = 'POST /v1/sessions/ID/own';

test('the page lists each request of the API, and no other one', () => {
  const page = readFileSync('docs/build/serve.md', 'utf8');
  const listed = [...page.matchAll(/^\| `((?:GET|POST) [^`]+)` \|/gm)].map(([, name]) => name);
  const known = Object.keys(routes).filter((name) => name !== UNLISTED);
  assert.deepEqual(listed.toSorted(), ['GET /health', ...known].toSorted());
});
