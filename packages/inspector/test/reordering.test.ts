import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExportedSession } from '../src/page-data-types.js';
import { pageWithSession } from '../src/server/page-html.js';

test('the exported page holds no character that reorders the text around it', () => {
  const page = `<meta content="connect-src 'self'"><script type="application/json" id="exported">null</script>`;
  const session = { title: 'a\u202eb\u2066c\u200fd' } as unknown as ExportedSession; // only its texts matter here
  const written = pageWithSession(page, session);
  assert.doesNotMatch(written, /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  const [, json = ''] = /id="exported">(.*)<\/script>/.exec(written) ?? [];
  assert.deepEqual(JSON.parse(json), session, 'nothing is lost');
});
