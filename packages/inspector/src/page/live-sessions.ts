/**
 * Detached sessions, which run in processes of their own: what each does, and its questions.
 *
 * A question can be answered once all of it has been on the screen, as in a terminal. From top to
 * bottom: `showLive`; the row of a session; and a question with its answers.
 */

import { moneyText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { localTime } from '@pawl/agent/platform/text';
import { plural } from '../model/figure-text.js';
import type { LiveAnswer, LiveQuestionText, LiveRow } from '../page-data-types.js';
import { drawInline } from './drawn-text.js';
import { arrange, button, make, visibleText } from './elements.js';
import { apiAddress, fetchJson } from './page-state.js';

/** Time between two readings of the list. */
const LOOK_MS = 2_000;

/** Fills the element, now and then again; it stays hidden while there are none. */
export const showLive = async (element: HTMLElement): Promise<void> => {
  const drawn = new Map<string, DrawnRow>();
  const list = make('ul', {});
  const trouble = make('p', { role: 'status' });
  let seenAt: number | null = null;
  element.replaceChildren(make('h2', {}, 'Detached'), trouble, list);
  const look = async (): Promise<void> => {
    const rows = await fetchJson<readonly LiveRow[]>('live');
    element.hidden = rows.length === 0;
    const elements = rows.map((row) => {
      const known = drawn.get(row.sessionId) ?? createRow(row);
      drawn.set(row.sessionId, known);
      updateRow(known, row);
      return known.element;
    });
    arrange(list, elements);
    seenAt = performance.now();
    trouble.replaceChildren();
  };
  const showTrouble = (error: unknown): void => {
    element.hidden = false;
    const what =
      seenAt === null
        ? 'They can not be listed'
        : `This is what was known ${durationText(performance.now() - seenAt)} ago`;
    trouble.replaceChildren(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  };
  await look().catch(showTrouble);
  setInterval(() => void (document.hidden || look().catch(showTrouble)), LOOK_MS);
};

/** The elements of a session's row. */
type DrawnRow = {
  readonly element: HTMLElement;
  readonly facts: HTMLElement;
  readonly asked: HTMLElement;
  /** What became of the last answer from this page. */
  readonly answered: HTMLElement;
  /** The questions that are shown. */
  ids: string;
};

const createRow = ({ sessionId, title }: LiveRow): DrawnRow => {
  const [facts, asked] = [make('div', { class: 'faint' }), make('div', {})];
  const answered = make('p', { role: 'status' });
  const link = make(
    'a',
    { href: apiAddress(`session/${sessionId}`) },
    title === '' ? sessionId : title,
  );
  return { element: make('li', {}, link, facts, answered, asked), facts, answered, asked, ids: '' };
};

const updateRow = (drawn: DrawnRow, row: LiveRow): void => {
  const { state, costUsd, rounds, workspace, startedAtMs } = row;
  const money = moneyText(costUsd);
  const facts = [
    state,
    money,
    plural(rounds, 'round'),
    workspace,
    `since ${localTime(startedAtMs)}`,
  ];
  if (row.unread !== null) facts.push(`its questions can't be shown now: ${row.unread}`);
  drawn.facts.textContent = facts.join(' · ');
  const ids = row.questions.map(({ code }) => code).join('\n');
  // The same questions stay as they are, since the user may be reading or typing.
  if (ids === drawn.ids) return;
  drawn.ids = ids;
  const tell = (text: string): void => drawn.answered.replaceChildren(visibleText(text));
  drawn.asked.replaceChildren(
    ...row.questions.map((one) => createQuestion(row.sessionId, one, tell)),
  );
};

/** `tell`: says what became of the answer, also when the question is gone. */
const createQuestion = (
  sessionId: string,
  question: LiveQuestionText,
  tell: (text: string) => void,
): HTMLElement => {
  const drawRow = (row: string): HTMLElement =>
    make('div', {}, ...(question.about === 'plan' ? drawInline(row) : [row === '' ? ' ' : row]));
  const rows = question.text.split('\n').map(drawRow);
  const text = make('div', { class: 'asked' }, ...rows);
  const status = make('p', { role: 'status' }, 'Read all of it to answer.');
  const { about, tool } = question;
  const field = make('input', {
    type: 'text',
    placeholder: FIELDS[about],
    'aria-label': `${FIELDS[about]}, for ${tool}`,
  });
  const disable = (isDisabled: boolean): void => {
    for (const one of buttons) one.disabled = isDisabled;
  };
  const buttons = listChoices(question).map((choice) =>
    button(choice.label, { disabled: true }, () => {
      const answer = answerOf(choice, field.value);
      if (answer === null) return status.replaceChildren('Type your words first.');
      disable(true);
      void sendAnswer(sessionId, question, answer)
        .catch((error: unknown) => `The answer was not sent: ${String(error)}`)
        .then((refusal) => {
          tell(refusal ?? choice.done);
          disable(refusal === null);
        });
    }),
  );
  whenRead(text, () => {
    status.replaceChildren('');
    disable(false);
  });
  const head = make('h3', {}, about === 'call' ? `${tool} ${HEADS.call}` : `Pawl ${HEADS[about]}`);
  return make('div', { class: 'question' }, head, text, ...buttons, field, status);
};

/** Calls `read` once all of the element has been on the screen, not necessarily at one time. */
const whenRead = (element: HTMLElement, read: () => void): void => {
  const rows = new Set(element.children);
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) rows.delete(target);
      if (rows.size > 0) return;
      observer.disconnect();
      read();
    },
    { threshold: 1 },
  );
  for (const row of rows) observer.observe(row);
};

