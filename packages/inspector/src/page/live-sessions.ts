/**
 * Sessions that run in processes of their own: what each does, and its questions.
 *
 * A question can be answered once all of it has been on the screen, as in a terminal.
 */

import { dayText, moneyText, plural } from '../model/figure-text.js';
import type { LiveQuestionText, LiveRow } from '../page-data-types.js';
import { arrange, make } from './elements.js';
import { apiAddress, fetchJson } from './page-state.js';

const LOOK_MS = 2_000;

const sendAnswer = async (
  sessionId: string,
  { batchId, callId }: LiveQuestionText,
  answer: { readonly isYes: boolean; readonly reason: string },
): Promise<string> => {
  const response = await fetch(apiAddress(`live/${sessionId}`), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ batchId, callId, ...answer }),
  });
  if (!response.ok) return (await response.text()).trim();
  return answer.isYes ? 'Allowed.' : 'Refused.';
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

const createQuestion = (sessionId: string, question: LiveQuestionText): HTMLElement => {
  const rows = question.text.split('\n').map((row) => make('div', {}, row === '' ? ' ' : row));
  const text = make('div', { class: 'asked' }, ...rows);
  const said = make('p', { role: 'status' }, 'Read all of it to answer.');
  const reason = make('input', {
    type: 'text',
    placeholder: 'Reason for a no',
    'aria-label': `Reason for a no to ${question.tool}`,
  });
  const buttons = [true, false].map((isYes) => {
    const button = make('button', { disabled: true }, isYes ? 'Yes, once' : 'No');
    button.addEventListener('click', () => {
      for (const one of buttons) one.disabled = true;
      const answer = { isYes, reason: isYes ? '' : reason.value };
      void sendAnswer(sessionId, question, answer).then(
        (result) => said.replaceChildren(result),
        (error: unknown) => said.replaceChildren(`The answer was not sent: ${String(error)}`),
      );
    });
    return button;
  });
  whenRead(text, () => {
    said.replaceChildren('');
    for (const button of buttons) button.disabled = false;
  });
  const head = make('h3', {}, `${question.tool} needs your answer`);
  return make('div', { class: 'question' }, head, text, ...buttons, reason, said);
};

type Drawn = {
  readonly element: HTMLElement;
  readonly facts: HTMLElement;
  readonly asked: HTMLElement;
  /** The questions that are shown. */
  ids: string;
};

const draw = (drawn: Drawn, row: LiveRow): void => {
  const { state, costUsd, rounds, workspace, startedAtMs } = row;
  const money = costUsd === null ? 'price unknown' : moneyText(costUsd);
  const facts = [state, money, plural(rounds, 'round'), workspace, `since ${dayText(startedAtMs)}`];
  drawn.facts.textContent = facts.join(' · ');
  const ids = row.questions.map(({ batchId, callId }) => `${batchId} ${callId}`).join('\n');
  // What is being read, or typed, stays.
  if (ids === drawn.ids) return;
  drawn.ids = ids;
  drawn.asked.replaceChildren(...row.questions.map((one) => createQuestion(row.sessionId, one)));
};

const createRow = ({ sessionId, title }: LiveRow): Drawn => {
  const [facts, asked] = [make('div', { class: 'faint' }), make('div', {})];
  const link = make(
    'a',
    { href: apiAddress(`session/${sessionId}`) },
    title === '' ? sessionId : title,
  );
  return { element: make('li', {}, link, facts, asked), facts, asked, ids: '' };
};

/** Fills the element, now and then again; it stays hidden while there are none. */
export const showLive = async (element: HTMLElement): Promise<void> => {
  const drawn = new Map<string, Drawn>();
  const list = make('ul', {});
  element.replaceChildren(make('h2', {}, 'Detached'), list);
  const look = async (): Promise<void> => {
    const rows = await fetchJson<readonly LiveRow[]>('live');
    element.hidden = rows.length === 0;
    const elements = rows.map((row) => {
      const known = drawn.get(row.sessionId) ?? createRow(row);
      drawn.set(row.sessionId, known);
      draw(known, row);
      return known.element;
    });
    arrange(list, elements);
  };
  await look();
  // The server has ended: the page shows what it knew.
  setInterval(() => void (document.hidden || look().catch(() => undefined)), LOOK_MS);
};
