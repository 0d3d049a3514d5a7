/**
 * Put in place of the platform's web streams in the bundle, which cost much at each start and for
 * each piece of a reply: see packages/agent/src/platform/web-streams.ts.
 */
export {
  LeanReadable as ReadableStream,
  LeanTextDecoder as TextDecoderStream,
  LeanTransform as TransformStream,
} from '../packages/agent/src/platform/web-streams.js';
