/**
 * Texts as objects of an S3-compatible store, named by their sha256.
 *
 * 1. A text has one name and a name one text, so two nodes that store the same text at once do no
 *    harm.
 * 2. Content is compared with its name: a damaged object is an error, and never a text.
 * 3. The library repeats a request that failed for a passing reason. A body that breaks off is
 *    asked for again here, since the library has let go of the request by then.
 * 4. Credentials are those of the environment, of the shared configuration files, or of the
 *    computer's role.
 */

import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import type { GetObjectCommandOutput, S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import type { Blobs, S3Place } from 'pawl/engine';

export type S3BlobsOptions = Omit<S3Place, 'kind'> & {
  /** How long one text may take, with all repetitions. Default: one minute. */
  readonly deadlineMs?: number;
  /** How long the store may be silent. Default: 10 seconds. */
  readonly silenceMs?: number;
};

const DEADLINE_MS = 60_000;
const SILENCE_MS = 10_000;
const CONNECTING_MS = 5_000;
const ATTEMPTS = 4;
const BYTES_MAX = 1024 * 1024 * 1024;

type Library = typeof import('@aws-sdk/client-s3');
type Opened = { readonly library: Library; readonly client: S3Client };

const hashBytes = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

class S3Blobs implements Blobs {
  readonly #options: S3BlobsOptions;
  readonly #where: string;
  #opened: Promise<Opened> | null = null;

  constructor(options: S3BlobsOptions) {
    this.#options = options;
    const { bucket, endpoint } = options;
    this.#where = `bucket ${bucket}${endpoint === null ? '' : ` of ${endpoint}`}`;
  }

  async put(text: string): Promise<string> {
    const bytes = Buffer.from(text);
    const sha256 = hashBytes(bytes);
    await this.#within('Writing', async (signal) => {
      const { library, client } = await this.#open();
      const command = new library.PutObjectCommand({
        ...this.#object(sha256),
        Body: bytes,
        ContentType: 'text/plain; charset=utf-8',
      });
      await client.send(command, { abortSignal: signal });
    });
    return sha256;
  }

  async get(sha256: string): Promise<string | undefined> {
    if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
    const bytes = await this.#within('Reading', async (signal) => this.#read(sha256, signal));
    if (bytes === null) return undefined;
    if (hashBytes(bytes) === sha256) return bytes.toString();
    const { Key } = this.#object(sha256);
    throw new BlobStoreError(
      `The object ${Key} in the ${this.#where} is damaged: its content does not fit its ` +
        'name. Put it back from a backup.',
    );
  }

  #object(sha256: string): { readonly Bucket: string; readonly Key: string } {
    const { bucket, prefix } = this.#options;
    return { Bucket: bucket, Key: `${prefix}${sha256.slice(0, 2)}/${sha256}` };
  }

  /** A body that breaks off is asked for again. Null: there is no such object. */
  async #read(sha256: string, signal: AbortSignal): Promise<Buffer | null> {
    for (let attempt = 1; ; attempt++) {
      const object = await this.#ask(sha256, signal);
      if (object === null) return null;
      try {
        return await readObject(object, signal);
      } catch (error) {
        if (signal.aborted || attempt === ATTEMPTS || error instanceof BlobStoreError) throw error;
      }
    }
  }

  async #ask(sha256: string, signal: AbortSignal): Promise<GetObjectCommandOutput | null> {
    const { library, client } = await this.#open();
    try {
      return await client.send(new library.GetObjectCommand(this.#object(sha256)), {
        abortSignal: signal,
      });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async #within<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { deadlineMs = DEADLINE_MS } = this.#options;
    const signal = AbortSignal.timeout(deadlineMs);
    try {
      return await work(signal);
    } catch (error) {
      if (signal.aborted)
        throw new BlobStoreError(
          `${what} took longer than ${deadlineMs / 1_000} s at the ${this.#where}. Look ` +
            'whether the store is overloaded.',
          true,
        );
      throw inWords(error, what, this.#where);
    }
  }

  /**
   * The library is loaded with the first text. Its search for credentials fails in many ways, all
   * with one meaning.
   */
  async #open(): Promise<Opened> {
    this.#opened ??= import('@aws-sdk/client-s3').then((library) => ({
      library,
      client: new library.S3Client(clientSettings(this.#options)),
    }));
    const opened = await this.#opened;
    try {
      await opened.client.config.credentials(); // the library caches them until they expire
    } catch {
      throw noCredentials(this.#where);
    }
    return opened;
  }
}

