/** Detached sessions in the inspector: the list, and answers to their questions. */

import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { LiveRow, LiveSessions } from '@pawl/inspector/page-data-types';
import * as v from 'valibot';
import { type LiveSession, listLive, statusWords } from '../sessions/live-records.js';
import { LiveClient } from './live-client.js';
import { PLAIN_LOOK, readWaitingCalls } from './waiting-questions.js';

/** The questions of a session that runs. `unread`: why they could not be read, or null. */
const describeQuestions = async ({
  record,
  status,
}: LiveSession): Promise<Pick<LiveRow, 'questions' | 'unread'>> => {
  if (status !== 'runs' || record.activity.questions.length === 0)
    return { questions: [], unread: null };
  const read = await attempt(() => readWaitingCalls(new LiveClient(record.sessionId), PLAIN_LOOK));
  if (read.kind === 'fault') return { questions: [], unread: read.fault.message };
  return { questions: read.value, unread: null };
};

const answerSchema = v.object({
  batchId: v.string(),
  callId: v.string(),
  code: v.string(),
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
    const { answer, ...shown } = v.parse(answerSchema, body);
    await new LiveClient(sessionId).answer(shown, answer);
  },
};
