/**
 * Texts as objects of an S3-compatible store, named by their sha256.
 *
 * 1. A text has one name and a name one text, so two nodes that store the same text at once do no
 *    harm.
 * 2. Content is compared with its name: a damaged object is an error, and never a text.
 * 3. A request that failed for a temporary reason is repeated, also if a body broke off: in `#ask`
 *    and nowhere else.
 * 4. Credentials are those of the environment, or of the role of the container or computer.
 */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { attempt, type Blobs, readS3Place, type S3Place } from 'pawl/engine';

export type S3BlobsOptions = Omit<S3Place, 'kind'> & {
  /** How long one text may take, with all repetitions. Default: one minute. */
  readonly deadlineMs?: number;
  /** How long the store may be silent. Default: 10 seconds. */
  readonly silenceMs?: number;
};

const DEADLINE_MS = 60_000;
const SILENCE_MS = 10_000;
/**
 * `fetch` does not show the progress of an upload, which gets this much time more. A store that
 * takes fewer bytes a millisecond counts as silent.
 */
const BYTES_A_MS = 1_000;
/** Before the second attempt, the third, the last. */
const PAUSES_MS = [50, 200, 800];
const BYTES_MAX = 1024 * 1024 * 1024;

const hashBytes = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const NO_BYTES_SHA256 = hashBytes(new Uint8Array());

class S3Blobs implements Blobs {
  readonly #options: S3BlobsOptions;
  readonly #where: string;
  #credentials: Credentials | null = null;

  constructor(options: S3BlobsOptions) {
    this.#options = options;
    const { bucket, endpoint } = options;
    this.#where = `bucket ${bucket}${endpoint === null ? '' : ` of ${endpoint}`}`;
  }

  async put(text: string): Promise<string> {
    const bytes = Buffer.from(text);
    const sha256 = hashBytes(bytes);
    await this.#ask('Writing', this.#getKey(sha256), { bytes, sha256 });
    return sha256;
  }

  async get(sha256: string): Promise<string | undefined> {
    if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
    const key = this.#getKey(sha256);
    const bytes = await this.#ask('Reading', key, null);
    if (bytes === null) return undefined;
    if (hashBytes(bytes) === sha256) return bytes.toString();
    throw new BlobStoreError(
      `The object ${key} in the ${this.#where} is damaged: its content does not fit its ` +
        'name. Put it back from a backup.',
    );
  }

  #getKey(sha256: string): string {
    return `${this.#options.prefix}${sha256.slice(0, 2)}/${sha256}`;
  }

  /** Repeats the request while it may help. Null: there is no such object. */
  async #ask(
    what: 'Writing' | 'Reading',
    key: string,
    upload: Upload | null,
  ): Promise<Buffer | null> {
    const { deadlineMs = DEADLINE_MS } = this.#options;
    const deadline = AbortSignal.timeout(deadlineMs);
    for (let index = 0; ; index++) {
      const tried = await attempt(() => this.#request(key, upload, deadline));
      if (tried.kind === 'fault' && tried.fault instanceof BlobStoreError) throw tried.fault;
      const outcome =
        tried.kind === 'done' ? tried.value : { code: codeIn(tried.fault), status: null };
      if (Buffer.isBuffer(outcome)) return outcome;
      if (upload === null && isMissing(outcome)) return null;
      const ms = PAUSES_MS[index];
      if (!deadline.aborted && (ms === undefined || !isTemporary(outcome)))
        throw inWords(outcome, what, this.#where);
      await attempt(() => pause(ms, null, { signal: deadline }));
      if (deadline.aborted)
        throw new BlobStoreError(
          `${what} took longer than ${deadlineMs / 1_000} s at the ${this.#where}. Look ` +
            'whether the store is overloaded.',
        );
    }
  }

  async #request(
    key: string,
    upload: Upload | null,
    deadline: AbortSignal,
  ): Promise<Buffer | Failure> {
    const { silenceMs = SILENCE_MS } = this.#options;
    const silence = new AbortController(); // also while credentials are looked up
    const timer = setTimeout(
      () => silence.abort(new Silence()),
      silenceMs + (upload?.bytes.length ?? 0) / BYTES_A_MS,
    );
    try {
      const { method, url, headers } = await this.#sign(key, upload);
      const response = await fetch(url, {
        method,
        headers,
        body: upload?.bytes ?? null,
        redirect: 'manual',
        signal: AbortSignal.any([deadline, silence.signal]),
      });
      const bytes = await readBody(response, () => timer.refresh());
      if (response.ok) return bytes;
      const [, code = 'Unknown'] = /<Code>([\w.-]{1,64})<\/Code>/.exec(bytes.toString()) ?? [];
      return { code, status: response.status };
    } finally {
      clearTimeout(timer);
    }
  }

  async #sign(key: string, upload: Upload | null): ReturnType<AwsV4Signer['sign']> {
    const known = this.#credentials;
    if (known === null || known.endsAt - REFRESH_BEFORE_MS < Date.now())
      // those of before hold until they end, also while the role's service does not answer
      this.#credentials =
        (await findCredentials()) ?? (known !== null && known.endsAt > Date.now() ? known : null);
    if (this.#credentials === null) throw noCredentials(this.#where);
    const region = findRegion(this.#options);
    return new AwsV4Signer({
      ...this.#credentials,
      method: upload === null ? 'GET' : 'PUT',
      url: `${bucketUrl(this.#options, region)}/${key}`,
      headers: {
        'x-amz-content-sha256': upload?.sha256 ?? NO_BYTES_SHA256,
        ...(upload === null ? {} : { 'content-type': 'text/plain; charset=utf-8' }),
      },
      service: 's3',
      region,
    }).sign();
  }
}

type Upload = { readonly bytes: Buffer; readonly sha256: string };

/** `status` is null if there was no answer. */
type Failure = { readonly code: string; readonly status: number | null };

class Silence extends Error {
  readonly code = 'silent';
}

const readBody = async (response: Response, onChunk: () => void): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    onChunk();
    chunks.push(chunk);
    length += chunk.length;
    if (length > BYTES_MAX)
      throw new BlobStoreError(
        'A text in the store is larger than 1 GB, so Pawl did not write it.',
      );
  }
  return Buffer.concat(chunks);
};

