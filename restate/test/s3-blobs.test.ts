import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, test } from 'node:test';
import { readS3Place } from '../../packages/serve/src/node-runtime.js';
import { BlobStoreError, checkBlobs, type S3BlobsOptions, s3Blobs } from '../src/s3-blobs.js';
import { BUCKET, credentials, startS3 } from './blobs/s3-server.js';

/** Blobs in an S3-compatible store, against a strict one on loopback. */

const NAMES = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_EC2_METADATA_DISABLED',
  'AWS_PROFILE',
];
const before = NAMES.map((name) => [name, process.env[name]] as const);

beforeEach(() => {
  process.env.AWS_ACCESS_KEY_ID = credentials.id;
  process.env.AWS_SECRET_ACCESS_KEY = credentials.secret;
  process.env.AWS_EC2_METADATA_DISABLED = 'true';
  delete process.env.AWS_PROFILE;
});

afterEach(() => {
  for (const [name, value] of before)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
});

const at = (endpoint: string, more: Partial<S3BlobsOptions> = {}): ReturnType<typeof s3Blobs> =>
  s3Blobs({ bucket: BUCKET, prefix: 'pawl/', endpoint, region: null, silenceMs: 300, ...more });

/** Rejects with these words, and with nothing secret. */
const refuses = async (work: Promise<unknown>, words: RegExp): Promise<void> => {
  await assert.rejects(work, (error: unknown) => {
    assert.ok(error instanceof BlobStoreError, String(error));
    assert.match(error.message, words);
    assert.equal(error.message.includes(credentials.secret), false);
    assert.equal(error.cause, undefined);
    return true;
  });
};

test('texts are objects named by their hash, under the prefix, and a second put does no harm', async (context) => {
  const store = await startS3(context);
  const blobs = at(store.endpoint);
  const text = 'Grüße aus dem Archiv\n'.repeat(100_000);
  const sha256 = createHash('sha256').update(text).digest('hex');
  assert.deepEqual(await Promise.all([blobs.put(text), blobs.put(text)]), [sha256, sha256]);
  assert.deepEqual([...store.objects.keys()], [`pawl/${sha256.slice(0, 2)}/${sha256}`]);
  assert.equal(await blobs.get(sha256), text);
  assert.equal(await blobs.get('0'.repeat(64)), undefined);
  assert.equal(await blobs.put(''), await at(store.endpoint).put(''));
  assert.equal(await blobs.get(createHash('sha256').digest('hex')), '');
  const { length } = store.requests;
  assert.deepEqual([await blobs.get('../secret'), store.requests.length], [undefined, length]);
  await checkBlobs(blobs);
});

test('a store that is busy, silent or cuts answers off is asked again', async (context) => {
  const store = await startS3(context);
  const blobs = at(store.endpoint);
  store.troubles.push('unavailable', 'silent');
  const sha256 = await blobs.put('text');
  store.troubles.push('cut', 'unavailable', 'cut');
  assert.equal(await blobs.get(sha256), 'text');
  assert.deepEqual([store.requests.length, store.troubles], [7, []]);
  store.troubles.push('silent', 'silent', 'silent', 'silent');
  await refuses(
    at(store.endpoint, { silenceMs: 50 }).get(sha256),
    /Reading failed at bucket .*also when it was tried again/,
  );
  store.troubles.push('silent');
  const started = performance.now();
  await refuses(
    at(store.endpoint, { deadlineMs: 100, silenceMs: 60_000 }).put('text'),
    /longer than 0\.1 s/,
  );
  assert.ok(performance.now() - started < 5_000);
});

test('a damaged object is an error and not a text, and the next put repairs it', async (context) => {
  const store = await startS3(context);
  const blobs = at(store.endpoint);
  const sha256 = await blobs.put('text');
  store.objects.set(`pawl/${sha256.slice(0, 2)}/${sha256}`, Buffer.from('tixt'));
  await refuses(blobs.get(sha256), /pawl\/\w\w\/\w+ in the bucket .* is damaged/);
  await blobs.put('text');
  assert.equal(await blobs.get(sha256), 'text');
});

test('what is wrong with bucket, rights, credentials and address is said, without a secret', async (context) => {
  const store = await startS3(context);
  const blobs = at(store.endpoint);
  await refuses(
    checkBlobs(at(store.endpoint, { bucket: 'other-bucket' })),
    /There is no bucket other-bucket of http/,
  );
  await refuses(
    at(store.endpoint, { bucket: 'other-bucket' }).get('0'.repeat(64)),
    /There is no bucket/,
  );
  store.troubles.push('denied');
  await refuses(blobs.put('text'), /Writing is not allowed .*403 AccessDenied.*s3:PutObject/);
  await refuses(at('http://127.0.0.1:9').put('text'), /Writing failed at bucket .*ECONNREFUSED/);
  process.env.AWS_SECRET_ACCESS_KEY = `wrong-${credentials.secret}`;
  await refuses(at(store.endpoint).put('text'), /credentials are refused .*SignatureDoesNotMatch/);
  delete process.env.AWS_ACCESS_KEY_ID;
  process.env.AWS_SHARED_CREDENTIALS_FILE = '/nowhere';
  await refuses(at(store.endpoint).put('text'), /no credentials for bucket .*AWS_ACCESS_KEY_ID/);
  delete process.env.AWS_SHARED_CREDENTIALS_FILE;
  assert.equal(store.objects.size, 0);
});

test('the address of a bucket is read, and a wrong one is refused without its text', () => {
  assert.deepEqual(readS3Place('s3://my-bucket/a/b?endpoint=http://minio:9000/&region=eu-1'), {
    place: {
      kind: 's3',
      bucket: 'my-bucket',
      prefix: 'a/b/',
      endpoint: 'http://minio:9000',
      region: 'eu-1',
    },
  });
  assert.deepEqual(readS3Place('s3://my-bucket'), {
    place: { kind: 's3', bucket: 'my-bucket', prefix: '', endpoint: null, region: null },
  });
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['s3://id:hidden@my-bucket', /AWS_SECRET_ACCESS_KEY/],
    ['s3://my-bucket?endpoint=http://id:hidden@minio', /AWS_SECRET_ACCESS_KEY/],
    ['s3://my-bucket/../hidden*', /prefix may have/],
    ['s3:///hidden', /names no bucket/],
    ['s3://my-bucket?endpoint=hidden', /endpoint is not/],
    ['s3://my-bucket?secret=hidden', /unknown parameter/],
  ];
  for (const [text, words] of wrong) {
    const read = readS3Place(text);
    assert.ok('fault' in read, text);
    assert.match(read.fault, words);
    assert.equal(read.fault.includes('hidden'), false);
  }
});