const readObject = async (
  { Body, ContentLength }: GetObjectCommandOutput,
  signal: AbortSignal,
): Promise<Buffer> => {
  if (!(Body instanceof Readable)) throw new Error('the answer has no body');
  if ((ContentLength ?? 0) > BYTES_MAX) {
    Body.destroy();
    throw new BlobStoreError('A text in the store is larger than 1 GB, so it is none of Pawl.');
  }
  const chunks: Buffer[] = [];
  for await (const chunk of addAbortSignal(signal, Body)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (ContentLength !== undefined && bytes.length !== ContentLength)
    throw new Error('the body broke off');
  return bytes;
};

const clientSettings = ({
  endpoint,
  region,
  silenceMs = SILENCE_MS,
}: S3BlobsOptions): S3ClientConfig => {
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = process.env;
  const isOther = (endpoint ?? AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL) !== undefined;
  return {
    ...(endpoint === null ? {} : { endpoint }),
    // Stores beside Amazon's have no regions; the name is a part of the signature only.
    ...(region !== null
      ? { region }
      : isOther && !process.env.AWS_REGION
        ? { region: 'us-east-1' }
        : {}),
    forcePathStyle: isOther,
    maxAttempts: ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECTING_MS,
      requestTimeout: silenceMs,
      socketTimeout: silenceMs,
      throwOnRequestTimeout: true,
    },
    // Not every store knows the newer checksums; the signature covers the content.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  };
};

/** All nodes must name the same bucket and prefix. */
export const s3Blobs = (options: S3BlobsOptions): Blobs => new S3Blobs(options);

/**
 * Stores a text and reads it again, so that a wrong bucket or key is found now and not by the first
 * session.
 */
export const checkBlobs = async (blobs: Blobs): Promise<void> => {
  const sha256 = await blobs.put('A node of Pawl has looked whether it can store texts here.\n');
  if ((await blobs.get(sha256)) === undefined)
    throw new BlobStoreError('The store for blobs does not find the text that it has just taken.');
};

// Errors of a store in words. Only the code and the status of an answer are repeated: its message
// belongs to the store, and may repeat a part of what was sent.

/** `isPassing`: the same request may work a moment later. */
export class BlobStoreError extends Error {
  override readonly name = 'BlobStoreError';
  readonly isPassing: boolean;

  constructor(message: string, isPassing = false) {
    super(message);
    this.isPassing = isPassing;
  }
}

/** The fields of the library's errors that are used. */
type Failure = { readonly code: string; readonly status: number | null };

const readFailure = (error: unknown): Failure => {
  if (!(error instanceof Error)) return { code: 'Unknown', status: null };
  const { $metadata, code } = error as {
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly code?: unknown;
  };
  const named = error.name === 'Error' && typeof code === 'string' ? code : error.name;
  const status = $metadata?.httpStatusCode;
  return {
    code: /^[\w.-]{1,64}$/.test(named) ? named : 'Unknown',
    status: typeof status === 'number' ? status : null,
  };
};

/** Whether the store has answered that there is no such object. */
const isMissing = (error: unknown): boolean => {
  const { code, status } = readFailure(error);
  return code === 'NoSuchKey' || (code === 'NotFound' && status === 404);
};

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
      'AWS_PROFILE, or give the computer a role.',
  );

/**
 * The words for an error of the library. `what`: the request that failed; `where`: the bucket and
 * its store.
 */
const inWords = (error: unknown, what: string, where: string): BlobStoreError => {
  if (error instanceof BlobStoreError) return error;
  const { code, status } = readFailure(error);
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
  if (status !== null && status < 500 && status !== 429 && status !== 408)
    return new BlobStoreError(`${what} was refused at ${where} (${answer}).`);
  return new BlobStoreError(
    `${what} failed at ${where} (${answer}), also when it was tried again.`,
    true,
  );
};
