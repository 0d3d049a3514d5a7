/** `@pawl/restate`: Pawl's sessions on Restate. Start nodes with `startNode`, use them with `createRestateRuntime`. */
export { type S3BlobsOptions, s3Blobs } from './blobs/s3-blobs.js';
export { BlobStoreError } from './blobs/s3-faults.js';
export {
  createRestateRuntime,
  type RestateRuntime,
  type RestateRuntimeOptions,
} from './client/restate-runtime.js';
export { NodeStartError } from './engine/check-engine.js';
export { register, version } from './engine/register.js';
export { type HttpLive, type HttpLiveOptions, httpLive } from './live/http-live.js';
export { type LiveChannel, localLive } from './live/live-channel.js';
export {
  type EngineNode,
  machineFingerprint,
  startEngineNode,
} from './node/engine-node.js';
export type { EquippedSession } from './node/session-worker.js';
export { type NodeOptions, type PawlNode, startNode } from './node/start-node.js';
export { EngineError } from './session/session-store.js';
