import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { messagesOf } from '../../agent/conversation.js';
import type { Message } from '../../agent/message.js';
import { codeOf } from '../../journal/error.js';
import { type Command, NotNow } from './room.js';

/** The conversation as a Markdown file. */

type Part = Message['parts'][number];

/** A fence that is longer than any in the text. */
const fenced = (text: string, language = ''): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
};

const partText = (part: Part): string => {
  switch (part.type) {
    case 'text':
      return 'origin' in part && part.origin !== 'user' ? `*(${part.origin})* ${part.text}` : part.text;
    case 'reasoning':
      return part.text
        .split('\n')
        .map((line) => `> ${line}`)
        .join('\n');
    case 'call':
      return `**${part.tool}**\n\n${fenced(part.rawInput ?? JSON.stringify(part.input, null, 2), 'json')}`;
    case 'result':
      return `**${part.tool}** ${part.failed ? 'failed' : 'answered'}\n\n${fenced(part.text)}`;
    default:
      return part satisfies never;
  }
};

const headingOf = ({ role, parts }: Message): string => {
  if (role === 'assistant') return '## Pawl';
  return parts[0]?.type === 'result' ? '## Results' : '## You';
};

const conversationMarkdown = (title: string, messages: readonly Message[]): string =>
  [
    `# ${title}`,
    ...messages.map((message) => [headingOf(message), ...message.parts.map(partText)].join('\n\n')),
  ]
    .join('\n\n')
    .concat('\n');

export const exportTo: Command = async ({ desk, session, workspace }, words) => {
  const force = words.startsWith('--force ');
  const name = force ? words.slice('--force '.length).trim() : words;
  const file = path.resolve(workspace, name);
  const messages = messagesOf(desk.state.session.conversation);
  const text = conversationMarkdown(`Session ${session.id}`, messages);
  try {
    await writeFile(file, text, { flag: force ? 'w' : 'wx', mode: 0o600 });
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new NotNow(`${file} is there already and stays as it is. To replace it: /export --force ${name}`);
    throw error;
  }
  desk.print(`  ${messages.length} messages in ${file}`);
};
