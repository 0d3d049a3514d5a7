/**
 * The floor: a minimal agent loop. fetch, SSE, the same shell with the same options as ours, one
 * line a message, each synced before the next step. It checks, shows and recovers nothing.
 *
 * `node minimal-loop.mjs JOURNAL PROMPT`, with ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
 */

import { spawn } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';

type Block =
  | { readonly type: 'text'; text: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      input: { readonly command: string };
    };
type Message = { readonly role: 'user' | 'assistant'; readonly content: readonly object[] };

const [, , file = 'minimal.jsonl', prompt = 'go'] = process.argv;
const journal = openSync(file, 'a');
const messages: Message[] = [];

const keep = (message: Message): void => {
  messages.push(message);
  writeSync(journal, `${JSON.stringify(message)}\n`);
  fdatasyncSync(journal);
};

const tools = [
  {
    name: 'bash',
    description: 'Runs a shell command.',
    input_schema: {
      type: 'object',
      properties: { command: { type: 'string' } },
      required: ['command'],
    },
  },
];

const call = async (): Promise<readonly Block[]> => {
  const response = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': process.env.ANTHROPIC_API_KEY ?? '',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify({ model: 'minimal', max_tokens: 8_192, stream: true, tools, messages }),
  });
  if (!response.ok || response.body === null)
    throw new Error(`${response.status} ${await response.text()}`);
  const blocks: Block[] = [];
  let json = '';
  let rest = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      const event = JSON.parse(line.slice(6));
      const block = blocks.at(-1);
      if (event.type === 'content_block_start') {
        blocks.push(event.content_block);
        json = '';
      } else if (event.delta?.type === 'text_delta' && block?.type === 'text')
        block.text += event.delta.text;
      else if (event.delta?.type === 'input_json_delta') json += event.delta.partial_json;
      else if (event.type === 'content_block_stop' && block?.type === 'tool_use')
        block.input = JSON.parse(json);
    }
  }
  return blocks;
};

const shell = (command: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', `exec 2>&1; ${command}`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes) => (output += bytes));
    child.once('error', reject);
    child.once('close', (code) => resolve(`exit code ${code}\n${output}`));
  });

keep({ role: 'user', content: [{ type: 'text', text: prompt }] });
for (;;) {
  const blocks = await call();
  keep({ role: 'assistant', content: blocks });
  const calls = blocks.filter((block) => block.type === 'tool_use');
  if (calls.length === 0) {
    process.stdout.write(blocks.map((block) => (block.type === 'text' ? block.text : '')).join(''));
    break;
  }
  const results: object[] = [];
  for (const { id, input } of calls) {
    results.push({ type: 'tool_result', tool_use_id: id, content: await shell(input.command) });
  }
  keep({ role: 'user', content: results });
}
closeSync(journal);
