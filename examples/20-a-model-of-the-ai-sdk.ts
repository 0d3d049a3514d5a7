/** Any model of an AI SDK package, here of a server with the wire of OpenAI: the one that this program starts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createOpenAI } from '@ai-sdk/openai';
import { aiSdkModel, openSession } from 'pawl';
import { memoryJournals } from 'pawl/testing';

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: '1', created: 0, model: 'own', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunk({ content: 'Hello from here.' })}${chunk({}, 'stop')}data: [DONE]\n\n`);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const [, , port] = Object.values(server.address() ?? {});

const own = createOpenAI({ name: 'own', apiKey: 'none', baseURL: `http://127.0.0.1:${port}` });
const prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }; // dollars for a million tokens
const model = aiSdkModel(own.chat('own-1'), { windowTokens: 32_000, prices });
const session = await openSession({ model, journals: memoryJournals(), workspace: '.' });
console.log(model.id, (await session.prompt('Hi')).text);
await session.close();
server.close();
