/** Events in the words of people: what was done, by which tool, how it ended, how long it took. */

import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Event } from '@pawl/agent/machine/event';
import type { Message } from '@pawl/agent/machine/message';
import { moneyText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { oneLine, plural } from './figure-text.js';
import { callName, type SessionIndex } from './session-index.js';

/** One line about an entry. */
export const eventWords = (step: JournalStep, index: SessionIndex): string =>
  callWords(step.event, index) ?? otherWords(step.event, step);

const TEXT_MAX = 160;

const shortText = (text: string): string => oneLine(text, TEXT_MAX);

const replyWords = ({ parts }: Pick<Message, 'parts'>): string => {
  const tools = parts.flatMap((part) => (part.type === 'call' ? [part.tool] : []));
  const text = parts.find((part) => part.type === 'text')?.text ?? '';
  const calls = tools.length === 0 ? '' : `calls ${tools.join(', ')}`;
  return [calls, text === '' ? '' : `“${shortText(text)}”`]
    .filter((part) => part !== '')
    .join(': ');
};

/** The words about an event of a call; null for another event. */
const callWords = (event: Event, index: SessionIndex): string | null => {
  if (!('callId' in event)) return null;
  const call = index.call(event.batchId, event.callId);
  const name = call === undefined ? 'a call' : callName(call);
  switch (event.type) {
    case 'ToolStarted':
      return `${name} started`;
    case 'ToolCompleted': {
      const start = call?.starts.findLast(({ at }) => at <= event.at);
      const time = start === undefined ? '' : ` in ${durationText(event.at - start.at)}`;
      const text = event.outcome.summary ?? shortText(event.outcome.text);
      return `${name} ${event.outcome.status}${time}${text === '' ? '' : `: ${text}`}`;
    }
    case 'ApprovalAnswered': {
      const waited =
        call === undefined || call.askedAt === null
          ? ''
          : ` after ${durationText(event.at - call.askedAt)}`;
      const { answer } = event;
      if (answer.kind === 'reply') return `${name} answered${waited}: ${shortText(answer.text)}`;
      const reason = answer.kind === 'deny' ? `: ${answer.reason}` : '';
      const verb = answer.kind === 'allow' ? 'allowed' : 'denied';
      return `${name} ${verb} (${event.scope})${waited}${shortText(reason)}`;
    }
    case 'CallPreviewed':
      return `${name}: what it would change was shown`;
    case 'CancelTool':
      return `${name}: the user stops it`;
    default:
      return `${name}: ${event.type}`;
  }
};

const commitWords = (commits: readonly { readonly subject: string }[]): readonly string[] =>
  commits.map(({ subject }) => `commit “${shortText(subject)}”`);

const otherWords = (event: Event, step: JournalStep): string => {
  switch (event.type) {
    case 'Start':
      return 'the session begins';
    case 'UserInput':
      return `you: ${shortText(event.text)}`;
    case 'LlmCompleted': {
      const cost = event.usage.costUsd === null ? '' : ` for ${moneyText(event.usage.costUsd)}`;
      const words = event.message === null ? 'nothing' : replyWords(event.message);
      return `the model replied${cost}: ${words}`;
    }
    case 'LlmFailed':
      return `the request failed: ${event.error.kind}: ${shortText(event.error.message)}`;
    case 'HookCompleted': {
      const phase = step.before.name === 'PostToolsHook' ? step.before.phase : 'hook';
      const files = event.changedFiles.length;
      const facts = [
        ...commitWords(event.commits),
        ...(files > 0 ? [`${plural(files, 'file')} rewritten`] : []),
        ...[event.note, event.warning].filter((text) => text !== '').map(shortText),
      ];
      return `${phase} ended${facts.length === 0 ? '' : `: ${facts.join('; ')}`}`;
    }
    case 'CheckpointTaken': {
      const { created, changed, deleted, files } = event.changes;
      const count = created + changed + deleted;
      const names = files.slice(0, 3).map(({ path }) => path);
      return `${plural(count, 'file')} changed: ${names.join(', ')}${count > 3 ? ', …' : ''}`;
    }
    case 'CompactionCompleted':
      return `the conversation was summarised: ${shortText(event.summary)}`;
    case 'Resumed':
      return `opened again by process ${event.epoch}`;
    case 'CancelTurn':
      return 'you: stop the turn';
    case 'TimerFired':
      return 'a wait is over';
    case 'SettingsChanged':
      return `settings changed: ${Object.keys(event.patch).join(', ')}`;
    case 'ShutdownRequested':
      return 'the session is closed';
    case 'RewindRequested':
      return `${event.direction === 'back' ? 'back' : 'forward'} to #${event.to}`;
    default:
      return 'message' in event && typeof event.message === 'string'
        ? `${event.type}: ${shortText(event.message)}`
        : event.type;
  }
};
