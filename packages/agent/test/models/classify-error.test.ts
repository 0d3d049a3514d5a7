import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelErrorKind } from '../../src/machine/event.js';
import { classify } from '../../src/models/errors.js';
import { oddAnswer } from '../../src/models/wire-errors.js';

const provider = { name: 'Anthropic', keyVariable: 'ANTHROPIC_API_KEY', host: 'api.example' };
const NOW = Date.parse('2026-11-21T10:00:00Z');

const body = (type: string, message: string) =>
  JSON.stringify({ type: 'error', error: { type, message } });
const answered = (statusCode: number, responseBody = '', responseHeaders = {}) =>
  Object.assign(new Error('from the client'), { statusCode, responseBody, responseHeaders });
const broken = (code: string, message = '') => Object.assign(new Error(message), { code });

type Row = {
  readonly title: string;
  readonly given: unknown;
  readonly kind: ModelErrorKind;
  readonly retryable: boolean;
  readonly says?: RegExp;
};

const invalid = (message: string) => answered(400, body('invalid_request_error', message));

const rows: readonly Row[] = [
  {
    title: '400',
    given: invalid('max_tokens: Field required'),
    kind: 'badRequest',
    retryable: false,
    says: /\(400\): max_tokens: Field required$/,
  },
  {
    title: '404',
    given: answered(404, body('not_found_error', 'model: claude-x')),
    kind: 'badRequest',
    retryable: false,
    says: /claude-x/,
  },
  {
    title: 'a piece of a reply that is half a JSON',
    given: Object.assign(new Error('JSON parsing failed: Text: {"ty'), {
      name: 'AI_JSONParseError',
    }),
    kind: 'unreachable',
    retryable: true,
  },
  { title: '422', given: answered(422), kind: 'badRequest', retryable: false },
  {
    title: '401',
    given: answered(401, body('authentication_error', 'invalid x-api-key')),
    kind: 'auth',
    retryable: false,
    says: /invalid x-api-key\. Set ANTHROPIC_API_KEY/,
  },
  {
    title: '403',
    given: answered(403, body('permission_error', 'no')),
    kind: 'auth',
    retryable: false,
  },
  {
    title: 'a refused content, as a 403',
    given: answered(403, body('content_policy_violation', 'no')),
    kind: 'refused',
    retryable: false,
  },
  {
    title: '402',
    given: answered(402, body('billing_error', 'pay')),
    kind: 'quotaExhausted',
    retryable: false,
    says: /Add credit/,
  },
  {
    title: 'a credit balance that is too low, as a 400',
    given: invalid('Your credit balance is too low to access the Anthropic API.'),
    kind: 'quotaExhausted',
    retryable: false,
  },
  {
    title: 'a usage limit set by the account, as a 400',
    given: invalid('You have reached your specified API usage limits.'),
    kind: 'quotaExhausted',
    retryable: false,
  },
  {
    title: 'a prompt that is too long',
    given: invalid('prompt is too long: 200001 tokens > 200000 maximum'),
    kind: 'contextOverflow',
    retryable: false,
    says: /too long for this model/,
  },
  {
    title: 'input and output that exceed the window',
    given: invalid('input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000'),
    kind: 'contextOverflow',
    retryable: false,
  },
  {
    title: 'a request of too many bytes',
    given: answered(413, body('request_too_large', 'Request exceeds the maximum size')),
    kind: 'contextOverflow',
    retryable: false,
  },
  {
    title: '413 of a gateway',
    given: answered(413, '<html>'),
    kind: 'contextOverflow',
    retryable: false,
  },
  {
    title: 'output that a filter blocked',
    given: invalid('Output blocked by content filtering policy'),
    kind: 'refused',
    retryable: false,
  },
  { title: '408', given: answered(408), kind: 'timeout', retryable: true },
  {
    title: '429',
    given: answered(429, body('rate_limit_error', 'slow down')),
    kind: 'rateLimited',
    retryable: true,
    says: /\(429\): slow down$/,
  },
  {
    title: '500',
    given: answered(500, body('api_error', 'Internal server error')),
    kind: 'unreachable',
    retryable: true,
  },
  {
    title: '502 of a gateway',
    given: answered(502, '<html>bad gateway</html>'),
    kind: 'unreachable',
    retryable: true,
    says: /\(502\)/,
  },
  { title: '503', given: answered(503), kind: 'overloaded', retryable: true },
  { title: '504', given: answered(504), kind: 'timeout', retryable: true },
  {
    title: '529',
    given: answered(529, body('overloaded_error', 'Overloaded')),
    kind: 'overloaded',
    retryable: true,
  },
  {
    title: 'an error event in a stream',
    given: { type: 'overloaded_error', message: 'Overloaded' },
    kind: 'overloaded',
    retryable: true,
  },
  {
    title: 'an error event about the rate',
    given: { type: 'rate_limit_error', message: 'slow' },
    kind: 'rateLimited',
    retryable: true,
  },
  {
    title: 'an error event that nobody knows',
    given: { type: 'moon_error', message: 'full' },
    kind: 'malformed',
    retryable: false,
    says: /full/,
  },
  {
    title: 'the first event of a stream, as the SDK dresses it',
    given: answered(500, JSON.stringify({ type: 'rate_limit_error', message: 'slow' })),
    kind: 'rateLimited',
    retryable: true,
  },
  {
    title: 'a refused connection',
    given: broken('ECONNREFUSED'),
    kind: 'unreachable',
    retryable: true,
    says: /api\.example \(ECONNREFUSED\): the connection was refused$/,
  },
  {
    title: 'a name that is unknown',
    given: broken('ENOTFOUND', 'getaddrinfo ENOTFOUND x'),
    kind: 'unreachable',
    retryable: true,
    says: /host name is unknown/,
  },
  {
    title: 'a code deep in its causes',
    given: new Error('a', { cause: new Error('b', { cause: broken('ECONNRESET') }) }),
    kind: 'unreachable',
    retryable: true,
  },
  {
    title: 'a stream cut after status 200',
    given: Object.assign(
      new Error('Failed to process successful response', { cause: broken('ECONNRESET') }),
      { statusCode: 200 },
    ),
    kind: 'unreachable',
    retryable: true,
    says: /the connection was cut/,
  },
  {
    title: 'a connection that timed out',
    given: broken('ETIMEDOUT'),
    kind: 'timeout',
    retryable: true,
  },
  {
    title: 'a certificate that is not trusted',
    given: broken('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate'),
    kind: 'unreachable',
    retryable: false,
    says: /NODE_EXTRA_CA_CERTS/,
  },
  {
    title: 'a certificate for another name',
    given: broken('ERR_TLS_CERT_ALTNAME_INVALID', "Host: x. is not in the cert's altnames"),
    kind: 'unreachable',
    retryable: false,
  },
  {
    title: 'a slow handshake',
    given: broken('ERR_TLS_HANDSHAKE_TIMEOUT'),
    kind: 'timeout',
    retryable: true,
  },
  {
    title: 'an answer that is no HTTP',
    given: broken('HPE_INVALID_CONSTANT', 'Parse Error: Expected HTTP/'),
    kind: 'unreachable',
    retryable: true,
  },
  {
    title: 'a proxy that refuses',
    given: broken('PROXY_REFUSED', 'the proxy p:1 answered 407'),
    kind: 'unreachable',
    retryable: true,
    says: /407/,
  },
  {
    title: 'a reply that makes no sense',
    given: new Error('Type validation failed: no such block'),
    kind: 'malformed',
    retryable: false,
    says: /no such block/,
  },
  {
    title: 'something that is no error at all',
    given: 'oops',
    kind: 'malformed',
    retryable: false,
    says: /oops/,
  },
  { title: 'nothing', given: undefined, kind: 'malformed', retryable: false },
  {
    title: "vLLM's answer to a prompt that is too long",
    given: answered(
      400,
      '{"object":"error","message":"This model\'s maximum context length is 4096 tokens.","type":"BadRequestError","code":400}',
    ),
    kind: 'contextOverflow',
    retryable: false,
    says: /4096/,
  },
  {
    title: 'an error that is a mere text, as of LM Studio and Ollama',
    given: answered(404, '{"error":"model \'x\' not found"}'),
    kind: 'badRequest',
    retryable: false,
    says: /model 'x' not found/,
  },
  {
    title: 'a detail, as of FastAPI',
    given: answered(422, '{"detail":"Not a model"}'),
    kind: 'badRequest',
    retryable: false,
    says: /Not a model/,
  },
  {
    title: "an event of a gateway's with a status as its code",
    given: { message: 'Rate limited upstream', code: 429 },
    kind: 'rateLimited',
    retryable: true,
    says: /\(429\): Rate limited upstream/,
  },
  {
    title: 'an error with a code like the name of a method',
    given: Object.assign(new Error('No.'), { code: 'constructor' }),
    kind: 'unreachable',
    retryable: true,
    says: /\(constructor\): No/,
  },
  {
    title: 'an error where an event was expected',
    given: Object.assign(new Error('Type validation failed: Value: {...}'), {
      value: { error: 'context the overflows' },
    }),
    kind: 'contextOverflow',
    retryable: false,
    says: /context the overflows/,
  },
  {
    title: "a list of one error, as Google's streams begin with",
    given: answered(
      503,
      '[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]',
    ),
    kind: 'overloaded',
    retryable: true,
    says: /The model is overloaded/,
  },
  {
    title: 'a label that is no label of ours but of all objects',
    given: answered(400, body('toString', 'no')),
    kind: 'badRequest',
    retryable: false,
  },
  {
    title: 'talk of long prompts in a server error',
    given: answered(500, body('api_error', 'prompt is too long to tell')),
    kind: 'unreachable',
    retryable: true,
  },
];

