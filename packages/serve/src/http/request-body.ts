import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseBounded } from '@pawl/agent/platform/base/parse-bounded-json';
import { ApiFault } from './api-fault.js';

/** Reads the JSON body of a request, within the limit of its key. */

const DEPTH_MAX = 100;

const megabytes = (bytes: number): string => `${Math.round((bytes / 1024 / 1024) * 10) / 10} MB`;

const tooLarge = (bytesMax: number): ApiFault =>
  new ApiFault(
    'tooLarge',
    `The body is larger than ${megabytes(bytesMax)}, the limit of this key. Put the text into a file of the workspace, and name the file.`,
  );

const readBytes = async (incoming: IncomingMessage, bytesMax: number): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming.iterator({ destroyOnReturn: false })) {
    pieces.push(piece as Buffer); // a stream without an encoding
    bytes += (piece as Buffer).length; // the same
    if (bytes > bytesMax) throw tooLarge(bytesMax);
  }
  return Buffer.concat(pieces);
};

/** The body as JSON; an empty body is an empty object. A client that waits for the word to go on (`Expect`) gets it first. */
export const readJson = async (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  bytesMax: number,
): Promise<unknown> => {
  if (Number(incoming.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  if (incoming.headers.expect?.toLowerCase() === '100-continue') outgoing.writeContinue();
  const text = (await readBytes(incoming, bytesMax)).toString('utf8');
  if (text.trim() === '') return {};
  const type = incoming.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new ApiFault('wrongType', 'The body must be JSON. Send the header Content-Type: application/json.');
  const parsed = parseBounded(text, { depthMax: DEPTH_MAX, charactersMax: bytesMax });
  if (parsed.kind === 'ok') return parsed.value;
  const why = parsed.why === 'tooDeep' ? `it nests deeper than ${DEPTH_MAX} levels` : 'it is not JSON';
  throw new ApiFault(
    'badRequest',
    `The body can't be read: ${why}. docs/serve.md has an example of each request.`,
  );
};
