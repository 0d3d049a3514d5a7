/** Where the nodes on an engine keep long texts: a folder that all of them reach, or a bucket of an S3-compatible store. */

export type S3Place = {
  readonly kind: 's3';
  readonly bucket: string;
  /** Precedes the names of the objects; empty, or ends with `/`. */
  readonly prefix: string;
  /** null: that of the environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), or Amazon's. */
  readonly endpoint: string | null;
  /** null: that of the environment (AWS_REGION) or of the shared configuration files. */
  readonly region: string | null;
};

export type BlobPlace = { readonly kind: 'folder'; readonly path: string } | S3Place;

const FORM =
  's3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=REGION, of which all after BUCKET may be left out';

const isEndpoint = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '';
};

const faultIn = (url: URL): string | null => {
  if (url.username !== '' || url.password !== '')
    return 'it has credentials in it. Put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.host)) return 'it names no bucket';
  if (!/^(\/[\w.-]+)*\/?$/.test(url.pathname))
    return 'its prefix may have letters, digits, "-", "_", "." and "/" only';
  const wrong = [...url.searchParams.keys()].find((name) => name !== 'endpoint' && name !== 'region');
  if (wrong !== undefined) return `it has the unknown parameter ${wrong}`;
  const endpoint = url.searchParams.get('endpoint');
  if (endpoint === null || isEndpoint(endpoint)) {
    const { username = '', password = '' } = endpoint === null ? {} : new URL(endpoint);
    return username + password === ''
      ? null
      : 'its endpoint has credentials in it. Put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  }
  return 'its endpoint is not http://HOST:PORT or https://HOST:PORT';
};

export type ReadS3Place = { readonly place: S3Place } | { readonly fault: string };

/** Reads `s3://BUCKET/PREFIX?endpoint=…&region=…`. The fault does not repeat the text, which may hold a secret. */
export const readS3Place = (text: string): ReadS3Place => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const fault = url === null ? 'it is no address' : faultIn(url);
  if (url === null || fault !== null) return { fault: `it can't be used: ${fault}. The form is ${FORM}.` };
  const prefix = url.pathname.replace(/^\//, '');
  return {
    place: {
      kind: 's3',
      bucket: url.host,
      prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`,
      endpoint: url.searchParams.get('endpoint')?.replace(/\/$/, '') ?? null,
      region: url.searchParams.get('region'),
    },
  };
};
