import http from 'node:http';
import type { WireName } from '../kit/models/wires.js';

/**
 * A provider that answers well and reports its usage badly, on any wire. It knows what it truly
 * charges: tokens by the bytes that it was sent and wrote, dollars at the dearest price.
 */

export const USAGE_FORMS = [
  'honest',
  'doubled',
  'late',
  'missing',
  'null',
  'strings',
  'half',
  'negative',
  'fractional',
  'huge',
  'zeros',
  'everySecond',
] as const;
export type UsageForm = (typeof USAGE_FORMS)[number];

export type HostileReply = {
  readonly text?: string;
  readonly call?: { readonly name: string; readonly input: object };
  /** The connection breaks before the end. */
  readonly isCut?: boolean;
};

export type HostileServer = {
  readonly url: string;
  readonly requests: readonly { readonly tokens: number; readonly usd: number }[];
  close(): Promise<void>;
};

const BYTES_PER_TOKEN = 4;
/** Dollars per million tokens, as the models of `test/kit/models/wires.ts` have them. */
const PRICES = { input: 1.25, output: 10 };

type Counts = { readonly input: unknown; readonly output: unknown };

/** The counts of a report; null: there is none. */
const misreport = (
  form: UsageForm,
  number: number,
  input: number,
  output: number,
): Counts | null => {
  switch (form) {
    case 'honest':
    case 'doubled':
    case 'late':
      return { input, output };
    case 'missing':
      return null;
    case 'null':
      return { input: null, output: null };
    case 'strings':
      return { input: String(input), output: String(output) };
    case 'half':
      return { input, output: undefined };
    case 'negative':
      return { input: -input, output };
    case 'fractional':
      return { input: input + 0.5, output };
    case 'huge':
      return { input: 1e15, output };
    case 'zeros':
      return { input: 0, output: 0 };
    case 'everySecond':
      return number % 2 === 1 ? { input, output } : null;
    default:
      return form satisfies never;
  }
};

type Speech = {
  /** The events before usage, the report, and the end. */
  begin(reply: HostileReply, number: number, counts: Counts | null): readonly object[];
  report(counts: Counts): object;
  end(reply: HostileReply, counts: Counts | null): readonly object[];
};

const callId = (number: number): string => `call${number}`;

const anthropic: Speech = {
  begin: ({ text, call }, number, counts) => [
    {
      type: 'message_start',
      message: {
        id: `m${number}`,
        ...(counts === null ? {} : { usage: { input_tokens: counts.input, output_tokens: 1 } }),
      },
    },
    {
      type: 'content_block_start',
      index: 0,
      content_block:
        call === undefined
          ? { type: 'text', text: '' }
          : { type: 'tool_use', id: callId(number), name: call.name, input: {} },
    },
    {
      type: 'content_block_delta',
      index: 0,
      delta:
        call === undefined
          ? { type: 'text_delta', text }
          : { type: 'input_json_delta', partial_json: JSON.stringify(call.input) },
    },
    { type: 'content_block_stop', index: 0 },
  ],
  report: ({ output }) => ({ type: 'message_delta', delta: {}, usage: { output_tokens: output } }),
  end: ({ call }) => [
    { type: 'message_delta', delta: { stop_reason: call === undefined ? 'end_turn' : 'tool_use' } },
    { type: 'message_stop' },
  ],
};

const openai: Speech = {
  begin: ({ text, call }, number) => {
    const item =
      call === undefined
        ? { type: 'message', id: `i${number}` }
        : { type: 'function_call', id: `i${number}`, call_id: callId(number), name: call.name };
    const whole = call === undefined ? item : { ...item, arguments: JSON.stringify(call.input) };
    return [
      { type: 'response.created', response: { id: `r${number}` } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
      ...(call === undefined
        ? [{ type: 'response.output_text.delta', item_id: `i${number}`, delta: text }]
        : []),
      { type: 'response.output_item.done', output_index: 0, item: whole },
    ];
  },
  report: ({ input, output }) => ({
    type: 'response.completed',
    response: { usage: { input_tokens: input, output_tokens: output } },
  }),
  end: (_reply, counts) => (counts === null ? [{ type: 'response.completed', response: {} }] : []),
};

const google: Speech = {
  begin: ({ text, call }, number) => {
    const part =
      call === undefined
        ? { text }
        : { functionCall: { id: callId(number), name: call.name, args: call.input } };
    return [{ candidates: [{ content: { parts: [part] } }] }];
  },
  report: ({ input, output }) => ({
    usageMetadata: { promptTokenCount: input, candidatesTokenCount: output },
  }),
  end: () => [{ candidates: [{ finishReason: 'STOP' }] }],
};

const chat: Speech = {
  begin: ({ text, call }, number) => {
    const delta =
      call === undefined
        ? { content: text }
        : {
            tool_calls: [
              {
                index: 0,
                id: callId(number),
                function: { name: call.name, arguments: JSON.stringify(call.input) },
              },
            ],
          };
    return [{ choices: [{ delta }] }];
  },
  report: ({ input, output }) => ({
    choices: [],
    usage: { prompt_tokens: input, completion_tokens: output },
  }),
  end: ({ call }) => [{ choices: [{ delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }] }],
};

const SPEECH: Readonly<Record<WireName, Speech>> = { anthropic, openai, google, chat };

const eventsOf = (
  speech: Speech,
  form: UsageForm,
  reply: HostileReply,
  number: number,
  counts: Counts | null,
): readonly object[] => {
  const begin = speech.begin(reply, number, counts);
  if (reply.isCut) return begin;
  const end = speech.end(reply, counts);
  if (counts === null) return [...begin, ...end];
  const report = speech.report(counts);
  if (form === 'late') return [...begin, ...end, report];
  return [...begin, report, ...(form === 'doubled' ? [report] : []), ...end];
};

const readBody = async (incoming: http.IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
};

/** Starts on a free port. `answer` gets the body of a request and its number, from 1. */
export const startHostileServer = async (
  wire: WireName,
  form: UsageForm,
  answer: (body: string, number: number) => HostileReply,
): Promise<HostileServer> => {
  const requests: { tokens: number; usd: number }[] = [];
  const respond = async (incoming: http.IncomingMessage, out: http.ServerResponse) => {
    const body = await readBody(incoming);
    const number = requests.length + 1;
    const reply = answer(body, number);
    const input = Math.ceil(Buffer.byteLength(body) / BYTES_PER_TOKEN);
    const written = reply.text ?? JSON.stringify(reply.call);
    const output = Math.ceil(Buffer.byteLength(written) / BYTES_PER_TOKEN);
    const usd = (input * PRICES.input + output * PRICES.output) / 1_000_000;
    requests.push({ tokens: input + output, usd });
    const counts = misreport(form, number, input, output);
    out.writeHead(200, { 'content-type': 'text/event-stream' });
    const events = eventsOf(SPEECH[wire], form, reply, number, counts);
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    if (reply.isCut) out.write(text, () => out.destroy());
    else out.end(text);
  };
  const server = http.createServer((incoming, out) => {
    respond(incoming, out).catch(() => out.destroy()); // the client then sees a broken reply
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
