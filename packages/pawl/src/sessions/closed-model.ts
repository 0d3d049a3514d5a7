/**
 * Opens a stored session for work that asks no model: without key, network, servers and hooks of
 * the user. A turn that was interrupted ends before anything of it goes on.
 */

import { readForeignUntil } from '@pawl/agent/journal/state-folder';
import { isBusy } from '@pawl/agent/machine/state';
import { stateFolder } from '@pawl/agent/platform/environment';
import type { Model } from '@pawl/agent/ports/model';
import type { Stepped, Watcher } from '@pawl/agent/ports/session';
import { createAgent, type Session } from '@pawl/agent/session/create-agent';
import { liveRights } from '@pawl/agent/session/session-settings';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { resumedNote } from '@pawl/terminal/step-lines';
import { writeError } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { storedWorkspace } from '../settings/connect-model.js';
import { refuseForeign } from './file-history.js';
import {
  CUT_FOREIGN_REWIND,
  foldStored,
  openStateFolder,
  storedJournals,
} from './stored-sessions.js';

/** A model that answers nothing: whoever asks it waits until the request is aborted. */
const closedModel = (id: string, windowTokens: number): Model => ({
  id,
  facts: {
    windowTokens,
    outputTokensMax: 1,
    thinking: 'no',
    tools: 'yes',
    prices: null,
    source: null,
  },
  canAbort: 'yes',
  async *stream(_request, signal) {
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
  },
});

/** Says that a rewind is finished whose process was killed, and what that has changed. */
const tellRestOfRewind = (stepped: Stepped): void => {
  const { event, actions } = stepped;
  const texts = actions.flatMap((action) =>
    event.type === 'Rewound' && action.type === 'DisplayNotice' ? [action.text] : [],
  );
  // `resumedNote`: which work the resumed session repeats
  for (const text of [resumedNote(stepped), ...texts])
    if (text !== '') writeError(safe`! ${makeSafe(text)}\n`);
};

const openWithClosedModel = async (
  sessionId: string,
  folder: string | undefined,
  watcher: Watcher,
): Promise<Session> => {
  openStateFolder(process.env); // throws if nothing can be written there
  const { header, state } = await foldStored(sessionId, undefined);
  const { settings } = state.session;
  const foreignUntil = await readForeignUntil(stateFolder(process.env), header);
  if (folder === undefined) refuseForeign(foreignUntil, settings.workspace);
  if (state.name === 'Rewinding' && !Number.isFinite(foreignUntil))
    writeError(makeSafe(`! ${CUT_FOREIGN_REWIND}\n`));
  const { model: id, windowTokens } = settings.primary ?? settings;
  const model = closedModel(id, windowTokens);
  // what the session may do stays as it was
  const { preset, sandbox, ...rest } = liveRights(state).settings;
  const workspace = storedWorkspace(sessionId, folder ?? settings.workspace);
  const agent = createAgent({
    model,
    journals: storedJournals(),
    tasks: true, // a session that has the tool `task` keeps it
    report: (fault) => writeError(safe`! ${makeSafe(fault.message)}\n`),
  });
  const session = await agent.open({
    workspace,
    resume: sessionId,
    endsTurn: true,
    unpriced: 'countAsNothing', // no model is asked, so no price is needed
    // the first steps finish a rewind that was cut off, which the watcher tells
    ...(state.name === 'Rewinding' ? { watcher } : {}),
    settings: rest,
    ...(preset === undefined ? {} : { preset }),
    ...(sandbox === undefined || sandbox === 'missing' ? {} : { sandbox }),
  });
  if (isBusy(state) && state.name !== 'Rewinding')
    writeError(safe`! The last turn of the session was interrupted: it is stopped now.\n`);
  return session;
};

/**
 * Opens the session, which ends an interrupted turn, runs `work`, and closes the session.
 * `folder`: the session works there from now on.
 */
export const useWithoutModel = async <T>(
  sessionId: string,
  work: (session: Session) => Promise<T>,
  folder?: string,
): Promise<T> => {
  let isOpening = true;
  const session = await openWithClosedModel(sessionId, folder, (stepped) => {
    if (isOpening) tellRestOfRewind(stepped);
  });
  // a failure also reaches whoever waits below
  session.ended.catch(() => undefined);
  try {
    const rested = await session.idle();
    if (rested.name !== 'WaitingForUserInput' && rested.name !== 'Ready')
      throw new Stop(
        exitCodes.tryAgain,
        'busy',
        `The session is still at work (${rested.name}). Open it and stop the turn: pawl --resume ${sessionId}`,
      );
    isOpening = false;
    return await work(session);
  } finally {
    await session.close();
  }
};
