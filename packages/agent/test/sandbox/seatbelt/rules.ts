import assert from 'node:assert/strict';

/** Reads a profile of Seatbelt and decides acts by it: of the rules that match an act, the last one counts. */

/** What a process wants to do. `path`: of a file or a socket; none for an address of the network. */
export type Act = {
  readonly operation: string;
  readonly path?: string;
  /** Of a service, a kernel value, or the process that is meant. */
  readonly name?: string;
  readonly extension?: string;
};

type Expression = string | { readonly text: string } | readonly Expression[];

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|([()])|([^\s()"]+))/y;

/** Every word is one that profiles in use have: nothing tries this one on a Mac here. */
const OPERATIONS = new Set(
  `process-exec process-fork process-info* signal ipc-posix-sem ipc-posix-shm pseudo-tty sysctl-read mach-lookup
   file-read* file-map-executable file-write-data file-ioctl file-write* file-read-metadata file-write-unlink
   network* network-outbound`.split(/\s+/),
);

const readExpressions = (text: string): readonly Expression[] => {
  assert.doesNotMatch(text, /[\\;']/, 'nothing that needs quoting');
  const open: Expression[][] = [[]];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const [, string, bracket, word] =
      TOKEN.exec(text) ?? assert.fail(`no token at ${TOKEN.lastIndex}`);
    if (bracket === '(') open.push([]);
    else if (bracket === ')') {
      const done = open.pop() ?? assert.fail();
      (open.at(-1) ?? assert.fail('a bracket too many')).push(done);
    } else open.at(-1)?.push(string === undefined ? (word ?? '') : { text: string.slice(1, -1) });
  }
  assert.equal(open.length, 1, 'a bracket is missing');
  return open[0] ?? [];
};

type Filter = { readonly source: string; matches(act: Act): boolean };

export type Rule = {
  readonly verdict: 'allow' | 'deny';
  readonly operations: readonly string[];
  /** None: every act. */
  readonly filters: readonly Filter[];
};

const isText = (one: Expression | undefined): one is { readonly text: string } =>
  typeof one === 'object' && 'text' in one;

const isWithin = (place: string, folder: string): boolean =>
  place === folder || place.startsWith(folder === '/' ? '/' : `${folder}/`);

const readFilter = (expression: Expression, parameters: readonly string[]): Filter => {
  assert.ok(Array.isArray(expression), 'a filter is a list');
  const [kind, ...rest] = expression as readonly Expression[];
  const value = (): string => {
    const [first] = rest;
    if (isText(first)) return first.text;
    const [param, name] = first as readonly Expression[];
    assert.ok(param === 'param' && isText(name) && rest.length === 1);
    return parameters[Number(name.text.slice(1))] ?? assert.fail(`no parameter ${name.text}`);
  };
  const source = JSON.stringify(expression);
  const onPath = (test: (path: string) => boolean): Filter => ({
    source: kind === 'regex' ? source : `${String(kind)} ${value()}`,
    matches: ({ path }) => path !== undefined && test(path),
  });
  switch (kind) {
    case 'subpath':
      return onPath((path) => isWithin(path, value()));
    case 'literal':
      return onPath((path) => path === value());
    case 'regex': {
      const pattern = new RegExp(value(), 's');
      return onPath((path) => pattern.test(path));
    }
    case 'global-name':
      return { source, matches: ({ name }) => name === value() };
    case 'sysctl-name-prefix':
      return { source, matches: ({ name }) => name?.startsWith(value()) === true };
    case 'target':
      assert.deepEqual(rest, ['same-sandbox']);
      return { source, matches: ({ name }) => name === 'same-sandbox' };
    case 'extension':
      return { source, matches: ({ extension }) => extension === value() };
    case 'require-all': {
      const all = rest.map((one) => readFilter(one, parameters));
      return { source, matches: (act) => all.every((one) => one.matches(act)) };
    }
    default:
      return assert.fail(`unknown filter ${source}`);
  }
};

/** The rules of a profile, in their order. `(deny default)` is the first one. */
export const readRules = (text: string, parameters: readonly string[]): readonly Rule[] => {
  const [version, ...rules] = readExpressions(text);
  assert.deepEqual(version, ['version', '1']);
  return rules.map((rule) => {
    const [verdict, ...rest] = rule as readonly Expression[];
    assert.ok(verdict === 'allow' || verdict === 'deny');
    const operations = rest.filter((one) => typeof one === 'string');
    for (const one of operations) assert.ok(one === 'default' || OPERATIONS.has(one), one);
    const filters = rest.filter((one) => typeof one !== 'string');
    return {
      verdict,
      operations,
      filters: filters.map((one) => readFilter(one, parameters)),
    };
  });
};

const names = (operations: readonly string[], operation: string): boolean =>
  operations.some(
    (one) =>
      one === 'default' ||
      one === operation ||
      (one.endsWith('*') && operation.startsWith(one.slice(0, -1))),
  );

/** What decides an act: a rule, and one of its filters. */
export type Decision = { readonly rule: Rule; readonly filter: Filter | null };

export const decide = (rules: readonly Rule[], act: Act): Decision => {
  for (const rule of rules.toReversed()) {
    if (!names(rule.operations, act.operation)) continue;
    const filter = rule.filters.find((one) => one.matches(act)) ?? null;
    if (filter !== null || rule.filters.length === 0) return { rule, filter };
  }
  return assert.fail('no rule is the last');
};