for (const { title, given, kind, retryable, says = /./ } of rows) {
  test(`${title} is ${kind}, ${retryable ? 'worth a retry' : 'final'}`, () => {
    const error = classify(given, provider, NOW);
    assert.equal(error.kind, kind);
    assert.equal(error.retryable, retryable);
    assert.match(error.message, says);
  });
}

const NOON = 'Sat, 21 Nov 2026 12:00:00 GMT'; // two hours after NOW
const waits: readonly (readonly [string, Readonly<Record<string, string>>, number | null])[] = [
  ['seconds', { 'retry-after': '12' }, 12_000],
  ['parts of a second', { 'retry-after': '1.5' }, 1_500],
  ['milliseconds, which are more exact', { 'retry-after-ms': '250', 'retry-after': '1' }, 250],
  ['a date', { 'retry-after': 'Sat, 21 Nov 2026 10:01:30 GMT' }, 90_000],
  ['a date that is past', { 'retry-after': 'Sat, 21 Nov 2026 09:00:00 GMT' }, 0],
  [
    'a date by a server ahead',
    { 'retry-after': 'Sat, 21 Nov 2026 12:01:30 GMT', date: NOON },
    90_000,
  ],
  ['a duration', { 'x-ratelimit-reset-requests': '1m2.5s' }, 62_500],
  ['a time in milliseconds', { 'x-ratelimit-reset': String(NOW + 7_000) }, 7_000],
  ['a time in seconds', { 'x-ratelimit-reset': String(NOW / 1_000 + 7) }, 7_000],
  ['seconds of a reset', { 'ratelimit-reset': '7', 'ratelimit-remaining': '0' }, 7_000],
  ['a date of a reset', { 'anthropic-ratelimit-tokens-reset': '2026-11-21T10:00:07Z' }, 7_000],
  [
    'the reset of what is used up',
    {
      'x-ratelimit-reset-requests': '9s',
      'x-ratelimit-remaining-requests': '4',
      'x-ratelimit-reset-tokens': '7s',
      'x-ratelimit-remaining-tokens': '0',
    },
    7_000,
  ],
  ['a wait beside a reset', { 'retry-after': '2', 'x-ratelimit-reset': '7' }, 2_000],
  ['nothing', {}, null],
  ['nonsense', { 'retry-after': 'soon' }, null],
];

