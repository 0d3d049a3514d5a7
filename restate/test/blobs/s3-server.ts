import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd, type TestScope } from '../../../test/temporary-folder.js';

/**
 * A strict S3 store on loopback with one bucket: it knows PutObject and GetObject, with the bucket in the path or in the
 * host, and computes each signature (AWS Signature Version 4) by itself.
 */

export const credentials = { id: 'AKIDOFTHETEST', secret: 'secret+of/the+test' } as const;
export const BUCKET = 'blobs-of-test';

/** What the next requests get instead of an answer; each is used once, in order. */
export type Trouble = 'unavailable' | 'denied' | 'silent' | 'cut' | 'missing';

export type S3Server = {
  readonly endpoint: string;
  /** Contents by key. */
  readonly objects: Map<string, Buffer>;
  readonly troubles: Trouble[];
  /** Method, and bucket and key as the request named them, of each request. */
  readonly requests: string[];
};

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: Buffer | string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** Why the signature does not fit; null if it does. */
const signatureFault = (incoming: IncomingMessage, body: Buffer): string | null => {
  const { authorization = '' } = incoming.headers;
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([\w-]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/;
  const [, id, day = '', region = '', names = '', signature] = form.exec(authorization) ?? [];
  if (id !== credentials.id) return 'InvalidAccessKeyId';
  const header = (name: string): string => String(incoming.headers[name] ?? '').trim();
  if (header('x-amz-content-sha256') !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  if (
    !['host', 'x-amz-content-sha256', 'x-amz-date'].every((name) => names.split(';').includes(name))
  )
    return 'AccessDenied';
  const [path = '', query = ''] = (incoming.url ?? '').split('?');
  const canonical = [
    incoming.method,
    path,
    query.split('&').sort().join('&'),
    ...names.split(';').map((name) => `${name}:${header(name)}`),
    '',
    names,
    sha256(body),
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', header('x-amz-date'), scope, sha256(canonical)].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<Buffer | string>(
    hmac,
    `AWS4${credentials.secret}`,
  );
  return hmac(key, text).toString('hex') === signature ? null : 'SignatureDoesNotMatch';
};

const bodyOf = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
};

const refuse = (outgoing: ServerResponse, status: number, code: string): void => {
  outgoing.writeHead(status, { 'content-type': 'application/xml' });
  outgoing.end(
    `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${credentials.secret}</Message></Error>`,
  );
};

const cutOff = (outgoing: ServerResponse): void => {
  outgoing.writeHead(200, { 'content-length': '1000' });
  outgoing.write('only a beginning', () => outgoing.destroy());
};

export const startS3 = async (scope: TestScope): Promise<S3Server> => {
  const objects = new Map<string, Buffer>();
  const troubles: Trouble[] = [];
  const requests: string[] = [];
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await bodyOf(incoming);
    const [path = ''] = (incoming.url ?? '').split('?');
    const [, host] = /^([\w-]+)\.localhost:/.exec(incoming.headers.host ?? '') ?? [];
    requests.push(`${incoming.method} ${host === undefined ? '' : `${host}:`}${path}`);
    const fault = signatureFault(incoming, body);
    if (fault !== null) return refuse(outgoing, 403, fault);
    const trouble = troubles.shift();
    if (trouble === 'silent') return;
    if (trouble === 'unavailable') return refuse(outgoing, 503, 'SlowDown');
    if (trouble === 'denied') return refuse(outgoing, 403, 'AccessDenied');
    if (trouble === 'cut') return cutOff(outgoing);
    if (trouble === 'missing') return refuse(outgoing, 404, 'NoSuchKey');
    const [, bucket, key = ''] =
      /^\/([^/]+)\/(.+)$/.exec(host === undefined ? path : `/${host}${path}`) ?? [];
    if (bucket !== BUCKET) return refuse(outgoing, 404, 'NoSuchBucket');
    if (incoming.method === 'PUT') objects.set(key, body);
    const found = objects.get(key);
    if (found === undefined) return refuse(outgoing, 404, 'NoSuchKey');
    outgoing.writeHead(200, { etag: '"tag"' });
    outgoing.end(incoming.method === 'GET' ? found : '');
  };
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(scope, () => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo; // it listens on a port, not on a socket file
  return { endpoint: `http://127.0.0.1:${port}`, objects, troubles, requests };
};
