/** A session as text: messages, steps, the path through the states, the result of a replay. */

import type { StoredReplay } from '@pawl/agent/journal/reader';
import type { Message } from '@pawl/agent/machine/message';
import type { Header, MachineTypes, OpenJournal } from '@pawl/agent/ports/journal';
import type { Stepped } from '@pawl/agent/ports/session';
import type { Edge } from '@pawl/machine/kernel/table';
import { formatWhen, harmless, type Look, paint, warningText } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { createStepPrinter, RETRACTED, withDetail } from '@pawl/terminal/step-lines';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';

type MessagePart = Message['parts'][number];

/** A line for each picture, with the hash of its blob. */
const pictureLines = (part: MessagePart): Safe =>
  'images' in part
    ? makeSafe(
        (part.images ?? [])
          .map(({ mediaType, sha256 }) => `\n[${mediaType} blob:${sha256}]`)
          .join(''),
      )
    : safe``;

const partLine = (look: Look, part: MessagePart): Safe => {
  switch (part.type) {
    case 'text':
      return safe`${harmless(part.text)}${pictureLines(part)}`;
    case 'reasoning':
      return paint(look, 'dim', harmless(part.text));
    case 'call':
      // `rawInput`: text of the model that is no JSON object
      return safe`${paint(look, 'cyan', makeSafe(`→ ${part.tool}`))} ${harmless(part.rawInput ?? JSON.stringify(part.input))}`;
    case 'result':
      return safe`${paint(look, part.failed ? 'red' : 'green', makeSafe(`← ${part.tool}`))} ${harmless(part.text)}${pictureLines(part)}`;
    default:
      return part satisfies never;
  }
};

/**
 * Who wrote a part. One message to the model may hold tool results, user text and notes of the
 * agent.
 */
const partSpeaker = ({ role }: Message, part: MessagePart): Safe => {
  if (role === 'assistant') return safe`pawl`;
  if (part.type === 'result') return safe`tools`;
  return 'origin' in part && part.origin !== 'user' ? makeSafe(part.origin) : safe`you`;
};

/** A message as text: a heading for each speaker, then the parts. */
export const messageLines = (look: Look, message: Message): Safe => {
  let speaker = safe``;
  const lines = message.parts.flatMap((part) => {
    const before = speaker;
    speaker = partSpeaker(message, part);
    const heading = speaker === before ? [] : [paint(look, 'bold', speaker)];
    return [...heading, partLine(look, part)];
  });
  return joinSafe(lines, safe`\n`);
};

/** The parts of a step that tell its path; for any machine. */
type StepPath = Pick<Stepped<MachineTypes>, 'seq' | 'event' | 'path'>;

/**
 * The edges that changed the state. Internal transitions are left out: they run no exit or entry.
 */
export const transitions = ({ path }: Pick<StepPath, 'path'>): readonly Edge[] =>
  path.filter((edge) => edge.kind === 'go');

/**
 * Whether the step changed the state. Deltas, progress and all but the last of several results
 * don't.
 */
export const changesState = (stepped: Pick<StepPath, 'path'>): boolean =>
  transitions(stepped).length > 0;

/** The states of a step, from the one before it to the one after it; empty if it stayed. */
export const pathStates = (stepped: Pick<StepPath, 'path'>): readonly string[] => {
  const edges = transitions(stepped);
  const [first] = edges;
  return first === undefined ? [] : [first.from, ...edges.map((edge) => edge.to)];
};

type Path = StepPath['path'];

/**
 * The edges of a step, in the order of first edges. In a run of `pawl ask` by the id of the node of
 * its tree, otherwise under `''`.
 */
export const pathsByRun = (stepped: Pick<StepPath, 'path'>): ReadonlyMap<string, Path> => {
  const paths = new Map<string, Edge[]>();
  for (const edge of transitions(stepped)) {
    const node = 'node' in edge && typeof edge.node === 'string' ? edge.node : '';
    paths.set(node, [...(paths.get(node) ?? []), edge]);
  }
  return paths;
};

