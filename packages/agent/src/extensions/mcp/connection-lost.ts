/** The connection to a server over HTTP ended before the answer. */
export class ConnectionLost extends Error {}

/** Code of the answer that takes the place of one that never came. Servers use other codes. */
export const LOST_CODE = -32_097;
export const LOST_TEXT = 'the connection ended before it had answered';

export const isLost = (error: Error): boolean =>
  error instanceof ConnectionLost || ('code' in error && error.code === LOST_CODE);
