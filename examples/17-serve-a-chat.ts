/** Serves a session to chats of the AI SDK (useChat): each prompt runs once, however often it is sent. */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createAgent, uiMessageResponse } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const model = scriptedModel({ replies: [{ text: 'Hello!' }] });
const agent = createAgent({ model, journals: memoryJournals() }); // fileJournals: on disk
const { id } = await agent.open({ workspace: '.' });

const server = createServer(async (request, response) => {
  const { messages } = (await json(request)) as { messages: { id: string; text: string }[] };
  const [{ id: requestId, text } = { id: '', text: '' }] = messages.slice(-1);
  const session = await agent.open({ workspace: '.', resume: id }); // it is open: this joins it
  const { headers, body } = uiMessageResponse(session, text, { requestId, close: true });
  response.writeHead(200, Object.fromEntries(headers));
  for await (const chunk of body ?? []) response.write(chunk);
  response.end();
}).listen(0, '127.0.0.1', async () => {
  const [, , port] = Object.values(server.address() ?? {});
  const body = JSON.stringify({ messages: [{ id: 'm1', text: 'Hi' }] });
  for (const _ of ['first', 'again'])
    console.log(await (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body })).text());
  process.exit();
});
