/** Detached sessions in the inspector: the list, and answers to their questions. */

import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { LiveRow, LiveSessions } from '@pawl/inspector/page-data-types';
import type { Look } from '@pawl/terminal/paint';
import { questionRows, type TerminalQuestion } from '@pawl/terminal/question-rows';
import { joinSafe, safe } from '@pawl/terminal/safe-text';
import * as v from 'valibot';
import { LiveClient } from './live-client.js';
import { type LiveSession, listLive, statusWords } from './live-records.js';

const COLUMNS = 100;
const LOOK: Look = { colour: 'no', plain: 'no', background: 'unknown', columns: COLUMNS };

type Asked = Omit<TerminalQuestion, 'choices'> & {
  readonly batchId: string;
  readonly callId: string;
};

/** The rows that a terminal shows, without the keys for its answers. */
const questionText = (asked: Asked): string =>
  joinSafe(questionRows({ ...asked, choices: [] }, LOOK, COLUMNS), safe`\n`);

/** None if the session can't be reached: the row tells its state. */
const describeQuestions = async ({
  record,
  status,
}: LiveSession): Promise<LiveRow['questions']> => {
  if (status !== 'runs' || record.activity.questions.length === 0) return [];
  const described = await attempt(() => new LiveClient(record.sessionId).describe());
  if (described.kind === 'fault') return [];
  // described by our own process
  const asked = described.value.approvals as readonly Asked[];
  return asked.map((one) => ({
    batchId: one.batchId,
    callId: one.callId,
    tool: one.tool,
    text: questionText(one),
  }));
};

const answerSchema = v.object({
  batchId: v.string(),
  callId: v.string(),
  isYes: v.boolean(),
  reason: v.string(),
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
          questions: await describeQuestions(live),
        };
      }),
    );
  },
  async answer(sessionId, body) {
    const { batchId, callId, isYes, reason } = v.parse(answerSchema, body);
    await new LiveClient(sessionId).send({
      type: 'ApprovalAnswered',
      batchId,
      callId,
      answer: isYes ? { kind: 'allow' } : { kind: 'deny', reason },
      scope: 'once',
    });
  },
};
