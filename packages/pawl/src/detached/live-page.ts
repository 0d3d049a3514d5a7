/** Detached sessions in the inspector: the list, and answers to their questions. */

import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { LiveQuestionText, LiveRow, LiveSessions } from '@pawl/inspector/page-data-types';
import type { Look } from '@pawl/terminal/paint';
import { questionRows, type TerminalQuestion } from '@pawl/terminal/question-rows';
import { joinSafe, safe } from '@pawl/terminal/safe-text';
import * as v from 'valibot';
import { LiveClient } from './live-client.js';
import { type LiveSession, listLive, statusWords } from './live-records.js';

const COLUMNS = 100;
const LOOK: Look = { colour: 'no', plain: 'no', background: 'unknown', columns: COLUMNS };

type AskedQuestion = TerminalQuestion & { readonly batchId: string; readonly callId: string };

/** The rows are those that a terminal shows, without the keys for its answers. */
const describeQuestion = (asked: AskedQuestion): LiveQuestionText => {
  const { batchId, callId, tool, subject, choices } = asked;
  const rows = questionRows({ ...asked, choices: [] }, LOOK, COLUMNS);
  return {
    batchId,
    callId,
    tool,
    about: subject.kind === 'question' || subject.kind === 'plan' ? subject.kind : 'call',
    text: joinSafe(rows, safe`\n`),
    // The choices of a question of the model, 1 to 4. Other answers are yes and no.
    choices: choices.filter(({ answer }) => /^[1-4]$/.test(answer)).map(({ allows }) => allows),
  };
};

/** The questions of a session that runs. `unread`: why they could not be read, or null. */
const describeQuestions = async ({
  record,
  status,
}: LiveSession): Promise<Pick<LiveRow, 'questions' | 'unread'>> => {
  if (status !== 'runs' || record.activity.questions.length === 0)
    return { questions: [], unread: null };
  const described = await attempt(() => new LiveClient(record.sessionId).describe());
  if (described.kind === 'fault') return { questions: [], unread: described.fault.message };
  // described by our own process
  const asked = described.value.approvals as readonly AskedQuestion[];
  return { questions: asked.map(describeQuestion), unread: null };
};

const answerSchema = v.object({
  batchId: v.string(),
  callId: v.string(),
  answer: v.variant('kind', [
    v.object({ kind: v.literal('allow') }),
    v.object({ kind: v.literal('deny'), reason: v.string() }),
    v.object({ kind: v.literal('reply'), text: v.string() }),
  ]),
});

export const livePage: LiveSessions = {
  async list() {
    const nowMs = systemClock.now();
    return Promise.all(
      (await listLive()).map(async (live) => {
        const { sessionId, workspace, title, startedAtMs, activity } = live.record;
        const { costUsd, rounds } = activity;
        const facts = { sessionId, workspace, title, startedAtMs, costUsd, rounds };
        return {
          ...facts,
          state: statusWords(live, nowMs),
          ...(await describeQuestions(live)),
        };
      }),
    );
  },
  async answer(sessionId, body) {
    const { batchId, callId, answer } = v.parse(answerSchema, body);
    await new LiveClient(sessionId).send({
      type: 'ApprovalAnswered',
      batchId,
      callId,
      answer,
      scope: 'once',
    });
  },
};
