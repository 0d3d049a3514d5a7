/**
 * What went wrong at a store, in words. Only the code and the status of an answer are repeated: its message belongs to the
 * store, and may repeat a part of what was sent.
 */

/** `isPassing`: the same request may work a moment later. */
export class BlobStoreError extends Error {
  override readonly name = 'BlobStoreError';
  readonly isPassing: boolean;

  constructor(message: string, isPassing = false) {
    super(message);
    this.isPassing = isPassing;
  }
}

/** What is read of the errors of the library. */
type Failure = { readonly code: string; readonly status: number | null };

const failureOf = (error: unknown): Failure => {
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
export const isMissing = (error: unknown): boolean => {
  const { code, status } = failureOf(error);
  return code === 'NoSuchKey' || (code === 'NotFound' && status === 404);
};

const SIGNATURES = [
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
  'RequestTimeTooSkewed',
];

export const noCredentials = (where: string): BlobStoreError =>
  new BlobStoreError(
    `There are no credentials for ${where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the computer a role.`,
  );

/** The words for an error of the library. `what`: the request that failed; `where`: the bucket and its store. */
export const inWords = (error: unknown, what: string, where: string): BlobStoreError => {
  if (error instanceof BlobStoreError) return error;
  const { code, status } = failureOf(error);
  const said = status === null ? code : `${status} ${code}`;
  if (code === 'NoSuchBucket')
    return new BlobStoreError(`There is no ${where}. Create the bucket, or name another one.`);
  if (SIGNATURES.includes(code))
    return new BlobStoreError(
      `The credentials are refused at ${where} (${said}). Check them, and the clock.`,
    );
  if (status === 403)
    return new BlobStoreError(
      `${what} is not allowed at ${where} (${said}). The credentials need s3:GetObject, s3:PutObject and s3:ListBucket there.`,
    );
  if (code === 'PermanentRedirect' || code === 'AuthorizationHeaderMalformed')
    return new BlobStoreError(`The ${where} is in another region (${said}). Name it: ?region=REGION.`);
  if (status !== null && status < 500 && status !== 429 && status !== 408)
    return new BlobStoreError(`${what} was refused at ${where} (${said}).`);
  return new BlobStoreError(`${what} failed at ${where} (${said}), also when it was tried again.`, true);
};
