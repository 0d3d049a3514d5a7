import assert from 'node:assert/strict';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { answers, fetchPage, type Serve, serve } from './fetching.js';

// Pages of every kind, as the model reads them.

const HTML =
  '<html><head><title>A &amp; B</title><style>x{}</style></head><body><nav>menu</nav><main><h1>Head</h1><p>One <b>bold</b> <a href="/rel">link</a></p><script>alert(1)</script><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></main></body></html>';

const rows: readonly {
  readonly title: string;
  readonly serve: Serve;
  readonly status?: 'failed';
  readonly shows: readonly (string | RegExp)[];
  readonly hides?: RegExp;
}[] = [
  {
    title: 'HTML comes as Markdown: its main part, without scripts, with whole addresses',
    serve: answers({ 'content-type': 'text/html; charset=utf-8' }, HTML),
    shows: [
      '200 OK, text/html, as Markdown]',
      'A & B',
      '# Head',
      '**bold**',
      /\[link\]\(http:\/\/127\.0\.0\.1:\d+\/rel\)/,
      '| 1 ',
    ],
    hides: /alert|menu|x\{\}/,
  },
  {
    title: 'JSON comes as it is',
    serve: answers({ 'content-type': 'application/json' }, '{"a":1}'),
    shows: ['application/json]\n{"a":1}'],
  },
  {
    title: 'gzip is decompressed',
    serve: answers(
      { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
      zlib.gzipSync('packed'),
    ),
    shows: ['\npacked'],
  },
  {
    title: 'brotli is decompressed',
    serve: answers(
      { 'content-type': 'text/plain', 'content-encoding': 'br' },
      zlib.brotliCompressSync('packed'),
    ),
    shows: ['\npacked'],
  },
  {
    title: 'a body that claims to be gzip and is not fails',
    serve: answers({ 'content-type': 'text/plain', 'content-encoding': 'gzip' }, 'plain'),
    status: 'failed',
    shows: [/could not be read: .*header/],
  },
  {
    title: 'a body that grows when it is decompressed is cut',
    serve: answers(
      { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
      zlib.gzipSync(Buffer.alloc(40_000_000, 'x')),
    ),
    shows: ['only the first 5242880 bytes]'],
  },
  {
    title: 'the charset of the header counts',
    serve: answers(
      { 'content-type': 'text/plain; charset=iso-8859-1' },
      Buffer.from('gr\xfcn', 'latin1'),
    ),
    shows: ['\ngrün'],
  },
  {
    title: 'a page names its own charset',
    serve: answers(
      { 'content-type': 'text/html' },
      Buffer.from('<meta charset="shift_jis"><p>\x93\xfa\x96\x7b', 'latin1'),
    ),
    shows: ['日本'],
  },
  {
    title: 'quotes and dashes of windows-1252 are what they were meant to be',
    serve: answers(
      { 'content-type': 'text/plain; charset=iso-8859-1' },
      Buffer.from('\x93a\x94 \x80', 'latin1'),
    ),
    shows: ['\n“a” €'],
  },
  {
    title: 'a wrong charset is said to be unknown',
    serve: answers({ 'content-type': 'text/plain; charset=klingon' }, 'grün'),
    shows: ['unknown charset klingon read as utf-8', '\ngrün'],
  },
  {
    title: 'half a mark of UTF-8 is text',
    serve: answers(
      { 'content-type': 'text/plain; charset=iso-8859-1' },
      Buffer.from('a\xbb\xbf', 'latin1'),
    ),
    shows: ['\na»¿'],
  },
  {
    title: 'UTF-16 is known by its mark',
    serve: answers({ 'content-type': 'text/plain' }, Buffer.from('\ufeffgrün', 'utf16le')),
    shows: ['\ngrün'],
  },
  {
    title: 'a picture is not shown',
    serve: answers({ 'content-type': 'image/png' }, Buffer.from([0x89, 0x50])),
    status: 'failed',
    shows: ['is image/png (200 OK) and is not shown'],
  },
  {
    title: 'bytes without a type are not shown',
    serve: answers({}, Buffer.from([1, 0, 2])),
    status: 'failed',
    shows: ['is binary'],
  },
  { title: 'text without a type is shown', serve: answers({}, 'text'), shows: ['no type]\ntext'] },
  {
    title: 'an error page fails and is shown short',
    serve: answers({ 'content-type': 'text/plain' }, `gone ${'x'.repeat(9_000)}`, 404),
    status: 'failed',
    shows: ['404 Not Found', /gone x{1995}$/],
  },
  {
    title: 'an empty page says so',
    serve: answers({ 'content-type': 'text/plain' }, ''),
    shows: ['[no text]'],
  },
  {
    title: 'a connection that breaks in the middle fails',
    serve: (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => response.destroy());
    },
    status: 'failed',
    shows: ['could not be read'],
  },
  {
    title: 'an endless body is cut, and not waited for',
    serve: (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const pour = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', pour);
      pour();
    },
    shows: ['only the first 5242880 bytes]'],
  },
];

for (const { title, serve: answer, status = 'ok', shows, hides } of rows) {
  test(title, async (t) => {
    const outcome = await fetchPage(t, `${await serve(t, answer)}/page`);
    assert.equal(outcome.status, status, outcome.text.slice(0, 500));
    for (const each of shows) {
      if (typeof each === 'string')
        assert.ok(outcome.text.includes(each), `${each} is not in ${outcome.text.slice(0, 800)}`);
      else assert.match(outcome.text, each);
    }
    if (hides !== undefined) assert.doesNotMatch(outcome.text, hides);
  });
}
