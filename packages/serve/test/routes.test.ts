import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { auditedInput } from '../src/audit-log.js';
import { routes } from '../src/http.js';
import { openApi } from '../src/open-api.js';

/** Only the user's own processes ask by it. */
const UNLISTED = 'POST /v1/sessions/ID/own';

test('an input is named in the audit log whatever its answer is', () => {
  const input = { type: 'ApprovalAnswered', batchId: 'b', callId: 'c' };
  for (const [kind, answer] of [
    ['allow', 'allow'],
    [{ toString: 1 }, ''],
    [null, ''],
  ] as const)
    assert.deepEqual(auditedInput({ ...input, answer: { kind } }), {
      action: 'approval',
      ...input,
      answer,
    });
});

test('the page lists each request of the API, and no other one', () => {
  const page = readFileSync('docs/build/serve.md', 'utf8');
  const listed = [...page.matchAll(/^\| `((?:GET|POST) [^`]+)` \|/gm)].map(([, name]) => name);
  const known = Object.keys(routes).filter((name) => name !== UNLISTED);
  assert.deepEqual(listed.toSorted(), ['GET /health', ...known].toSorted());
});

test('the OpenAPI document has each request with its parameters and the shape of its body', () => {
  const document = JSON.parse(JSON.stringify(openApi(routes)));
  const listed = Object.entries<Record<string, object>>(document.paths).flatMap(
    ([address, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${address}`),
  );
  const known = Object.keys(routes).filter((name) => name !== UNLISTED);
  assert.deepEqual(
    listed,
    known.map((name) => name.replace('/ID', '/{ID}')),
  );
  const create = document.paths['/v1/sessions'].post;
  const { schema } = create.requestBody.content['application/json'];
  assert.deepEqual(schema.required, ['workspace']);
  assert.deepEqual(Object.keys(schema.properties), [
    'workspace',
    'preset',
    'model',
    'labels',
    'limits',
  ]);
  assert.equal(schema.additionalProperties, false);
  const names = ({ parameters }: { readonly parameters: readonly { readonly name: string }[] }) =>
    parameters.map(({ name }) => name);
  assert.deepEqual(names(create), ['Idempotency-Key']);
  assert.deepEqual(names(document.paths['/v1/sessions'].get), ['limit', 'before', 'label']);
  assert.deepEqual(names(document.paths['/v1/sessions/{ID}/events'].get), ['ID', 'after']);
  const ids = Object.values<Record<string, { readonly operationId: string }>>(
    document.paths,
  ).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
  assert.equal(new Set(ids).size, known.length);
});
