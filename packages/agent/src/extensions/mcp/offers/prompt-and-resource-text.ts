import type { ContentBlock, GetPromptResult, ReadResourceResult } from '@modelcontextprotocol/client';
import { codeFence } from '../../../platform/base/code-fence.js';

/** Prompts and resources of servers as text for the model. */

/** Characters of one prompt, or of one resource. */
const TEXT_MAX = 100_000;

const cut = (text: string): string =>
  text.length <= TEXT_MAX
    ? text
    : `${text.slice(0, TEXT_MAX)}\n[cut: the first ${TEXT_MAX} of ${text.length} characters]`;

const blockText = (block: ContentBlock): string => {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text;
  if (block.type === 'resource_link') return `[resource ${block.uri}]`;
  return `[${block.type === 'resource' ? 'a resource' : block.type} is not shown]`;
};

/** The messages of a prompt. Those of the assistant are examples, and named so. */
export const promptText = ({ messages }: GetPromptResult): string =>
  cut(
    messages
      .map(({ role, content }) => `${role === 'assistant' ? 'Assistant: ' : ''}${blockText(content)}`)
      .join('\n\n'),
  );

/** `mention`: how the user named it. */
export const resourceText = (mention: string, { contents }: ReadResourceResult): string => {
  const texts = contents.map((content) =>
    'text' in content
      ? content.text
      : `[${content.mimeType ?? 'an unknown type'}, ${Buffer.from(content.blob, 'base64').length} bytes, is not shown]`,
  );
  return `Attached: ${mention}\n${codeFence(cut(texts.join('\n')))}`;
};
