/**
 * `@pawl/restate`: Pawl's sessions on Restate. Start nodes with `startNode`, use them with
 * `createRestateRuntime`.
 */
export { NodeStartError } from './engine-check.js';
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
  type PawlNode,
  startEngineNode,
  startNode,
} from './node.js';
export { register, version } from './registration.js';
export {
  createRestateRuntime,
  type RestateRuntime,
  type RestateRuntimeOptions,
} from './runtime.js';
export { BlobStoreError, type S3BlobsOptions, s3Blobs } from './s3-blobs.js';
export { EngineError } from './session-store.js';
export type { EquippedSession } from './session-worker.js';