/** How often each state was entered, in order of first entry: `A · B ×2`. */
export const countStates = (steps: readonly Pick<StepPath, 'path'>[]): string => {
  const times = new Map<string, number>();
  for (const step of steps)
    for (const { to } of transitions(step)) times.set(to, (times.get(to) ?? 0) + 1);
  return [...times].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(' · ');
};

/**
 * One line of a path: journal line, event, states; in a tree also the run. The same for live and
 * replayed steps.
 */
export const pathLine = (stepped: StepPath, node = ''): string =>
  `${String(stepped.seq ?? '').padStart(4)}  ${stepped.event.type.padEnd(19)} ` +
  `${node === '' ? '' : `${node.padEnd(10)} `}${pathStates(stepped).join(' → ')}`;

/** Prints the steps of a session on stdout as lines; text of the model as it streams. */
export const createLogPrinter = (look: Look, workspace: string) => {
  const printStep = createStepPrinter(look, workspace);
  let isLineOpen = false;
  /** On lines of its own, below a reply. */
  const writeLines = (lines: Safe): void => {
    writeOut(safe`${isLineOpen ? safe`\n` : safe``}${lines}`);
    isLineOpen = false;
  };
  return {
    writeLines,
    see(stepped: Stepped): void {
      if (stepped.event.type === 'UserInput')
        writeLines(safe`> ${joinSafe(harmless(stepped.event.text).split('\n'), safe`\n  `)}\n`);
      for (const piece of printStep(stepped))
        if (piece.kind === 'lines') writeLines(safe`${withDetail(piece)}\n`);
        else if (piece.kind === 'retract') writeLines(safe`${makeSafe(RETRACTED)}\n`);
        else if (piece.text !== '') {
          writeOut(piece.text);
          isLineOpen = !piece.text.endsWith('\n');
        }
    },
  };
};

type Head = Pick<Header, 'sessionId' | 'createdAt' | 'workspace'> & {
  readonly settings: { readonly model: string };
};

/** The first line about a stored session. `more`: after its model. */
export const headLine = (
  { sessionId, createdAt, settings, workspace }: Head,
  ...more: readonly string[]
): Safe =>
  makeSafe(
    [sessionId, formatWhen(createdAt), settings.model, ...more, workspace]
      .join(' · ')
      .replace(/\s+/g, ' '),
  );

const checksText = (count: number): Safe => {
  if (count === 0) return safe`No state hash is recorded up to there, so nothing was compared.`;
  return count === 1
    ? safe`1 recorded state hash compared: equal.`
    : safe`${count} recorded state hashes compared, all equal.`;
};

/**
 * Prints the path and the result of the replay. Returns the exit code: a failure if a recorded
 * state hash differs.
 */
export const printReplay = <M extends MachineTypes>(
  lines: readonly Safe[],
  folded: StoredReplay<M>,
): number => {
  writeOut(joinSafe(lines.map((line) => safe`${line}\n`)));
  const torn =
    folded.tornBytes > 0
      ? safe` ${folded.tornBytes} bytes of an incomplete last line are ignored.`
      : safe``;
  writeError(
    safe`${folded.seq} entries folded, nothing performed; ends in ${makeSafe(folded.state.name)}.${torn}\n`,
  );
  const [mismatch] = folded.mismatches;
  if (mismatch !== undefined) {
    writeError(
      safe`pawl: at seq ${mismatch.seq} the recomputed state differs from the recorded hash: the file or the machine has changed.\n`,
    );
    return exitCodes.badInput;
  }
  const earlier =
    folded.earlierChecks === 0
      ? safe``
      : safe` ${folded.earlierChecks} of an earlier version of Pawl differ, which is no fault.`;
  writeError(safe`${checksText(folded.checks)}${earlier}\n`);
  return exitCodes.done;
};

type TornTail = NonNullable<OpenJournal['tornTail']>;

/** What was done with the unfinished last line of a journal. */
export const tornSentence = ({ bytes, keptAs }: TornTail): string =>
  `The last ${bytes} bytes of the journal were incomplete after a crash. They were moved to ` +
  `${keptAs}.`;

/** The same as a warning. */
export const tornText = (tornTail: TornTail): Safe => warningText(tornSentence(tornTail));
