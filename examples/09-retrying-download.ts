/** Downloads from a server that fails at first: a machine of your own, driven by a source that does the waiting. */
import { createServer } from 'node:http';
import { mermaid, runAsync, stateMachine } from 'pawl/machine';

type State = 'Requesting' | 'Waiting' | 'Downloaded' | 'GivenUp';
type Event = { type: 'Answered'; status: number; body: string } | { type: 'WaitedLongEnough' };
type Context = { readonly attempts: number; readonly body: string };

const isOk = ({ status }: { status: number }) => status === 200;
const mayRetry = (_event: Event, { attempts }: Context) => attempts < 3;
const keepBody = ({ body }: { body: string }, context: Context) => ({ ...context, body });

const download = stateMachine<State, Event, Context>()
  .state('Requesting', { onEnter: (context) => ({ ...context, attempts: context.attempts + 1 }) })
  .transition('Requesting', 'Answered', 'Downloaded', { guard: isOk, action: keepBody })
  .transition('Requesting', 'Answered', 'Waiting', { guard: mayRetry })
  .transition('Requesting', 'Answered', 'GivenUp')
  .transition('Waiting', 'WaitedLongEnough', 'Requesting')
  .terminal('Downloaded', 'GivenUp')
  .build('Requesting');
console.log(mermaid(download));

let asked = 0;
const server = createServer((_request, response) => {
  asked += 1;
  response.writeHead(asked < 3 ? 503 : 200).end(asked < 3 ? 'busy' : 'the file');
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const url = `http://127.0.0.1:${Object(server.address()).port}/`;

const { state, context } = await runAsync(
  download,
  { attempts: 0, body: '' },
  async (now, { attempts }) => {
    console.log(`${now}, attempt ${attempts}`);
    await new Promise((resolve) => setTimeout(resolve, now === 'Waiting' ? 10 * 2 ** attempts : 0));
    if (now === 'Waiting') return { type: 'WaitedLongEnough' };
    const response = await fetch(url, { headers: { connection: 'close' } });
    return { type: 'Answered', status: response.status, body: await response.text() };
  },
);
console.log(`${state} after ${context.attempts} attempts: ${context.body}`);
server.close();
