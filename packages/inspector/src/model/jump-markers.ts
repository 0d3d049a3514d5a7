import type { JournalStep } from '@pawl/agent/journal/read/steps';

/** Places in a session to which a reader wants to jump. */

export type MarkerKind =
  | 'prompt'
  | 'error'
  | 'retry'
  | 'approval'
  | 'failed call'
  | 'cancel'
  | 'limit'
  | 'compaction'
  | 'crash';

export type Marker = {
  readonly seq: number;
  readonly kind: MarkerKind;
  /** One line for people. */
  readonly text: string;
};

export const MARKER_KINDS: readonly MarkerKind[] = [
  'prompt',
  'error',
  'retry',
  'approval',
  'failed call',
  'cancel',
  'limit',
  'compaction',
  'crash',
];

type Found = Omit<Marker, 'seq'>;

const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 140 ? `${line.slice(0, 139)}…` : line;
};

const inEvent = ({ event, before }: JournalStep): readonly Found[] => {
  switch (event.type) {
    case 'UserInput':
      return [{ kind: 'prompt', text: event.text }];
    case 'LlmFailed':
      return [{ kind: 'error', text: `${event.error.kind}: ${event.error.message}` }];
    case 'ToolsFailed':
    case 'HookFailed':
    case 'InputFailed':
      return [{ kind: 'error', text: event.message }];
    case 'CompactionFailed':
      return [{ kind: 'compaction', text: `failed: ${event.message}` }];
    case 'CompactionCompleted':
      return [{ kind: 'compaction', text: event.summary }];
    case 'ApprovalAnswered':
      return [{ kind: 'approval', text: `${event.answer.kind} (${event.scope})` }];
    case 'CancelTurn':
      return [{ kind: 'cancel', text: 'the user stops the turn' }];
    case 'CancelTool':
      return [{ kind: 'cancel', text: 'the user stops one call' }];
    case 'Resumed':
      return before.name === 'ShuttingDown' || before.name === 'Ready'
        ? []
        : [{ kind: 'crash', text: `the process ended in ${before.name} without closing the session` }];
    default:
      return [];
  }
};

const FAILED = ['failed', 'timedOut', 'lost', 'interrupted', 'denied', 'invalid', 'noSuchTool'];

const inActions = ({ actions }: JournalStep): readonly Found[] =>
  actions.flatMap((action): readonly Found[] => {
    if (action.type === 'RequestApproval')
      return [{ kind: 'approval', text: `asked for ${action.call.tool}: ${action.why}` }];
    if (action.type === 'DisplayToolResult' && FAILED.includes(action.status))
      return [
        { kind: 'failed call', text: `${action.tool} ${action.status}: ${action.title ?? action.text}` },
      ];
    return [];
  });

const inPath = ({ path, before, state }: JournalStep): readonly Found[] => {
  const entered = path.filter(({ kind }) => kind === 'go').map(({ to }) => to);
  const limit: Found = { kind: 'limit', text: `a limit stopped the turn in ${before.name}` };
  const again: Found = {
    kind: 'retry',
    text: state.name === 'CallingLlm' ? `attempt ${state.attempt}` : 'another attempt',
  };
  return [
    ...(entered.includes('BudgetExceeded') ? [limit] : []),
    ...(before.name === 'Error' && entered[0] === 'CallingLlm' ? [again] : []),
  ];
};

/** The markers of one step, at most one of each kind. */
export const markersOf = (step: JournalStep): readonly Marker[] => {
  const found = [...inEvent(step), ...inPath(step), ...inActions(step)];
  const byKind = new Map(found.toReversed().map((one) => [one.kind, one]));
  return [...byKind.values()].map(({ kind, text }) => ({ seq: step.seq, kind, text: oneLine(text) }));
};

/** The nearest marker of the kind (`null`: of any) after `seq`, or before it; null if there is none. */
export const nextMarker = (
  markers: readonly Marker[],
  kind: MarkerKind | null,
  seq: number,
  direction: 'forward' | 'back',
): Marker | null => {
  const fits = (marker: Marker): boolean =>
    (kind === null || marker.kind === kind) &&
    (direction === 'forward' ? marker.seq > seq : marker.seq < seq);
  return (direction === 'forward' ? markers.find(fits) : markers.findLast(fits)) ?? null;
};
