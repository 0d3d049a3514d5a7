import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { isDeep } from '../../../../test/tier.js';
import type { EnvironmentKind } from '../../src/ports.js';
import { runCell, withEnvironment } from './conformance.js';

/** Inputs from outside, and the outside that code must not reach. */

const quote = (text: string): string => JSON.stringify(text);

const inputTests = (kind: EnvironmentKind): void => {
  const isJavaScript = kind.language === 'javascript';
  const length = (value: string): string => (isJavaScript ? `${value}.length` : `len(${value})`);

  it('one input is its text, several are a list, none is an empty list', async () => {
    const show = isJavaScript
      ? 'print(JSON.stringify(context))'
      : 'import json\nprint(json.dumps(context))';
    await withEnvironment(kind, ['only'], async (environment) => {
      assert.equal((await runCell(environment, show)).stdout, '"only"\n');
    });
    await withEnvironment(kind, ['a', '', 'c'], async (environment) => {
      const { stdout } = await runCell(environment, show);
      assert.deepEqual(JSON.parse(stdout), ['a', '', 'c']);
    });
    await withEnvironment(kind, [], async (environment) => {
      assert.equal((await runCell(environment, show)).stdout, '[]\n');
    });
  });

  it('texts come in as they are: CRLF, NUL, a byte order mark, accents, astral characters; what is no UTF-8 is marked', () => {
    const text = 'a\r\nb\0c\ufeffé中\u{1f600}\u2028z';
    const code = isJavaScript
      ? `print(JSON.stringify(context[0]) === ${quote(quote(text))}, context[0].length, context[1])`
      : `print(str(context[0] == ${quote(text)}).lower(), len(context[0]), context[1])`;
    return withEnvironment(kind, [text, Buffer.from([0x61, 0xff, 0x62])], async (environment) => {
      const { stdout, stderr } = await runCell(environment, code);
      assert.equal(
        stdout,
        `true ${isJavaScript ? text.length : [...text].length} a\ufffdb\n`,
        stderr,
      );
    });
  });

  it('a large input is there without being copied into any prompt', () => {
    const line = 'some words about é, 12345\n';
    const text = line.repeat((isDeep ? 50_000_000 : 5_000_000) / Buffer.byteLength(line));
    const lines = text.length / line.length;
    const count = isJavaScript ? 'context.split("\\n").length - 1' : 'context.count("\\n")';
    return withEnvironment(
      kind,
      [text],
      async (environment) => {
        const report = await runCell(environment, `print(${length('context')}, ${count})`, {
          deadlineMs: 60_000,
        });
        assert.equal(report.stdout, `${text.length} ${lines}\n`, report.stderr);
        const some = isJavaScript ? 'context.slice(0, 10)' : 'context[0:10]';
        assert.equal(
          (await runCell(environment, `print(llm_query(${some}))`)).stdout,
          'llm: some words\n',
        );
      },
      { memoryMax: 512 * 1024 * 1024 },
    );
  });

  it('the inputs are found by name, whatever the names are, until a cell binds `names` to something else', () => {
    const inputNames = [
      'a.txt',
      'deep/a.txt',
      'with blank\nand line',
      '__proto__',
      'get',
      '7',
      '🐾',
    ];
    const [ask, look, rebind, mine] = isJavaScript
      ? [
          'print(Object.keys(names).length, names["deep/a.txt"], names["with blank\\nand line"], names["__proto__"], names["🐾"], names["7"])',
          'print([...names.keys()].length, names.has("a.txt"), names.size, [...names][0].join(), show_vars().includes("names"))',
          'let names = ["mine"]',
          'print(names[0], show_vars())',
        ]
      : [
          'print(len(list(names)), names["deep/a.txt"], names["with blank\\nand line"], names["__proto__"], names["🐾"], names["7"])',
          'print(len(names.keys()), str("a.txt" in names).lower(), len(names), ",".join(list(names.items())[0]), str("names" in show_vars()).lower())',
          'names = ["mine"]',
          'print(names[0], show_vars())',
        ];
    const texts = inputNames.map((_, index) => `text ${index}`);
    return withEnvironment(
      kind,
      texts,
      async (environment) => {
        const first = await runCell(environment, ask);
        assert.equal(first.stdout, '7 text 1 text 2 text 3 text 6 text 5\n', first.stderr);
        assert.equal((await runCell(environment, look)).stdout, '7 true 7 a.txt,text 0 false\n');
        assert.equal((await runCell(environment, rebind)).status, 'ok');
        assert.match(
          (await runCell(environment, mine)).stdout,
          /^mine names: (Array|list) \(1\)\n$/,
        );
      },
      { names: inputNames },
    );
  });

  it('an input that is not there is said when it is started', () =>
    assert.rejects(
      kind.start({ contexts: ['/no/such/file'], names: ['file'], outputMax: 100, memoryMax: 1e8 }),
      /no\/such\/file|ENOENT/,
    ));

  it('a variable is read as text: texts as they are, others as what they stand for, built-ins and unknown names not at all', () =>
    withEnvironment(kind, ['the context'], async (environment) => {
      const code = isJavaScript
        ? 't = "a \\"b\\""; n = 1.5; l = [1, "x"]; o = { a: { b: null } }; e = ""; u = undefined; f = () => 1; x = "[\\ud83d]"'
        : 't = "a \\"b\\""; n = 1.5; l = [1, "x"]; o = {"a": {"b": None}}; e = ""; u = None; f = lambda: 1; x = "[\\ud83d]"';
      assert.equal((await runCell(environment, code)).status, 'ok');
      const read = (name: string): Promise<string | null> => environment.read(name);
      assert.equal(await read('t'), 'a "b"');
      assert.equal(await read('n'), '1.5');
      assert.match((await read('l')) ?? '', /^\[1, ?["']x["']\]$/);
      assert.match((await read('o')) ?? '', /^\{["']a["']: ?\{["']b["']: ?(null|None)\}\}$/);
      assert.equal(await read('e'), '');
      assert.match((await read('u')) ?? '', /^(undefined|None)$/);
      assert.match((await read('f')) ?? '', /function/i);
      assert.equal(await read('x'), '[\ufffd]');
      assert.equal(await read('context'), 'the context');
      for (const name of ['missing', 'Object', 'len', '', 'a.b', '__proto__', 't + 1', '"t"']) {
        assert.equal(await read(name), null, name);
      }
    }));
};

/** A file that the code must not read, a folder that it must not write to, a server that it must not reach. */
const withOutside = async (
  look: (place: {
    readonly secret: string;
    readonly folder: string;
    readonly port: number;
  }) => Promise<void>,
): Promise<number> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-outside-'));
  const secret = path.join(folder, 'secret.txt');
  writeFileSync(secret, 'xyzzy-secret');
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Listening on a port, so the address is one of TCP.
  const { port } = server.address() as AddressInfo;
  try {
    await look({ secret, folder, port });
  } finally {
    await new Promise((resolve) => server.close(resolve));
    removeFolderSync(folder);
  }
  return connections;
};

const fileCodes = (kind: EnvironmentKind, secret: string, target: string): readonly string[] =>
  kind.language === 'javascript'
    ? [
        `print(require("fs").readFileSync(${quote(secret)}, "utf8"))`,
        `print((await import("node:fs")).readFileSync(${quote(secret)}, "utf8"))`,
        `print(process.getBuiltinModule("fs").readFileSync(${quote(secret)}, "utf8"))`,
        `print(require("child_process").execSync("cat " + ${quote(secret)}).toString())`,
        `require("fs").writeFileSync(${quote(target)}, "written")`,
        'print(JSON.stringify(process.env))',
        `print((0, eval)("import('fs')") && (await (0, eval)("import('fs')")).readFileSync(${quote(secret)}, "utf8"))`,
      ]
    : [
        `print(open(${quote(secret)}).read())`,
        `import os\nprint(os.popen("cat " + ${quote(secret)}).read())`,
        `import subprocess\nprint(subprocess.check_output(["cat", ${quote(secret)}]))`,
        `open(${quote(target)}, "w").write("written")`,
        'import os\nprint(dict(os.environ))',
      ];

const socketCodes = (kind: EnvironmentKind, port: number): readonly string[] =>
  kind.language === 'javascript'
    ? [
        `await fetch("http://127.0.0.1:${port}/")`,
        `await new Promise((resolve, reject) => require("net").connect(${port}, "127.0.0.1").on("connect", resolve).on("error", reject))`,
        `new WebSocket("ws://127.0.0.1:${port}/")`,
      ]
    : [
        `import socket\nsocket.create_connection(("127.0.0.1", ${port}), 2)`,
        `import urllib.request\nurllib.request.urlopen("http://127.0.0.1:${port}/", timeout=2)`,
      ];

export const outsideTests = (kind: EnvironmentKind): void => {
  inputTests(kind);

  it('files, programs, the environment and the network are out of reach, and the next cell works', async () => {
    process.env.PAWL_TEST_SECRET = 'xyzzy-secret';
    try {
      const connections = await withOutside(({ secret, folder, port }) =>
        withEnvironment(kind, ['context'], async (environment) => {
          const target = path.join(folder, 'written.txt');
          for (const code of [...fileCodes(kind, secret, target), ...socketCodes(kind, port)]) {
            const report = await runCell(environment, code, { deadlineMs: 5_000 });
            assert.doesNotMatch(report.stdout + report.stderr, /xyzzy/, code);
          }
          assert.equal(existsSync(target), false);
          assert.equal((await runCell(environment, 'print(context)')).stdout, 'context\n');
        }),
      );
      assert.equal(connections, 0);
    } finally {
      delete process.env.PAWL_TEST_SECRET;
    }
  });
};
