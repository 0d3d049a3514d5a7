import { isDeepStrictEqual } from 'node:util';
import type { ReplyPart, ServerReply, WireBody } from '../../../../test/servers/anthropic.js';

/**
 * A model that works through a plan and repeats what it cannot see: it makes a call again until it sees its result. So
 * an effect that happened, and whose result was lost, happens twice.
 */

export type PlannedCall = {
  readonly tool: string;
  /** `CALL` in its texts stands for the id of the call. */
  readonly input: object;
  /** What a result must contain to count as seen; null: any result that did not fail. */
  readonly proof: string | null;
  /** The line that it adds to the file `effects`; null if it adds none. */
  readonly effect: string | null;
};

type Block = WireBody['messages'][number]['content'][number];

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value ?? '');

const blocksOf = ({ messages }: WireBody): readonly Block[] =>
  messages.flatMap(({ content }) => content);

/** Text of each result by the id of its call. */
export const resultsIn = (body: WireBody): ReadonlyMap<string, string> =>
  new Map(
    blocksOf(body)
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id, content }) => [String(tool_use_id), textOf(content)]),
  );

const withId = (input: object, id: string): unknown =>
  JSON.parse(JSON.stringify(input).replaceAll('CALL', id));

const summaryOf = ({ effect, tool, input }: PlannedCall): string =>
  `seen ${effect ?? `${tool} ${JSON.stringify(input)}`};`;

const isSeen = (planned: PlannedCall, body: WireBody): boolean => {
  const blocks = blocksOf(body);
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => String(text));
  if (texts.some((text) => text.includes(summaryOf(planned)))) return true;
  const results = resultsIn(body);
  return blocks.some((block) => {
    if (block.type !== 'tool_use' || block.name !== planned.tool) return false;
    if (!isDeepStrictEqual(block.input, withId(planned.input, String(block.id)))) return false;
    const result = results.get(String(block.id));
    if (result === undefined) return false;
    return planned.proof === null
      ? !/outcome unknown|effects unknown|^failed|not run/.test(result)
      : result.includes(planned.proof);
  });
};

const isSummaryRequest = (body: WireBody): boolean =>
  textOf(body.messages.at(-1)?.content).includes('Stop here: summarise');

const madeCalls = (body: WireBody): number =>
  blocksOf(body).filter(({ type }) => type === 'tool_use').length;

const MOST_CALLS = 40;

/** Whether the request belongs to the session of a task. */
export const isOfTask = ({ system }: WireBody): boolean =>
  textOf(system).includes('# This is a task');

type Plan = readonly (readonly PlannedCall[])[];

/** Replies by what the request shows. After MOST_CALLS it gives up. `task`: the plan of the tasks that it starts. */
export const repeatingModel = (
  ownRounds: Plan,
  {
    thinks = false,
    usage = 1_000,
    task = [],
  }: { readonly thinks?: boolean; readonly usage?: number; readonly task?: Plan },
): ((body: WireBody) => ServerReply) => {
  let count = 0; // a summary takes calls away, and their ids stay theirs
  return (body: WireBody): ServerReply => {
    const isTask = isOfTask(body);
    const rounds = isTask ? task : ownRounds;
    const seen = rounds.flat().filter((planned) => isSeen(planned, body));
    const thought: readonly ReplyPart[] = thinks
      ? [{ type: 'thinking', text: 'Hm.', signature: 'c2ln' }]
      : [];
    const message = (...parts: readonly ReplyPart[]): ServerReply => ({
      type: 'message',
      parts: [...thought, ...parts],
      usage: { input_tokens: body.messages.length > 2 ? usage : 1_000, output_tokens: 10 },
    });
    const say = (text: string): ServerReply => message({ type: 'text', text });
    if (isSummaryRequest(body)) return say(`Summary: ${seen.map(summaryOf).join(' ')}`);
    const left = rounds.map((round) => round.filter((planned) => !seen.includes(planned)));
    const next = left.find((round) => round.length > 0);
    if (next === undefined) return say('Done.');
    const made = madeCalls(body);
    if (made > MOST_CALLS) return say('I give up.');
    const calls = next.map(({ tool, input }): ReplyPart => {
      count += 1;
      const id = `${isTask ? 'task-' : ''}call-${count}`;
      return { type: 'call', id, name: tool, input: withId(input, id) as object };
    });
    return message({ type: 'text', text: 'Next.' }, ...calls);
  };
};
