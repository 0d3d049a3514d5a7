/** The blocks of an editor's prompt (text, mentions, pictures, files) as one text with pictures. */

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { Image } from '@pawl/agent/machine/message';
import { isWithin } from '@pawl/agent/platform/files';
import { codeFence } from '@pawl/agent/platform/text';

type PromptParts = {
  readonly text: string;
  /**
   * The part of it that the user wrote, without attached texts; `text` begins with it, or it is
   * empty.
   */
  readonly written: string;
  readonly pictures: readonly Uint8Array[];
};

/** A prompt that can't be used. The message is for the user. */
export class BadPrompt extends Error {}

/**
 * The path of a file address, relative to the workspace if it is in it; other addresses as they
 * are.
 */
const shownAddress = (uri: string, workspace: string): string => {
  if (!uri.startsWith('file:')) return uri;
  try {
    const url = new URL(uri);
    const place = url.hash;
    url.hash = '';
    url.search = '';
    const file = fileURLToPath(url);
    return (
      (isWithin(file, workspace) && file !== workspace ? path.relative(workspace, file) : file) +
      place
    );
  } catch {
    return uri; // no address of a file on this machine: the model gets it as it was written
  }
};

const mention = (uri: string, workspace: string): string => {
  const address = shownAddress(uri, workspace);
  return /\s/.test(address) ? `@"${address}"` : `@${address}`;
};

const isPicture = (mimeType: string | null | undefined): boolean =>
  mimeType?.startsWith('image/') === true;

const decodePicture = (base64: string, number: number): Uint8Array => {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0)
    throw new BadPrompt(`The picture in block ${number} of the prompt is empty.`);
  return bytes;
};

/** One block: what stands in its place in the text, what follows the text, and pictures. */
type Part = {
  readonly inline: string;
  /** `mention`: it needs a space to what is beside it. */
  readonly kind?: 'mention';
  readonly attached?: string;
  readonly picture?: Uint8Array;
};

type Resource = Extract<ContentBlock, { readonly type: 'resource' }>['resource'];

const readResource = (resource: Resource, number: number, workspace: string): Part => {
  const inline = mention(resource.uri, workspace);
  if ('text' in resource)
    return {
      inline,
      kind: 'mention',
      attached: `Attached: ${shownAddress(resource.uri, workspace)}\n${codeFence(resource.text)}`,
    };
  if (isPicture(resource.mimeType))
    return { inline, kind: 'mention', picture: decodePicture(resource.blob, number) };
  const type = resource.mimeType ?? 'an unknown type';
  return {
    inline,
    kind: 'mention',
    attached: `Not attached: ${shownAddress(resource.uri, workspace)}, which is ${type}`,
  };
};

const readBlock = (block: ContentBlock, number: number, workspace: string): Part => {
  switch (block.type) {
    case 'text':
      return { inline: block.text };
    case 'resource_link':
      return { inline: mention(block.uri, workspace), kind: 'mention' };
    case 'image':
      return { inline: '', picture: decodePicture(block.data, number) };
    case 'resource':
      return readResource(block.resource, number, workspace);
    case 'audio':
      throw new BadPrompt("Pawl can't listen to audio. Send the prompt as text.");
    default:
      return block satisfies never;
  }
};

/** Joins what stands in the text. Editors send a mention without the spaces around it. */
const joinInline = (parts: readonly Part[]): string => {
  let text = '';
  let isAfterMention = false;
  for (const { inline, kind } of parts) {
    if (inline === '') continue;
    const isGlued =
      kind === 'mention'
        ? /[^\s(["'`]$/.test(text)
        : isAfterMention && /^[\p{L}\p{N}]/u.test(inline);
    text += isGlued ? ` ${inline}` : inline;
    isAfterMention = kind === 'mention';
  }
  return text;
};

/** Throws a BadPrompt if nothing is in the prompt, or something that can't be sent. */
export const readPrompt = (blocks: readonly ContentBlock[], workspace: string): PromptParts => {
  const parts = blocks.map((block, index) => readBlock(block, index + 1, workspace));
  const pictures = parts.flatMap(({ picture }) => (picture === undefined ? [] : [picture]));
  const written = joinInline(parts);
  const attached = parts.flatMap((part) => (part.attached === undefined ? [] : [part.attached]));
  const text = [written, ...attached].join('\n\n');
  if (text.trim() !== '') return { text, written, pictures };
  if (pictures.length === 0) throw new BadPrompt('The prompt is empty.');
  return { text: pictures.length === 1 ? '(a picture)' : '(pictures)', written: '', pictures };
};

/** Stores the pictures of a prompt. Throws a BadPrompt if one can't be shown to a model. */
export const keepPictures = async (
  pictures: readonly Uint8Array[],
  keep: (bytes: Uint8Array) => Promise<Image>,
): Promise<readonly Image[]> => {
  const images: Image[] = [];
  for (const picture of pictures) {
    try {
      images.push(await keep(picture));
    } catch (error) {
      throw new BadPrompt(error instanceof Error ? error.message : String(error));
    }
  }
  return images;
};
