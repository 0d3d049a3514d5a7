/**
 * Runs within the process of a test file: writes what came of its tests for the process that runs
 * them all.
 */

import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { spentCpuMs } from './cpu-time.js';
import type { OutcomeLine } from './outcome.js';

type Ended = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>;

/** The error as the test saw it: node wraps it. */
const describeError = (error: unknown): string => {
  const found = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return typeof found === 'string' ? found : inspect(found, { depth: 8 });
};

const failureOf = (details: Ended['data']['details']): string =>
  'error' in details ? describeError(details.error) : '';

const kindOf = ({
  type,
  data: { skip, todo },
}: Ended): 'passed' | 'failed' | 'skipped' | 'todo' => {
  if (skip !== undefined && skip !== false) return 'skipped';
  if (todo !== undefined && todo !== false) return 'todo';
  return type === 'test:pass' ? 'passed' : 'failed';
};

const lineOf = (event: Ended, names: readonly string[]): OutcomeLine => {
  const { details } = event.data;
  const kind = kindOf(event);
  const isFailed = kind === 'failed';
  if (details.type !== 'suite' || kind === 'skipped') {
    return { type: kind, name: names.join(' > '), error: isFailed ? failureOf(details) : '' };
  }
  // A suite fails because something in it failed, which has been reported.
  const ownFault = isFailed && 'error' in details && !details.error.message.includes('subtest');
  return ownFault
    ? { type: 'failed', name: names.join(' > '), error: failureOf(details) }
    : { type: 'suite', name: names.join(' > '), durationMs: details.duration_ms };
};

/** Node's own summary at the end; the tests of all files are counted elsewhere. */
const COUNT = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

const encode = (line: OutcomeLine): string => `${JSON.stringify(line)}\n`;

/** Node's events as lines of JSON. */
// biome-ignore lint/style/noDefaultExport: node takes a reporter as the default export of a module
export default async function* writeOutcomes(
  events: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  const names: string[] = [];
  for await (const event of events) {
    if (event.type === 'test:start') {
      names.length = event.data.nesting;
      names.push(event.data.name);
    }
    if (event.type === 'test:pass' || event.type === 'test:fail') {
      const { nesting, name } = event.data;
      yield encode(lineOf(event, [...names.slice(0, nesting), name]));
    }
    if (event.type === 'test:diagnostic' && !COUNT.test(event.data.message)) {
      yield encode({ type: 'note', text: event.data.message });
    }
  }
  yield encode({ type: 'ended', cpuMs: spentCpuMs() });
}