/** Resolves with why the answer did not count; null if it did. */
const sendAnswer = async (
  sessionId: string,
  { batchId, callId, code }: LiveQuestionText,
  answer: LiveAnswer,
): Promise<string | null> => {
  const response = await fetch(apiAddress(`live/${sessionId}`), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ batchId, callId, code, answer }),
  });
  return response.ok ? null : (await response.text()).trim();
};

/** A button, the kind of its answer, and what is said once it counts. */
type Choice = {
  readonly label: string;
  readonly done: string;
  readonly kind: LiveAnswer['kind'];
  /** The words of a reply; absent: those in the field. */
  readonly text?: string;
};

const listChoices = ({ about, choices }: LiveQuestionText): readonly Choice[] => {
  switch (about) {
    case 'call':
      return [
        { label: 'Yes, once', done: 'Allowed.', kind: 'allow' },
        { label: 'No', done: 'Refused.', kind: 'deny' },
      ];
    case 'plan':
      return [
        { label: 'Accept, and carry it out', done: 'Accepted.', kind: 'allow' },
        { label: 'Send it back', done: 'Sent back.', kind: 'deny' },
      ];
    case 'question':
      return [
        ...choices.map(
          (text): Choice => ({ label: text, done: `Answered: ${text}`, kind: 'reply', text }),
        ),
        { label: 'Send your words', done: 'Answered.', kind: 'reply' },
        { label: 'No answer', done: 'Not answered: the model decides itself.', kind: 'deny' },
      ];
    default:
      return about satisfies never;
  }
};

/** `typed`: the text in the field. Null if the answer can't be sent yet. */
const answerOf = ({ kind, text }: Choice, typed: string): LiveAnswer | null => {
  if (kind === 'allow') return { kind };
  if (kind === 'deny') return { kind, reason: typed };
  const reply = text ?? typed.trim();
  return reply === '' ? null : { kind, text: reply };
};

const HEADS = {
  call: 'needs your answer',
  plan: 'proposes a plan',
  question: 'asks you',
} as const;
const FIELDS = {
  call: 'Reason for a no',
  plan: 'Reason to send it back',
  question: 'Your own words',
} as const;
