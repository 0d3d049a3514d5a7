/**
 * Slash commands that take back what was done, and go forward again.
 *
 * A point is a turn, or a group of tool calls, that can be taken back; its `seq` is the line of the
 * journal to go back to. Refs are git's: HEAD, branches, and what is staged.
 */

import { plural } from '@pawl/agent/platform/text';
import type { RewindPoint, RewindReport, RewindRequest } from '@pawl/agent/session/rewind';
import { formatWhen, oneLine } from '@pawl/terminal/paint';
import { type ListedPoint, openPointList } from '@pawl/terminal/rewind-list';
import { countFiles, leftText, pointText, rewoundText } from '@pawl/terminal/rewind-words';
import { joinSafe, makeSafe, safe } from '@pawl/terminal/safe-text';
import { requireRest } from './session-commands.js';
import { NotNow, type SlashCommand, type SlashCommandContext } from './slash-command.js';

/** Points that a plain terminal prints; more are counted. */
const PRINTED_MAX = 40;
const TITLE_COLUMNS = 40;

/** A row of the list. A turn shows its time of day; the calls in a turn don't. */
const listedPoint = (point: RewindPoint, points: readonly RewindPoint[]): ListedPoint => ({
  kind: point.kind,
  when: point.kind === 'turn' ? formatWhen(point.at).slice(-'00:00'.length) : '',
  text: point.title,
  about: pointText(point, points),
});

const printPoints = ({ view }: SlashCommandContext, points: readonly RewindPoint[]): void => {
  const rows = points.slice(0, PRINTED_MAX).map((point) => {
    const about = pointText(point, points);
    const title = oneLine(point.title, TITLE_COLUMNS);
    const row = safe`${point.kind === 'turn' ? safe`  ` : safe`    `}${point.seq}  ${title}`;
    return about === '' ? row : safe`${row} · ${oneLine(about, Number.POSITIVE_INFINITY)}`;
  });
  const [first] = points;
  const more = points.length - rows.length;
  const last = points.find(({ kind }) => kind === 'turn') ?? first;
  view.print(
    joinSafe(
      [
        safe`  What can be taken back, the newest first:`,
        ...rows,
        ...(more > 0 ? [safe`  … ${more} earlier`] : []),
        safe`  /rewind ${last?.seq ?? 0} takes back that and everything since; /rewind ${last?.seq ?? 0} conversation, or files, only one of them`,
      ],
      safe`\n`,
    ),
  );
};

/** How much to take back: one of the answers after a point was chosen. */
type Answer = {
  readonly name: string;
  /** What this answer would do. */
  readonly about: string;
  readonly request: Omit<RewindRequest, 'at'>;
};

/** `left`: files that stay as they are, since somebody else changed them after the session did. */
const forceText = ({ left }: RewindReport): string => {
  // Without the beginning that `leftText` gives to the list of names.
  const names = leftText(left).replace(/^left as (it is|they are): /, '');
  return `also what would be left: ${names}; its present content is saved first`;
};

/** What the user can answer to a point, the default first. `refs`: the refs that would go back. */
const rewindAnswers = (plan: RewindReport, refs: RewindReport['refs']): readonly Answer[] => {
  const { messages, changes, left } = plan;
  const done = { direction: 'back', messages, changes, left, note: null } as const;
  // `rewoundText` tells of a rewind as if it were done.
  const describe = (text: string): string => text.replace(/^taken back: /, '');
  const conversation: Answer = {
    name: 'conversation',
    about: describe(rewoundText({ ...done, changes: null, left: [] })),
    request: { files: false },
  };
  const moved = refs.map(({ text }) => text).join('; ');
  const git: readonly Answer[] =
    moved === ''
      ? []
      : [{ name: 'both, refs', about: `in git too: ${moved}`, request: { refs: true } }];
  if (countFiles(changes) === 0 && left.length === 0) return [conversation, ...git];
  const during = changes.duringCommands ?? 0;
  const edits: readonly Answer[] =
    during === 0
      ? []
      : [
          {
            name: 'both, edits only',
            about: `leaves ${plural(during, 'file')} that changed while commands ran`,
            request: { editsOnly: true },
          },
        ];
  const force: Answer = { name: 'both, force', about: forceText(plan), request: { force: true } };
  return [
    { name: 'both', about: describe(rewoundText(done)), request: {} },
    conversation,
    {
      name: 'files',
      about: describe(rewoundText({ ...done, messages: null })),
      request: { conversation: false },
    },
    ...edits,
    ...(left.length === 0 ? [] : [force]),
    ...git,
  ];
};

