/** Leads a text through its approval: events from outside, legal moves and forced ones, a history and a listener. */
import { IllegalTransition, startMachine, stateMachine } from 'pawl/machine';

type State = 'Draft' | 'InReview' | 'Published' | 'Withdrawn';
type Event =
  | { type: 'Submit'; author: string }
  | { type: 'Approve'; by: string }
  | { type: 'Reject' };
type Paper = { readonly author: string; readonly approvedBy: readonly string[] };

const isByAnother = ({ by }: { by: string }, { author }: Paper) => by !== author;
const countIn = ({ by }: { by: string }, paper: Paper) => ({
  ...paper,
  approvedBy: [...paper.approvedBy, by],
});
const isEnough = ({ approvedBy }: Paper) => approvedBy.length === 2;

const approval = stateMachine<State, Event, Paper>()
  .transition('Draft', 'Submit', 'InReview', {
    action: ({ author }, paper) => ({ ...paper, author }),
  })
  .transition('InReview', 'Approve', '*', { internal: true, guard: isByAnother, action: countIn })
  .transition('InReview', 'Reject', 'Draft', {
    action: (_event, paper) => ({ ...paper, approvedBy: [] }),
  })
  .always('InReview', 'Published', { guard: isEnough, label: 'two have approved' })
  .terminal('Published', 'Withdrawn')
  .build('Draft');

const paper = startMachine(approval, { author: '', approvedBy: [] }, { now: Date.now });
paper.listen(({ from, to, event, label, forced }) => {
  console.log(`${from} → ${to}: ${forced === 'yes' ? 'by force' : (event ?? label)}`);
});
const votes = ['Ada', 'Bob', 'Cleo'].map((by): Event => ({ type: 'Approve', by }));
for (const event of [{ type: 'Submit', author: 'Ada' } as const, ...votes]) {
  for (const { why } of paper.send(event).diagnostics) console.log(JSON.stringify(event), why);
  await null; // a listener is told after the step
}
try {
  paper.transitionTo('Draft');
} catch (error) {
  if (error instanceof IllegalTransition) console.log(error.message);
}
paper.forceTransition('Withdrawn', 'the numbers were wrong');
await null;
console.log(paper.history().at(-1)?.reason, paper.context.approvedBy);
