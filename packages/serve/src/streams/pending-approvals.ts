import type { State } from '@pawl/agent/machine/state';
import { type ApprovalDescription, describeQuestion } from '@pawl/agent/policy/approval-question';
import { decide } from '@pawl/agent/policy/policy';

/** A call that waits for the answer of a user, described completely. */
export type Approval = ApprovalDescription & { readonly batchId: string; readonly callId: string };

/** The calls that wait in this state. `diffs`: the previews that are known, by batch and call. */
export const approvalsIn = (state: State, diffs: ReadonlyMap<string, string>): readonly Approval[] => {
  if (state.name !== 'ExecutingTools') return [];
  const { batchId, calls, session } = state;
  return calls.flatMap(({ status, judged: call }) => {
    if (status !== 'awaitingApproval') return [];
    const { why, grantable } = decide(session.settings, session.grants, call);
    const diff = diffs.get(`${batchId} ${call.callId}`);
    const description = describeQuestion(
      {
        type: 'RequestApproval',
        batchId,
        call,
        why,
        ...(diff === undefined ? {} : { diff }),
        ...(grantable === 'any' ? {} : { grantable }),
      },
      session.settings.workspace,
    );
    return [{ batchId, callId: call.callId, ...description }];
  });
};
