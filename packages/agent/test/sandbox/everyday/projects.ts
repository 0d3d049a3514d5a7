import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Small real repositories in which everyday commands are run. */

type Files = Readonly<Record<string, string>>;

const node: Files = {
  'package.json': JSON.stringify(
    {
      name: 'app',
      version: '1.0.0',
      type: 'module',
      scripts: {
        test: 'node --test',
        build: 'node build.js',
        lint: 'node --check src/sum.js && echo clean',
        start: 'node src/server.js',
        fails: 'exit 3',
        pretest: 'echo before the tests',
      },
    },
    null,
    2,
  ),
  'src/sum.js':
    'export const sum = (...numbers) => numbers.reduce((total, one) => total + one, 0);\n',
  'src/cli.js':
    "#!/usr/bin/env node\nimport { sum } from './sum.js';\nconsole.log(sum(...process.argv.slice(2).map(Number)));\n",
  'src/server.js': [
    "import { createServer } from 'node:http';",
    "const server = createServer((_, response) => response.end('hello\\n'));",
    "server.listen(0, '127.0.0.1', async () => {",
    "  const answer = await fetch('http://127.0.0.1:' + server.address().port);",
    '  console.log(answer.status, await answer.text());',
    '  server.close();',
    '});',
    '',
  ].join('\n'),
  'test/sum.test.js': [
    "import assert from 'node:assert/strict';",
    "import { test } from 'node:test';",
    "import { sum } from '../src/sum.js';",
    "test('adds', () => assert.equal(sum(1, 2), 3));",
    '',
  ].join('\n'),
  'build.js':
    "import { cpSync, mkdirSync } from 'node:fs';\nmkdirSync('dist', { recursive: true });\ncpSync('src', 'dist', { recursive: true });\nconsole.log('built');\n",
  'vendor/left/package.json': JSON.stringify({ name: 'left', version: '1.0.0', main: 'index.js' }),
  'vendor/left/index.js': "module.exports = (text) => text.padStart(8, ' ');\n",
  '.gitignore': 'node_modules\ndist\n*.log\n',
  'notes/todo.txt': 'one\ntwo\nthree\ntwo\n',
  'README.md': '# App\n\nAdds numbers.\n',
  'data.json': '{"name":"app","list":[1,2,3],"nested":{"a":true}}\n',
  'table.csv': 'name,size\nb,20\na,3\nc,100\n',
};

const python: Files = {
  'pkg/__init__.py': '',
  'pkg/words.py': 'def count(text):\n    return len(text.split())\n',
  'pkg/__main__.py':
    'import sys\nfrom pkg.words import count\nprint(count(" ".join(sys.argv[1:])))\n',
  'tests/__init__.py': '',
  'tests/test_words.py': [
    'import unittest',
    'from pkg.words import count',
    'class Words(unittest.TestCase):',
    '    def test_count(self):',
    '        self.assertEqual(count("a b c"), 3)',
    '',
  ].join('\n'),
  'pool.py': [
    'from multiprocessing import Pool, Manager',
    'def twice(number):',
    '    return number * 2',
    "if __name__ == '__main__':",
    '    with Pool(2) as pool:',
    '        print(pool.map(twice, range(4)))',
    '    with Manager() as manager:',
    '        shared = manager.list([1])',
    '        shared.append(2)',
    '        print(list(shared))',
    '',
  ].join('\n'),
  'serve.py': [
    'import threading, urllib.request',
    'from http.server import HTTPServer, SimpleHTTPRequestHandler',
    'class Quiet(SimpleHTTPRequestHandler):',
    '    def log_message(self, *_): pass',
    "server = HTTPServer(('127.0.0.1', 0), Quiet)",
    'threading.Thread(target=server.serve_forever, daemon=True).start()',
    "print(urllib.request.urlopen('http://127.0.0.1:%d/pkg/words.py' % server.server_port).status)",
    '',
  ].join('\n'),
  'setup.cfg': '[metadata]\nname = pkg\nversion = 1.0\n',
  'data.txt': 'b 2\na 1\nc 3\n',
};

const c: Files = {
  Makefile: [
    'CFLAGS = -O1 -Wall',
    'all: app',
    'app: main.o lib.o',
    '\t$(CC) -o $@ $^',
    '%.o: %.c lib.h',
    '\t$(CC) $(CFLAGS) -c -o $@ $<',
    'test: app',
    '\t./app 3 | grep -x 9',
    'clean:',
    '\trm -f app *.o',
    'install: app',
    '\tinstall -D app $(PREFIX)/bin/app',
    '.PHONY: all test clean install',
    '',
  ].join('\n'),
  'main.c':
    '#include <stdio.h>\n#include <stdlib.h>\n#include "lib.h"\nint main(int count, char **words) {\n  printf("%d\\n", square(count > 1 ? atoi(words[1]) : 0));\n  return 0;\n}\n',
  'lib.c': '#include "lib.h"\nint square(int number) { return number * number; }\n',
  'lib.h': 'int square(int number);\n',
  'broken.c': 'int main(void) { return missing; }\n',
};

const kinds = { node, python, c } as const;
export type ProjectKind = keyof typeof kinds;

/** Git as a user has it, with a fixed time so that two copies have the same hashes. */
const GIT_ENVIRONMENT = {
  ...process.env,
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
  GIT_AUTHOR_DATE: '2026-01-01T12:00:00Z',
  GIT_COMMITTER_DATE: '2026-01-01T12:00:00Z',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
};

/** Makes the repository in `folder`: three commits, a branch, a tag, one uncommitted change. */
export const makeProject = (kind: ProjectKind, folder: string): void => {
  const git = (...words: readonly string[]): void =>
    void execFileSync('git', ['-C', folder, ...words], { env: GIT_ENVIRONMENT, stdio: 'ignore' });
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(kinds[kind])) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text, { mode: file.endsWith('cli.js') ? 0o755 : 0o644 });
  }
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'Ada');
  git('config', 'user.email', 'ada@example.com');
  git('add', '-A');
  git('commit', '-q', '-m', 'First');
  git('branch', 'feature');
  writeFileSync(path.join(folder, 'CHANGES'), 'one\n');
  git('add', '-A');
  git('commit', '-q', '-m', 'Second');
  git('tag', 'v1');
  git('checkout', '-q', 'feature');
  writeFileSync(path.join(folder, 'FEATURE'), 'two\n');
  git('add', '-A');
  git('commit', '-q', '-m', 'On the branch');
  git('checkout', '-q', 'main');
  writeFileSync(path.join(folder, 'CHANGES'), 'one\nmore\n');
};
