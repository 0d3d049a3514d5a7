import type {
  PlanEntry,
  ToolCall,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from '@agentclientprotocol/sdk';
import type { JudgedCall } from '@pawl/agent/machine/call';
import { titleOf } from '@pawl/agent/machine/values/call-title';
import { codeFence } from '@pawl/agent/platform/base/code-fence';
import { harmless } from '@pawl/terminal/paint-text';

/** How calls of tools look to a client: kind, title, locations, content. */

const kinds: Readonly<Record<string, ToolKind>> = {
  read: 'read',
  list: 'search',
  find: 'search',
  search: 'search',
  edit: 'edit',
  write: 'edit',
  bash: 'execute',
  fetch: 'fetch',
  todo: 'think',
  explore: 'think',
};

const kindOf = ({ tool, traits, facts }: JudgedCall): ToolKind => {
  const known = Object.hasOwn(kinds, tool) ? kinds[tool] : undefined;
  if (known !== undefined) return known;
  if (traits.group === 'fileChanges') return 'edit';
  if (facts.argv.length > 0) return 'execute';
  return facts.hosts.length > 0 ? 'fetch' : 'other';
};

/** One line, with invisible characters shown as marks: the command of a command, else the tool and what it is about. */
const callTitle = (call: JudgedCall, workspace: string): string => {
  const about = titleOf(call, workspace).replace(/\s+/g, ' ').trim();
  return harmless(kindOf(call) === 'execute' && about !== '' ? about : `${call.tool} ${about}`.trim());
};

const lineOf = ({ input }: JudgedCall): number | null => {
  const { offset } = input;
  return typeof offset === 'number' && Number.isSafeInteger(offset) && offset > 0 ? offset : null;
};

/** The files that a call reads or changes. */
export const locationsOf = (call: JudgedCall, line: number | null = lineOf(call)): ToolCallLocation[] => {
  const kind = kindOf(call);
  if (kind !== 'read' && kind !== 'edit') return [];
  return call.facts.paths.map((path) => (line === null ? { path } : { path, line }));
};

/** A call whose result is a list that stays visible: clients show it as the plan. */
export const isPlan = (call: JudgedCall | undefined): boolean => call?.traits.shown === 'list';

export const newToolCall = (call: JudgedCall, workspace: string): ToolCall => ({
  toolCallId: call.callId,
  title: callTitle(call, workspace),
  name: call.tool,
  kind: kindOf(call),
  status: 'pending',
  rawInput: call.input,
  locations: locationsOf(call),
});

export const textContent = (text: string): ToolCallContent => ({
  type: 'content',
  content: { type: 'text', text },
});

/** The output of a tool, which is not Markdown. */
export const outputContent = (text: string): ToolCallContent[] =>
  text.trim() === '' ? [] : [textContent(codeFence(text))];

const statusOf: Readonly<Record<string, PlanEntry['status']>> = {
  '[x]': 'completed',
  '[>]': 'in_progress',
  '[ ]': 'pending',
};

/** The entries of a to-do list: a heading, then one item per line with a mark. */
export const planEntries = (text: string): PlanEntry[] =>
  text.split('\n').flatMap((line): readonly PlanEntry[] => {
    const status = statusOf[line.slice(0, 3)];
    return status === undefined ? [] : [{ content: line.slice(3).trim(), priority: 'medium', status }];
  });