/**
 * Without `addressing`, Amazon gets the bucket in the name of the host. Other stores get it in the
 * path, and so does Amazon if the bucket's name has a dot, which its certificate does not cover.
 */
const bucketUrl = ({ bucket, endpoint, addressing }: S3BlobsOptions, region: string): string => {
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = process.env;
  const other = endpoint ?? (AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL || null);
  const base = (other ?? `https://s3.${region}.amazonaws.com`).replace(/\/$/, '');
  const isPath = other !== null || bucket.includes('.');
  if ((addressing ?? (isPath ? 'path' : 'virtual')) === 'path') return `${base}/${bucket}`;
  return base.replace('://', `://${bucket}.`);
};

/** All nodes must name the same bucket and prefix. */
export const s3Blobs = (options: S3BlobsOptions): Blobs => {
  const { bucket, prefix } = options;
  const read = readS3Place(`s3://${bucket}/${prefix}`);
  if ('fault' in read) throw new TypeError(`The bucket: ${read.fault}`);
  if (read.place.prefix !== prefix)
    throw new TypeError(
      `The prefix of the bucket must end with "/" and not begin with it: ${prefix}`,
    );
  return new S3Blobs(options);
};

/**
 * Stores a text and reads it again, so that a wrong bucket or key is found now and not by the first
 * session.
 */
export const checkBlobs = async (blobs: Blobs): Promise<void> => {
  const sha256 = await blobs.put('A node of Pawl has looked whether it can store texts here.\n');
  if ((await blobs.get(sha256)) === undefined)
    throw new BlobStoreError('The store for blobs does not find the text that it has just taken.');
};

// ---- Credentials and region, as Amazon's programs find them ----

type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly endsAt: number;
};

const REFRESH_BEFORE_MS = 5 * 60_000;
const ROLE_MS = 2_000;

const credentialsFrom = (
  accessKeyId: unknown,
  secretAccessKey: unknown,
  sessionToken: unknown,
  endsAt = Number.POSITIVE_INFINITY,
): Credentials | null => {
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') return null;
  if (accessKeyId === '' || secretAccessKey === '') return null;
  const token = typeof sessionToken === 'string' && sessionToken !== '' ? { sessionToken } : {};
  return { accessKeyId, secretAccessKey, ...token, endsAt };
};

const findCredentials = async (): Promise<Credentials | null> => {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const ofEnvironment = credentialsFrom(
    AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN,
  );
  return ofEnvironment ?? roleCredentials();
};