/** Takes back, and puts the text of a turn whose conversation is taken back into the line. */
const rewindTo = async (
  { session, view, takeBackText }: SlashCommandContext,
  request: RewindRequest,
  points: readonly RewindPoint[],
): Promise<void> => {
  const report = await session.rewind(request);
  const keepsConversation = request.conversation === false;
  // The transcript says what was taken back. Only where no file was, it does not say which files
  // stay as they are, or that there was nothing to take back.
  const tookFiles = countFiles(report.changes) > 0;
  const tookMessages = report.messages !== 0 && !keepsConversation;
  if (!tookFiles && (report.left.length > 0 || !tookMessages))
    view.print(makeSafe(`  ${leftText(report.left) || report.text}`));
  const text = points.find(({ seq }) => seq === request.at)?.text;
  // `takeBackText`: without the output of the user's commands, which goes with the next text.
  if (text !== undefined && !keepsConversation) view.editAgain(takeBackText(text));
};

const REWIND_KEYS = {
  wide: 'Enter takes back files and conversation (undone by /redo) · Tab only one',
  narrow: 'Enter: files + conversation · Tab one',
};

/** Where files changed while commands ran. */
const EDITS_KEYS = {
  wide: 'Enter takes all back (undone by /redo) · Tab leaves what changed while commands ran',
  narrow: 'Enter takes all back · Tab edits only',
};

/** Enter takes the point back at once, files and conversation: `/redo` undoes it. */
const chooseRewind = async (
  context: SlashCommandContext,
  points: readonly RewindPoint[],
): Promise<void> => {
  const { view, session } = context;
  const lastTurn = Math.max(
    0,
    points.findIndex(({ kind }) => kind === 'turn'),
  );
  const list = points.map((point) => listedPoint(point, points));
  const title = 'Take back this and everything since:';
  const isDuring = points.some(({ changes }) => (changes?.duringCommands ?? 0) > 0);
  const keys = isDuring ? EDITS_KEYS : REWIND_KEYS;
  const taken = await view.pickPoint(openPointList(title, list, lastTurn, keys));
  const point = points[taken?.index ?? -1];
  if (point === undefined) return;
  const plan = await session.planRewind({ at: point.seq });
  const [usual] = rewindAnswers(plan, []);
  if (taken?.key === 'enter' && usual !== undefined)
    return rewindTo(context, { ...usual.request, at: point.seq }, points);
  // Another plan: refs that can't go back must not show among the files of the other answers.
  const { refs } = await session.planRewind({ at: point.seq, refs: true });
  const answers = rewindAnswers(plan, refs);
  const question = `Take back "${oneLine(point.title, TITLE_COLUMNS)}":`;
  const rows = answers.map(
    ({ name, about }): ListedPoint => ({ kind: 'answer', when: '', text: name, about }),
  );
  const answer = answers[(await view.pickPoint(openPointList(question, rows)))?.index ?? -1];
  if (answer !== undefined) await rewindTo(context, { ...answer.request, at: point.seq }, points);
};

/** The words of a typed request, and what each one changes in it. */
const REWIND_WORDS: Readonly<Record<string, Omit<RewindRequest, 'at'>>> = {
  both: {},
  conversation: { files: false },
  files: { conversation: false },
  force: { force: true },
  edits: { editsOnly: true },
  refs: { refs: true },
};

/** Reads `41`, `41 files`, `41 conversation`, `41 force`, `41 edits`, `41 refs`. */
const readRewind = (words: string): RewindRequest => {
  const [seq = '', ...more] = words.toLowerCase().split(/\s+/);
  const unknown = more.find((word) => !Object.hasOwn(REWIND_WORDS, word));
  if (!/^\d{1,15}$/.test(seq) || unknown !== undefined)
    throw new NotNow(
      `'${unknown ?? seq}' is not understood. Write for example /rewind 41, /rewind 41 files or ` +
        '/rewind 41 conversation. /rewind alone lists what can be taken back.',
    );
  const request = Object.assign({}, ...more.map((word) => REWIND_WORDS[word]));
  if (request.files === false && request.conversation === false)
    throw new NotNow('Say files or conversation. Without one of them both are taken back.');
  return { ...request, at: Number(seq) };
};

/** `/rewind`, and Escape twice: takes back turns and calls, their conversation and their files. */
export const rewind: SlashCommand = async (context, words) => {
  requireRest(context); // throws while a turn runs
  const { session, view, look, typedText } = context;
  // `typedText`: titles as the user typed them, without the output of `!` commands sent with them.
  const readPoints = async (): Promise<readonly RewindPoint[]> =>
    (await session.timeline())
      .map((point) => ({ ...point, title: typedText(point.title) }))
      .sort((a, b) => b.seq - a.seq);
  if (words !== '') return rewindTo(context, readRewind(words), await readPoints());
  await view.withLists(async () => {
    const points = await readPoints();
    if (points.length === 0) throw new NotNow('There is nothing to take back.');
    if (look.plain === 'yes') printPoints(context, points);
    else await chooseRewind(context, points);
  });
};

/** `/redo`: takes back the last rewind, and the one before it when it is typed again. */
export const redo: SlashCommand = async (context) => {
  requireRest(context);
  await context.session.redo();
};