test('no part of a key is shown, wherever the sentence of a server is cut', () => {
  const apiKey = 'sk-secret-0123456789';
  for (let length = 100; length <= 400; length++) {
    const text = `${'x'.repeat(length)} ${apiKey} is not a key`;
    for (const given of [
      invalid(text),
      answered(502, text),
      oddAnswer(text),
      oddAnswer(`<p>${text}`),
    ])
      assert.doesNotMatch(classify(given, { ...provider, apiKey }, NOW).message, /sk-/);
  }
});

test('a wait that a gateway hands on in the body is read', () => {
  const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW + 7_000) };
  const answer = JSON.stringify({ error: { message: 'Rate limit', metadata: { headers } } });
  assert.equal(classify(answered(429, answer), provider, NOW).retryAfterMs, 7_000);
});

/** What the address, the status and the body of a failed request say. */
const addresses: readonly (readonly [string, number, string, RegExp])[] = [
  ['http://h', 404, 'Not Found', /Look at the address \(http:\/\/h\), and most servers want \/v1/],
  ['http://h/v1', 404, 'Not Found', /Look at the address \(http:\/\/h\/v1\): --base-url/],
  ['http://h', 405, 'Method Not Allowed', /\/v1 at its end/],
  ['http://h', 404, '{"error":{"message":"no model x"}}', /no model x$/],
  ['http://h', 400, 'Bad Request', /Bad Request$/],
];

for (const [url, status, answer, says] of addresses) {
  test(`a ${status} at ${url} (${answer}) says whether the address is wrong`, () => {
    assert.match(classify(answered(status, answer), { ...provider, url }, NOW).message, says);
  });
}

/** Refusals of pictures, and others that only sound like it. */
const pictures: readonly (readonly [number, string, 'picture' | undefined])[] = [
  [400, 'Could not process image', 'picture'],
  [400, 'messages.3.content.1.image.source.base64: image exceeds 5 MB maximum', 'picture'],
  [400, 'At least one of the image dimensions exceed max allowed size: 8000 pixels', 'picture'],
  [422, 'unknown variant `image_url`, expected `text`', 'picture'],
  [404, 'No endpoints found that support image input', 'picture'],
  [500, 'this model is missing data required for image input', 'picture'],
  [415, 'Unsupported media type: image/heic', 'picture'],
  [400, 'messages.3.content: Field required', undefined],
  [401, 'Your key may not send images', undefined],
  [429, 'Too many images a minute', undefined],
  [500, 'The image of the container could not be pulled', undefined],
  [503, 'The image service is overloaded', undefined],
];

for (const [status, message, about] of pictures) {
  test(`${status} "${message}" is ${about === undefined ? 'not ' : ''}about a picture`, () => {
    const error = classify(answered(status, JSON.stringify({ error: { message } })), provider, NOW);
    assert.equal(error.about, about);
    if (about !== undefined) assert.equal(error.retryable, false);
  });
}

for (const [title, headers, expected] of waits) {
  test(`a wait given as ${title} is ${expected} ms`, () => {
    assert.equal(classify(answered(429, '', headers), provider, NOW).retryAfterMs, expected);
  });
}
