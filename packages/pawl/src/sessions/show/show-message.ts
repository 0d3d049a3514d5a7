import type { Message } from '@pawl/agent/machine/message';
import { harmless, type Look, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';

type Part = Message['parts'][number];

/** A line for each picture, with the hash of its blob. */
const picturesOf = (part: Part): Safe =>
  'images' in part
    ? makeSafe((part.images ?? []).map(({ mediaType, sha256 }) => `\n[${mediaType} blob:${sha256}]`).join(''))
    : safe``;

const partLine = (look: Look, part: Part): Safe => {
  switch (part.type) {
    case 'text':
      return safe`${harmless(part.text)}${picturesOf(part)}`;
    case 'reasoning':
      return paint(look, 'dim', harmless(part.text));
    case 'call':
      return safe`${paint(look, 'cyan', makeSafe(`→ ${part.tool}`))} ${harmless(part.rawInput ?? JSON.stringify(part.input))}`;
    case 'result':
      return safe`${paint(look, part.failed ? 'red' : 'green', makeSafe(`← ${part.tool}`))} ${harmless(part.text)}${picturesOf(part)}`;
    default:
      return part satisfies never;
  }
};

/** Who wrote a part. One message to the model may hold tool results, user text and notes of the agent. */
const speakerOf = ({ role }: Message, part: Part): Safe => {
  if (role === 'assistant') return safe`pawl`;
  if (part.type === 'result') return safe`tools`;
  return 'origin' in part && part.origin !== 'user' ? makeSafe(part.origin) : safe`you`;
};

/** A message as text: a heading for each speaker, then the parts. */
export const messageLines = (look: Look, message: Message): Safe => {
  let speaker = safe``;
  const lines = message.parts.flatMap((part) => {
    const before = speaker;
    speaker = speakerOf(message, part);
    const heading = speaker === before ? [] : [paint(look, 'bold', speaker)];
    return [...heading, partLine(look, part)];
  });
  return joinSafe(lines, safe`\n`);
};
