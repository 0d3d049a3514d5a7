import type http from 'node:http';

/**
 * `node:http` without the cost of an import: from Node 22 on, an import evaluates all its exports, one of which loads
 * undici, 35-45 ms of a start.
 */
export const nodeHttp: typeof http = process.getBuiltinModule('node:http');
