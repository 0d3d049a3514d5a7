/**
 * Put in place of the platform's web streams in the bundle: see
 * packages/agent/src/platform/web-streams.ts.
 */
export {
  LeanReadable as ReadableStream,
  LeanTextDecoder as TextDecoderStream,
  LeanTransform as TransformStream,
} from '../packages/agent/src/platform/web-streams.js';