/** Stores beside Amazon's have no regions; the name is a part of the signature only. */
const findRegion = ({ region }: S3BlobsOptions): string =>
  region ?? (process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || 'us-east-1');

/** Of the container's role (ECS, EKS), else of the computer's (EC2). Null: it has none. */
const roleCredentials = async (): Promise<Credentials | null> => {
  const found = await attempt(async () => {
    const answer = (await ((await askContainer()) ?? (await askComputer())).json()) as {
      readonly [name: string]: unknown;
    };
    const endsAt = Date.parse(String(answer.Expiration));
    return credentialsFrom(
      answer.AccessKeyId,
      answer.SecretAccessKey,
      answer.Token,
      // of a service that does not say when they end, they are asked for each time
      Number.isNaN(endsAt) ? 0 : endsAt,
    );
  });
  return found.kind === 'done' ? found.value : null;
};

const askRole = (url: string, init: RequestInit): Promise<Response> =>
  fetch(url, { ...init, signal: AbortSignal.timeout(ROLE_MS) });

const askContainer = async (): Promise<Response | null> => {
  const {
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative,
    AWS_CONTAINER_CREDENTIALS_FULL_URI: full,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: token,
  } = process.env;
  const url = relative ? `http://169.254.170.2${relative}` : full;
  if (!url) return null;
  const authorization = file ? (await readFile(file, 'utf8')).trim() : token;
  return askRole(url, { headers: authorization ? { authorization } : {} });
};

const askComputer = async (): Promise<Response> => {
  const { AWS_EC2_METADATA_DISABLED: isOff, AWS_EC2_METADATA_SERVICE_ENDPOINT } = process.env;
  if (isOff === 'true') throw new Error('the variable forbids it');
  const base = `${AWS_EC2_METADATA_SERVICE_ENDPOINT || 'http://169.254.169.254'}/latest`;
  const asked = await askRole(`${base}/api/token`, {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
  });
  const headers = { 'x-aws-ec2-metadata-token': await asked.text() };
  const roles = `${base}/meta-data/iam/security-credentials/`;
  const [role = ''] = (await (await askRole(roles, { headers })).text()).split('\n');
  return askRole(`${roles}${role}`, { headers });
};

// Errors of a store in words. Only the code and the status of an answer are repeated: its message
// belongs to the store, and may repeat a part of what was sent.

export class BlobStoreError extends Error {
  override readonly name = 'BlobStoreError';
}

/** The code of an error of a connection. */
const codeIn = (error: Error): string => {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (cause instanceof Error) return codeIn(cause);
  return typeof code === 'string' && /^[\w.-]{1,64}$/.test(code) ? code : error.name;
};

/** Whether the store has answered that there is no such object. */
const isMissing = ({ code, status }: Failure): boolean =>
  code === 'NoSuchKey' || (code === 'NotFound' && status === 404);

/** Whether the same request may work a moment later. `RequestTimeout`: the body was too slow. */
const isTemporary = ({ code, status }: Failure): boolean =>
  status === null || status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout';

const SIGNATURES = [
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
  'RequestTimeTooSkewed',
];

const noCredentials = (where: string): BlobStoreError =>
  new BlobStoreError(
    `There are no credentials for ${where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ` +
      'or give the computer a role.',
  );

/**
 * The words for a failure. `what`: the request that failed; `where`: the bucket and
 * its store.
 */
const inWords = (failure: Failure, what: string, where: string): BlobStoreError => {
  const { code, status } = failure;
  const answer = status === null ? code : `${status} ${code}`;
  if (code === 'NoSuchBucket')
    return new BlobStoreError(`There is no ${where}. Create the bucket, or name another one.`);
  if (SIGNATURES.includes(code))
    return new BlobStoreError(
      `The credentials are refused at ${where} (${answer}). Check them, and the clock.`,
    );
  if (status === 403)
    return new BlobStoreError(
      `${what} is not allowed at ${where} (${answer}). The credentials need s3:GetObject, ` +
        's3:PutObject and s3:ListBucket there.',
    );
  if (code === 'PermanentRedirect' || code === 'AuthorizationHeaderMalformed')
    return new BlobStoreError(
      `The ${where} is in another region (${answer}). Name it: ?region=REGION.`,
    );
  if (!isTemporary(failure))
    return new BlobStoreError(`${what} was refused at ${where} (${answer}).`);
  return new BlobStoreError(
    `${what} failed at ${where} (${answer}), also when it was tried again.`,
  );
};
