import type { Message } from '../agent/message.js';
import { harmless, type Look, paint } from '../terminal/print.js';

type Part = Message['parts'][number];

/** Pictures are named by the blob that holds them. */
const picturesOf = (part: Part): string =>
  'images' in part
    ? (part.images ?? []).map(({ mediaType, sha256 }) => `\n[${mediaType} blob:${sha256}]`).join('')
    : '';

const partLine = (look: Look, part: Part): string => {
  switch (part.type) {
    case 'text':
      return `${harmless(part.text)}${picturesOf(part)}`;
    case 'reasoning':
      return paint(look, 'dim', harmless(part.text));
    case 'call':
      return `${paint(look, 'cyan', `→ ${part.tool}`)} ${harmless(part.rawInput ?? JSON.stringify(part.input))}`;
    case 'result':
      return `${paint(look, part.failed ? 'red' : 'green', `← ${part.tool}`)} ${harmless(part.text)}${picturesOf(part)}`;
    default:
      return part satisfies never;
  }
};

/** A message that goes to the model may hold results, what the user typed, and notes of the agent's. */
const speakerOf = ({ role }: Message, part: Part): string => {
  if (role === 'assistant') return 'pawl';
  if (part.type === 'result') return 'tools';
  return 'origin' in part && part.origin !== 'user' ? part.origin : 'you';
};

/** A message for people: who speaks, then each part. */
export const messageLines = (look: Look, message: Message): string => {
  let speaker = '';
  return message.parts
    .flatMap((part) => {
      const before = speaker;
      speaker = speakerOf(message, part);
      const heading = speaker === before ? [] : [paint(look, 'bold', speaker)];
      return [...heading, partLine(look, part)];
    })
    .join('\n');
};
