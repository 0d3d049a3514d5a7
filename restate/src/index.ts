/**
 * `@pawl/restate`: Pawl's sessions on Restate. Start nodes with `startNode`, use them with
 * `createRestateRuntime`.
 */
export {
  type HttpLive,
  type HttpLiveOptions,
  httpLive,
  type LiveChannel,
  localLive,
} from './live.js';
export {
  type EngineNode,
  machineFingerprint,
  type NodeOptions,
  NodeStartError,
  type PawlNode,
  register,
  startEngineNode,
  startNode,
  version,
} from './node.js';
export {
  createRestateRuntime,
  type RestateRuntime,
  type RestateRuntimeOptions,
} from './runtime.js';
export { BlobStoreError, type S3BlobsOptions, s3Blobs } from './s3-blobs.js';
export { EngineError } from './session-store.js';
export type { EquippedSession } from './session-worker.js';
