import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { Image } from '../../../machine/message.js';
import type { Blobs } from '../../../ports/journal.js';
import type { ToolOutcome } from '../../../ports/tool.js';
import { keepPicture } from '../../../tools/files/picture.js';

/** The result of an MCP tool as an outcome: text for the model, and pictures in the formats that models accept. */

type Piece = { readonly text: string; readonly image?: Image };

const bytesOf = (base64: string): Buffer => Buffer.from(base64, 'base64');

const pictureOf = async (base64: string, name: string, blobs: Blobs): Promise<Piece> => {
  const kept = await keepPicture(bytesOf(base64), blobs);
  if (kept.kind === 'none') return { text: `[${name} is not shown: models take PNG, JPEG, GIF and WebP]` };
  if (kept.kind !== 'kept') return { text: `[${name} is not shown: ${kept.why}]` };
  const { width, height } = kept.picture;
  return { text: `[${name}, ${width} x ${height}]`, image: kept.image };
};

const resourceText = (uri: string, mimeType: string | undefined): string =>
  `resource ${uri}${mimeType === undefined ? '' : ` (${mimeType})`}`;

const pieceOf = async (block: ContentBlock, blobs: Blobs): Promise<Piece> => {
  switch (block.type) {
    case 'text':
      return { text: block.text };
    case 'image':
      return pictureOf(block.data, `picture ${block.mimeType}`, blobs);
    case 'audio':
      return { text: `[audio ${block.mimeType}, ${bytesOf(block.data).length} bytes, is not shown]` };
    case 'resource_link': {
      const about = block.description === undefined ? '' : `: ${block.description}`;
      return { text: `[${resourceText(block.uri, block.mimeType)} ${block.name}${about}]` };
    }
    case 'resource': {
      const { resource } = block;
      const name = resourceText(resource.uri, resource.mimeType);
      if ('text' in resource) return { text: `[${name}]\n${resource.text}` };
      if (resource.mimeType?.startsWith('image/')) return pictureOf(resource.blob, name, blobs);
      return { text: `[${name}, ${bytesOf(resource.blob).length} bytes, is not shown]` };
    }
    default:
      return { text: `[a part of an unknown type is not shown]` };
  }
};

export const outcomeOf = async (
  { content, structuredContent, isError }: CallToolResult,
  blobs: Blobs,
): Promise<ToolOutcome> => {
  const pieces: Piece[] = [];
  for (const block of content) pieces.push(await pieceOf(block, blobs));
  // Servers repeat structured content as text, for clients that do not know it.
  if (structuredContent !== undefined && !content.some(({ type }) => type === 'text'))
    pieces.push({ text: JSON.stringify(structuredContent, null, 2) });
  const text = pieces.map((piece) => piece.text).join('\n');
  if (isError === true) return { status: 'failed', text: text || 'the server says that the call failed' };
  const images = pieces.flatMap(({ image }) => (image === undefined ? [] : [image]));
  return { status: 'ok', text: text || '[no output]', ...(images.length === 0 ? {} : { images }) };
};
