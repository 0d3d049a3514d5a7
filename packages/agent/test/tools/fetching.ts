import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { ToolContext, ToolOutcome } from '../../src/ports/tool.js';
import { createFetchTool } from '../../src/tools/fetch.js';
import type { Lookup } from '../../src/tools/public-get.js';
import { makePlace } from './context.js';

/** A page on a server of this machine, and the tool that reads it. */

export type Serve = (request: http.IncomingMessage, response: http.ServerResponse) => void;

/** A server on this machine; its address without a path. */
export const serve = async (t: TestContext, answer: Serve): Promise<string> => {
  const server = http.createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
};

type Wish = {
  readonly environment?: Readonly<Record<string, string>>;
  readonly lookup?: Lookup;
  readonly signal?: AbortSignal;
  readonly hosts?: readonly string[];
};

/** Judges and runs, as the runtime does when the host is allowed. */
export const fetchPage = async (
  t: TestContext,
  url: string,
  wish: Wish = {},
): Promise<ToolOutcome> => {
  const { environment = {}, signal = new AbortController().signal, lookup } = wish;
  const place = await makePlace(t);
  const tool = createFetchTool(environment, lookup);
  const judged = await tool.judge({ url }, place.workspace);
  assert.ok(judged.kind === 'ok', JSON.stringify(judged));
  const context: ToolContext = {
    workspace: place.workspace,
    batchId: 'batch',
    callId: 'call',
    paths: [],
    hosts: wish.hosts ?? judged.facts.hosts,
    sandbox: 'off',
    signal,
    force: new AbortController().signal,
    files: place.files,
    jobs: place.jobs,
    blobs: { get: async () => undefined, put: async () => '' },
    left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
    progress: () => undefined,
  };
  return tool.run(judged.input, context);
};

export const answers =
  (headers: http.OutgoingHttpHeaders, body: string | Buffer, status = 200): Serve =>
  (_request, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
