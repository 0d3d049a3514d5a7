import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '@pawl/agent/journal/journal-error';
import { emptyConversation, messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { codeFence } from '@pawl/agent/platform/base/code-fence';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { foldStored } from '../sessions/stored-sessions.js';
import { type Command, NotNow } from './command-context.js';

/** `/export`: writes the conversation to a Markdown file. */

type Part = Message['parts'][number];

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
      return `**${part.tool}**\n\n${codeFence(part.rawInput ?? JSON.stringify(part.input, null, 2), 'json')}`;
    case 'result':
      return `**${part.tool}** ${part.failed ? 'failed' : 'answered'}\n\n${codeFence(part.text)}`;
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

const isSummary = (part: Part): boolean => 'origin' in part && part.origin === 'summary';

/** The messages that a compaction removed. If the summary shares its message with unanswered text, that message stays. */
const dropped = (before: readonly Message[], [first, ...kept]: readonly Message[]): readonly Message[] => {
  const joins = first?.parts.some((part) => !isSummary(part)) ?? false;
  return before.slice(0, before.length - kept.length - (joins ? 1 : 0));
};

/** All messages of the session, including those that compactions replaced by summaries. */
const allMessages = async (sessionId: string): Promise<readonly Message[]> => {
  const gone: Message[] = [];
  let conversation = emptyConversation;
  await foldStored(sessionId, undefined, ({ event, state }) => {
    const before = conversation;
    ({ conversation } = state.session);
    if (event.type === 'CompactionCompleted' && conversation !== before)
      gone.push(...dropped(messagesOf(before), messagesOf(conversation)));
  });
  return [...gone, ...messagesOf(conversation)];
};

export const exportTo: Command = async ({ view, session, workspace }, words) => {
  const force = words.startsWith('--force ');
  const name = force ? words.slice('--force '.length).trim() : words;
  const file = path.resolve(workspace, name);
  const messages = await allMessages(session.id);
  const text = conversationMarkdown(`Session ${session.id}`, messages);
  try {
    await writeFile(file, text, { flag: force ? 'w' : 'wx', mode: 0o600 });
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new NotNow(`${file} already exists and was not changed. To replace it: /export --force ${name}`);
    throw error;
  }
  view.print(
    safe`  ${messages.length} ${messages.length === 1 ? safe`message` : safe`messages`} in ${makeSafe(file)}`,
  );
};
