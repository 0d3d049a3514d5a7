import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelErrorKind } from '../../src/machine/event.js';
import { classify } from '../../src/models/errors.js';
import { type BodyRow, overflows } from './overflow-bodies.js';

/** Bodies that providers really send, each with where it was seen. */

const provider = { name: 'the server', keyVariable: 'KEY', host: 'api.example' };
const read = (status: number | null, responseBody: string) =>
  classify(
    status === null
      ? JSON.parse(responseBody)
      : Object.assign(new Error('from the client'), { statusCode: status, responseBody }),
    provider,
    0,
  );

type Other = readonly [...BodyRow, kind: ModelErrorKind, retryable: boolean, says?: RegExp];

const others: readonly Other[] = [
  [
    "Ollama's 401 with a label of server errors",
    'first-version measurements',
    401,
    { error: { message: 'unauthorized', type: 'api_error', param: null, code: null } },
    'auth',
    false,
  ],
  [
    "Mistral's 429 that calls the request invalid",
    'github.com/continuedev/continue/issues/6185',
    429,
    {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
    'rateLimited',
    true,
  ],
  [
    "DeepSeek's 402",
    'github.com/Aider-AI/aider/issues/4851',
    402,
    {
      error: {
        message: 'Insufficient Balance',
        type: 'unknown_error',
        param: null,
        code: 'invalid_request_error',
      },
    },
    'quotaExhausted',
    false,
  ],
  [
    "z.ai's empty balance, by its number",
    'docs.z.ai/api-reference/api-code',
    429,
    {
      error: {
        code: '1113',
        message: 'Insufficient balance or no resource package. Please recharge.',
      },
    },
    'quotaExhausted',
    false,
  ],
  [
    "z.ai's empty balance in another language",
    'github.com/continuedev/continue/issues/11823',
    429,
    { error: { message: '余额不足或无可用资源包,请充值。' } },
    'quotaExhausted',
    false,
  ],
  [
    "a free plan's rate in the words of a quota (Google)",
    'ai.google.dev/gemini-api/docs/rate-limits',
    429,
    {
      error: {
        code: 429,
        message: 'You exceeded your current quota, please check your plan and billing details.',
        status: 'RESOURCE_EXHAUSTED',
      },
    },
    'rateLimited',
    true,
  ],
  [
    'a plain rate limit, beside the one that is too large for a minute',
    'github.com/elizaOS/eliza/issues/4040',
    429,
    {
      error: {
        message:
          'Rate limit reached for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.',
        type: 'tokens',
        code: 'rate_limit_exceeded',
      },
    },
    'rateLimited',
    true,
  ],
  [
    "a call that Groq's parser could not read",
    'github.com/groq/groq-typescript/issues/28',
    400,
    {
      error: {
        message:
          "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: '<function=read>',
      },
    },
    'malformed',
    true,
  ],
  [
    'the same without its label, in a stream',
    'github.com/anomalyco/opencode/issues/1018',
    null,
    {
      message:
        "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
      type: 'invalid_request_error',
    },
    'malformed',
    true,
  ],
  [
    'a rate limit of a provider behind OpenRouter, in plain words',
    'github.com/open-webui/computer/issues/293',
    429,
    {
      error: {
        message: 'Provider returned error',
        code: 429,
        metadata: {
          raw: 'z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly.',
          provider_name: 'BaseTen',
        },
      },
    },
    'rateLimited',
    true,
    /temporarily rate-limited upstream/,
  ],
  [
    'a page of a gateway',
    'nginx',
    502,
    '<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>',
    'unreachable',
    true,
    /502 Bad Gateway/,
  ],
  [
    "a list of FastAPI's",
    'fastapi.tiangolo.com/tutorial/handling-errors',
    422,
    {
      detail: [
        { loc: ['body', 'tools'], msg: 'value is not a valid list', type: 'type_error.list' },
      ],
    },
    'badRequest',
    false,
    /value is not a valid list/,
  ],
];

const textOf = (body: object | string): string =>
  typeof body === 'string' ? body : JSON.stringify(body);

for (const [title, , status, body] of overflows) {
  test(`too long for the model: ${title}`, () => {
    const { kind, retryable } = read(status, textOf(body));
    assert.deepEqual({ kind, retryable }, { kind: 'contextOverflow', retryable: false });
  });
}

for (const [title, , status, body, kind, retryable, says = /./] of others) {
  test(`${title}: ${kind}`, () => {
    const error = read(status, textOf(body));
    assert.deepEqual({ kind: error.kind, retryable: error.retryable }, { kind, retryable });
    assert.match(error.message, says);
  });
}

const delays: readonly (readonly [string, number | null])[] = [
  [
    'Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000. Please try again in 11.054s.',
    11_054,
  ],
  ['Rate limit reached. Please try again in 186ms.', 186],
  ['Please try again in 7m12s. Need more tokens?', 432_000],
  ['Please try again in 1m2.5s', 62_500],
  ['Your quota will reset after 8h44m7s.', 31_447_000],
  ['Please retry in 36.5s', 36_500],
  ['Too many requests, retry after 30 seconds', 30_000],
  ['Try again in 2 minutes and 5 seconds.', 125_000],
  ['Slow down: try again in 5 more steps', null],
  ['Please try again later', null],
];

for (const [message, expected] of delays) {
  test(`a delay in words: ${message}`, () => {
    const body = JSON.stringify({
      error: { message, type: 'tokens', code: 'rate_limit_exceeded' },
    });
    assert.equal(read(429, body).retryAfterMs, expected);
    // In a stream there is no status and no header.
    assert.equal(read(null, body).retryAfterMs, expected);
  });
}

test('a header beats words', () => {
  const error = Object.assign(new Error(''), {
    statusCode: 429,
    responseBody: JSON.stringify({ error: { message: 'Please try again in 11s' } }),
    responseHeaders: { 'retry-after': '3' },
  });
  assert.equal(classify(error, provider, 0).retryAfterMs, 3_000);
});

test("a fault in a package's code is not shown to the user", () => {
  const error = classify(
    new TypeError("Cannot read properties of undefined (reading 'summaryParts')"),
    provider,
    0,
  );
  assert.equal(error.kind, 'malformed');
  assert.doesNotMatch(error.message, /undefined|summaryParts|TypeError/);
  assert.match(error.message, /could not be read/);
});
