/**
 * Stands in for `node:test` while mutants (changes in single places of the sources) are tested:
 * keeps the tests for `runner.ts`, which runs them one by one.
 */

type Context = {
  readonly name: string;
  readonly mock: typeof import('node:test').mock;
  after(clean: () => unknown): void;
  diagnostic(text: string): void;
  test(title: string, body: Body): Promise<void>;
};
type Body = (context: Context) => unknown;

/**
 * The test file that is being loaded, '' between two: told by the bundle, kept by whoever runs it.
 */
export type Place = { file: string };
declare const placeOnTest: Place;

export type Test = {
  readonly file: string;
  readonly title: string;
  readonly run: () => Promise<void>;
};

export const tests: Test[] = [];

const { mock } = process.getBuiltinModule('node:test');

const run = async (name: string, body: Body): Promise<void> => {
  const cleaners: (() => unknown)[] = [() => mock.reset()];
  try {
    const after = (clean: () => unknown): void => void cleaners.push(clean);
    await body({ name, mock, after, diagnostic: () => undefined, test: run });
  } finally {
    for (const clean of cleaners) await clean();
  }
};

const trail: string[] = [];

export const test = (name: string, body: Body): void => {
  const title = [...trail, name].join(', ');
  tests.push({ file: placeOnTest.file, title, run: () => run(title, body) });
};

export const describe = (name: string, body: () => void): void => {
  trail.push(name);
  body();
  trail.pop();
};
