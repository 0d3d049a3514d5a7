/** Put in place of the platform's web streams in the bundle: see packages/agent/src/models/http/lean-streams.ts. */
export {
  LeanReadable as ReadableStream,
  LeanTextDecoder as TextDecoderStream,
  LeanTransform as TransformStream,
} from '../packages/agent/src/models/http/lean-streams.js';
