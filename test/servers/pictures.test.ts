import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFault as findAnthropicFault } from './anthropic-strict.js';
import { findFault as findChatFault } from './chat-strict.js';
import { findFault as findGoogleFault } from './google-strict.js';
import { findFault as findOpenAiFault } from './openai-strict.js';
import { GIF, makePng } from './sample-pictures.js';

/** Pictures at the strict servers: where each wire takes them, and what none takes. */

const PNG = makePng().toString('base64');

type Given = { readonly mediaType?: string; readonly base64?: string };
type Place = 'said' | 'result' | 'failedResult' | 'assistant' | 'instructions';

/** How a wire writes a picture at a place; null of a place that it can't even write. */
type Wire = {
  readonly taken: readonly Place[];
  readonly takesGif: boolean;
  readonly fault: (place: Place, picture: { mediaType: string; base64: string }) => string | null;
  readonly bytesMax: number | null;
};

const hi = { type: 'text', text: 'hi' };

const anthropic: Wire = {
  taken: ['said', 'result'],
  takesGif: true,
  bytesMax: 32 * 1024 * 1024,
  fault(place, { mediaType, base64 }) {
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: mediaType, data: base64 },
    };
    const result = { type: 'tool_result', tool_use_id: 'a' };
    const at = (wanted: Place, there: object): readonly object[] =>
      place === wanted ? [there] : [];
    const messages = [
      { role: 'user', content: [...at('said', image), hi] },
      {
        role: 'assistant',
        content: [
          ...at('assistant', image),
          { type: 'tool_use', id: 'a', name: 'read', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            ...result,
            content: [hi, ...at('result', image), ...at('failedResult', image)],
            is_error: place === 'failedResult',
          },
          ...at('said', image),
          hi,
        ],
      },
    ];
    return findAnthropicFault({
      model: 'm',
      max_tokens: 10,
      stream: true,
      messages,
      ...(place === 'instructions' ? { system: [image] } : {}),
      tools: [{ name: 'read', input_schema: { type: 'object' } }],
    });
  },
};

const openai: Wire = {
  taken: ['said', 'result', 'failedResult'],
  takesGif: true,
  bytesMax: 50 * 1024 * 1024,
  fault(place, { mediaType, base64 }) {
    const image = { type: 'input_image', image_url: `data:${mediaType};base64,${base64}` };
    const said = { type: 'input_text', text: 'hi' };
    const isResult = place === 'result' || place === 'failedResult';
    const input = [
      ...(place === 'instructions' ? [{ role: 'developer', content: [image] }] : []),
      { role: 'user', content: place === 'said' ? [said, image] : [said] },
      ...(place === 'assistant' ? [{ role: 'assistant', content: [image] }] : []),
      { type: 'function_call', call_id: 'a', name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: isResult ? [said, image] : 'x' },
      { role: 'user', content: [said] },
    ];
    return findOpenAiFault({
      model: 'm',
      stream: true,
      store: false,
      max_output_tokens: 10,
      input,
      include: ['reasoning.encrypted_content'],
      tools: [{ type: 'function', name: 'read', parameters: {}, strict: false }],
    });
  },
};

const google: Wire = {
  taken: ['said', 'result', 'failedResult'],
  takesGif: false,
  bytesMax: 20 * 1024 * 1024,
  fault(place, { mediaType, base64 }) {
    const image = { inlineData: { mimeType: mediaType, data: base64 } };
    const said = { text: 'hi' };
    const isResult = place === 'result' || place === 'failedResult';
    const response = { id: 'a', name: 'read', response: { content: 'x' } };
    const call = { functionCall: { id: 'a', name: 'read', args: {} }, thoughtSignature: 's' };
    const contents = [
      { role: 'user', parts: place === 'said' ? [said, image] : [said] },
      { role: 'model', parts: place === 'assistant' ? [image, call] : [call] },
      {
        role: 'user',
        parts: [{ functionResponse: isResult ? { ...response, parts: [image] } : response }],
      },
    ];
    const systemInstruction = { parts: [place === 'instructions' ? image : said] };
    return findGoogleFault({ contents, systemInstruction, generationConfig: {} }, new Set(['s']));
  },
};

const chat: Wire = {
  taken: ['said'],
  takesGif: false,
  bytesMax: null,
  fault(place, { mediaType, base64 }) {
    const image = { type: 'image_url', image_url: { url: `data:${mediaType};base64,${base64}` } };
    const calls = [{ id: 'a', type: 'function', function: { name: 'read', arguments: '{}' } }];
    const isResult = place === 'result' || place === 'failedResult';
    const messages = [
      { role: 'system', content: place === 'instructions' ? [image] : 'be brief' },
      { role: 'user', content: place === 'said' ? [hi, image] : 'hi' },
      { role: 'assistant', content: place === 'assistant' ? [image] : null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'a', content: isResult ? [hi, image] : 'x' },
    ];
    return findChatFault({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 10,
      messages,
      tools: [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }],
    });
  },
};

const places: readonly Place[] = ['said', 'result', 'failedResult', 'assistant', 'instructions'];

const bad: readonly (readonly [title: string, given: Given, says: RegExp])[] = [
  ['of a kind that nobody takes', { mediaType: 'image/bmp' }, /Unsupported media type: image\/bmp/],
  ['of another kind than is said', { mediaType: 'image/jpeg' }, /bytes are no image\/jpeg/],
  ['that is no base64', { base64: `${PNG.slice(0, -4)}!!==` }, /Invalid base64/],
  [
    'that is none',
    { base64: Buffer.from('a picture').toString('base64') },
    /bytes are no image\/png/,
  ],
];

for (const [name, wire] of Object.entries({ anthropic, openai, google, chat })) {
  const faultOf = ({ mediaType = 'image/png', base64 = PNG }: Given, place: Place = 'said') =>
    wire.fault(place, { mediaType, base64 });

  for (const place of places) {
    const taken = wire.taken.includes(place);
    test(`${name}: a picture in what is ${place} is ${taken ? 'taken' : 'rejected'}`, () => {
      const fault = faultOf({}, place);
      if (taken) assert.equal(fault, null);
      else assert.ok(fault);
    });
  }

  for (const [title, given, says] of bad) {
    test(`${name}: a picture ${title} is rejected`, () => {
      for (const place of wire.taken) assert.match(faultOf(given, place) ?? 'taken', says);
    });
  }

  test(`${name}: a GIF is ${wire.takesGif ? 'taken' : 'rejected'}`, () => {
    const fault = faultOf({ mediaType: 'image/gif', base64: GIF.toString('base64') });
    if (wire.takesGif) assert.equal(fault, null);
    else assert.match(fault ?? 'taken', /Unsupported media type: image\/gif/);
  });

  const { bytesMax } = wire;
  if (bytesMax !== null) {
    test(`${name}: a request with too many bytes is rejected`, () => {
      const base64 = Buffer.concat([makePng(), Buffer.alloc(bytesMax)]).toString('base64');
      assert.match(faultOf({ base64 }) ?? 'taken', /exceeds the maximum size/);
    });
  }
}

test('anthropic: a picture of more than 5 MB is rejected', () => {
  const bytes = Buffer.concat([makePng(), Buffer.alloc(4 * 1024 * 1024)]);
  const fault = anthropic.fault('said', {
    mediaType: 'image/png',
    base64: bytes.toString('base64'),
  });
  assert.match(fault ?? 'taken', /exceeds 5 MB/);
});
