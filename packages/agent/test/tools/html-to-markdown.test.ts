import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHtml } from '../../src/tools/html-to-markdown.js';

const at = 'https://page.example/deep/page';

test('code, lists and links come as Markdown', async () => {
  const { text, form } = await readHtml(
    '<body><ul><li>a</li></ul><pre><code class="language-js">if (a &lt; 2) {}</code></pre><a href="../x?a=1&amp;b=2">x</a><a href="#here">h</a></body>',
    at,
  );
  assert.equal(form, 'Markdown');
  for (const part of ['-   a', '```js\nif (a < 2) {}\n```', '[h](#here)'])
    assert.ok(text.includes(part), text);
  assert.match(text, /\[x\]\(https:\/\/page\.example\/x\?a=1&/);
});

test('an unknown entity of a title stays as it is', async () => {
  const { text } = await readHtml('<title>&lt;&constructor;</title><p>x</p>', at);
  assert.match(text, /^<&constructor;\n/);
});

for (const [title, html] of [
  ['nested very deep', `${'<div>'.repeat(20_000)}deep`],
  ['very long', `<p>deep ${'<b>x</b> '.repeat(150_000)}</p>`],
  ['a thicket of open brackets', `deep ${'<'.repeat(300_000)}`],
  ['comments that never end', `deep ${'<!--'.repeat(50_000)}`],
  ['scripts that never end', `deep ${'<script>'.repeat(50_000)}`],
  ['heads that never end', `deep ${'<head>'.repeat(50_000)}`],
  ['mains that never end', `deep ${'<main>'.repeat(50_000)}`],
  ['links that never end', `deep ${'<a href="'.repeat(50_000)}`],
  ['titles that never end', `deep ${'<title>'.repeat(50_000)}`],
] as const) {
  test(`a page that is ${title} keeps nobody waiting and gives its text`, async () => {
    const { text } = await readHtml(html, at);
    assert.match(text, /deep/);
  });
}
