import type { HookReport } from '../../src/ports/hooks.js';
import type { Session, Write } from './place.js';

/** Edits `a` and lets the phases run; `meanwhile` happens while the model writes the message. */
export const commitA = async (
  session: Session,
  meanwhile: () => Promise<unknown> = async () => undefined,
  signal?: AbortSignal,
): Promise<HookReport> => {
  const calls = await session.batch([{ edit: 'a', text: `agent ${performance.now()}` }]);
  const write: Write = async () => {
    await meanwhile();
    return 'feat: something';
  };
  const context = session.context(calls, { write, ...(signal === undefined ? {} : { signal }) });
  return session.commit(context);
};
