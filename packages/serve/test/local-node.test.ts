import '../../../test/own-process.js';
import { test } from 'node:test';
import { httpChecks } from './http-checks.js';
import { makeLocalNode } from './local-node-runtime.js';
import { streamChecks } from './stream-checks.js';

/** The HTTP API over the runtime inside one process, with journals on disk. */

for (const check of [...httpChecks, ...streamChecks])
  test(`http: ${check.name}`, (context) => check.run(context, makeLocalNode));
