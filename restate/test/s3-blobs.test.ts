import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import dns from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { readS3Place } from '../../packages/serve/src/node-runtime.js';
import { atEnd } from '../../test/temporary-folder.js';
import { BlobStoreError, checkBlobs, type S3BlobsOptions, s3Blobs } from '../src/s3-blobs.js';
import { freePorts } from '../src/start-engine.js';
import { BUCKET, credentials, startS3 } from './blobs/s3-server.js';

/** Blobs in an S3-compatible store, against a strict one on loopback. */

const before = { ...process.env };
const clear = (): void => {
  for (const name of Object.keys(process.env))
    if (name.startsWith('AWS_')) delete process.env[name];
};

beforeEach(() => {
  clear();
  process.env.AWS_ACCESS_KEY_ID = credentials.id;
  process.env.AWS_SECRET_ACCESS_KEY = credentials.secret;
  process.env.AWS_EC2_METADATA_DISABLED = 'true';
});

afterEach(() => {
  clear();
  Object.assign(process.env, before);
});

const at = (endpoint: string, more: Partial<S3BlobsOptions> = {}): ReturnType<typeof s3Blobs> =>
  s3Blobs({
    bucket: BUCKET,
    prefix: 'pawl/',
    endpoint,
    region: null,
    addressing: null,
    silenceMs: 300,
    ...more,
  });

type Looked = (error: null, address: unknown, family?: number) => void;

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
  store.troubles.push('missing');
  await refuses(blobs.put('text'), /Writing was refused at bucket .*404 NoSuchKey/);
  const [closed] = await freePorts(1);
  await refuses(
    at(`http://127.0.0.1:${closed}`).put('text'),
    /Writing failed at bucket .*ECONNREFUSED/,
  );
  process.env.AWS_SECRET_ACCESS_KEY = `wrong-${credentials.secret}`;
  await refuses(at(store.endpoint).put('text'), /credentials are refused .*SignatureDoesNotMatch/);
  delete process.env.AWS_ACCESS_KEY_ID;
  await refuses(at(store.endpoint).put('text'), /no credentials for bucket .*AWS_ACCESS_KEY_ID/);
  // what is refused is not asked again
  assert.equal(store.requests.length, 5);
  assert.equal(store.objects.size, 0);
});

test('the bucket is named in the path or in the host', async (context) => {
  const store = await startS3(context);
  const endpoint = store.endpoint.replace('127.0.0.1', 'localhost');
  context.mock.method(dns, 'lookup', (_: string, options: { all?: boolean }, done: Looked) =>
    options.all === true
      ? done(null, [{ address: '127.0.0.1', family: 4 }])
      : done(null, '127.0.0.1', 4),
  );
  const sha256 = await at(endpoint).put('text');
  const key = `pawl/${sha256.slice(0, 2)}/${sha256}`;
  assert.equal(await at(endpoint, { addressing: 'virtual' }).get(sha256), 'text');
  assert.deepEqual(store.requests, [`PUT /${BUCKET}/${key}`, `GET ${BUCKET}:/${key}`]);
});

test('without variables credentials are those of the role of the container or the computer', async (context) => {
  const store = await startS3(context);
  const { id, secret } = credentials;
  const Expiration = new Date(Date.now() + 3_600_000).toISOString();
  const ends = { AccessKeyId: id, SecretAccessKey: secret, Token: 't' };
  let role = JSON.stringify({ ...ends, Expiration });
  const seen: string[] = [];
  const roles = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const token = headers.authorization ?? headers['x-aws-ec2-metadata-token'] ?? '';
    seen.push(`${method} ${url} ${token}`);
    outgoing.end(method === 'PUT' ? 'of-now' : url?.endsWith('/') ? 'the-role\n' : role);
  });
  await new Promise<void>((resolve) => roles.listen(0, '127.0.0.1', resolve));
  atEnd(context, () => void roles.close().closeAllConnections());
  const url = `http://127.0.0.1:${(roles.address() as AddressInfo).port}`;
  const rows: readonly (readonly [Record<string, string>, readonly string[]])[] = [
    [
      {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/pod`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN: 'pass',
      },
      ['GET /pod pass'],
    ],
    [
      { AWS_EC2_METADATA_DISABLED: 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT: url },
      [
        'PUT /latest/api/token ',
        'GET /latest/meta-data/iam/security-credentials/ of-now',
        'GET /latest/meta-data/iam/security-credentials/the-role of-now',
      ],
    ],
  ];
  for (const prefix of ['pawl', '/pawl/', 'a?b/', '../'])
    assert.throws(
      () => at(store.endpoint, { prefix }),
      /prefix (may have|of the bucket)|unknown parameter/,
      prefix,
    );
  delete process.env.AWS_ACCESS_KEY_ID;
  const clean = { ...process.env };
  for (const [variables, asked] of rows) {
    clear();
    Object.assign(process.env, clean, variables);
    await checkBlobs(at(store.endpoint)); // two requests with one question for the role
    assert.deepEqual(seen.splice(0), asked);
  }
  // credentials that end soon are asked for again, and used while there are no others
  role = JSON.stringify({ ...ends, Expiration: new Date(Date.now() + 120_000).toISOString() });
  const blobs = at(store.endpoint);
  await blobs.put('first');
  role = 'busy';
  await blobs.put('second');
  // of a service that does not say when they end, they are asked for each time
  role = JSON.stringify(ends);
  await blobs.put('third');
  await blobs.put('fourth');
  assert.equal(seen.filter((line) => line.includes('/the-role')).length, 4);
});

test('the address of a bucket is read, and a wrong one is refused without its text', () => {
  const bare = { kind: 's3', bucket: 'my-bucket', prefix: '', endpoint: null, region: null };
  const all = '?endpoint=http://minio:9000/&region=eu-1&addressing_style=virtual';
  assert.deepEqual(readS3Place(`s3://my-bucket/a/b${all}`), {
    place: {
      ...bare,
      prefix: 'a/b/',
      endpoint: 'http://minio:9000',
      region: 'eu-1',
      addressing: 'virtual',
    },
  });
  assert.deepEqual(readS3Place('s3://my-bucket'), { place: { ...bare, addressing: null } });
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['s3://id:hidden@my-bucket', /AWS_SECRET_ACCESS_KEY/],
    ['s3://my-bucket?endpoint=http://id:hidden@minio', /AWS_SECRET_ACCESS_KEY/],
    ['s3://my-bucket/../hidden*', /prefix may have/],
    ['s3:///hidden', /names no bucket/],
    ['s3://my-bucket?endpoint=hidden', /endpoint is not/],
    ['s3://my-bucket?secret=hidden', /unknown parameter/],
    ['s3://my-bucket?addressing_style=hidden', /neither path nor virtual/],
  ];
  for (const [text, words] of wrong) {
    const read = readS3Place(text);
    assert.ok('fault' in read, text);
    assert.match(read.fault, words);
    assert.equal(read.fault.includes('hidden'), false);
  }
});
