import path from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/**
 * How `npm test` reports: one line a file, failures in full where they happen, then node's own closing lines.
 */

type Count = {
  readonly file: string;
  readonly tests: number;
  readonly failed: number;
  readonly durationMs: number;
};
type Ended = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>;

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ');

/** The error as the test saw it: node wraps it. */
const describeError = (error: unknown): string => {
  const found = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return typeof found === 'string' ? found : inspect(found, { depth: 8 });
};

const relative = (file: string | undefined): string => (file === undefined ? '' : path.relative('', file));

const lineOfFile = ({ file, tests, failed, durationMs }: Count): string => {
  const seconds = (durationMs / 1000).toFixed(1);
  const account = failed > 0 ? `${failed} of ${tests} tests failed` : `${tests} tests`;
  return `${failed > 0 ? '✖' : '✔'} ${relative(file)}: ${account}, ${seconds} s\n`;
};

const lineOfFailure = ({ name, file, details }: Ended['data']): string => {
  if (!('error' in details)) return '';
  const { error } = details;
  // A suite fails because something in it failed, which has been reported.
  if (details.type === 'suite' && error.message.includes('subtest')) return '';
  return `✖ ${name} (${relative(file)})\n${indent(describeError(error))}\n`;
};

/** The count of a file after one more of its tests has ended. Suites count nothing themselves. */
const countIn = (count: Count, { type, data: { nesting, details } }: Ended): Count => {
  const durationMs = count.durationMs + (nesting === 0 ? details.duration_ms : 0);
  if (details.type === 'suite') return { ...count, durationMs };
  return {
    ...count,
    durationMs,
    tests: count.tests + 1,
    failed: count.failed + (type === 'test:fail' ? 1 : 0),
  };
};

/** The events of `run()` as text, in pieces. Tests of a file arrive together, one file after the other. */
export async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let count: Count | null = null;
  for await (const event of events) {
    if (event.type === 'test:stdout' || event.type === 'test:stderr') yield event.data.message;
    if (event.type === 'test:pass' || event.type === 'test:fail') {
      const { file = '' } = event.data;
      if (count !== null && count.file !== file) yield lineOfFile(count);
      if (count?.file !== file) count = { file, tests: 0, failed: 0, durationMs: 0 };
      count = countIn(count, event);
      if (event.type === 'test:fail') yield lineOfFailure(event.data);
    }
    if (event.type === 'test:diagnostic') {
      const { file, message } = event.data;
      if (count !== null && file === undefined) {
        yield lineOfFile(count);
        count = null;
      }
      yield `ℹ ${file === undefined ? '' : `${relative(file)}: `}${message}\n`;
    }
  }
}
