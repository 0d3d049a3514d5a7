/**
 * Starts the page: a session from the file it is in, a session of the server, or the server's list.
 */

import type { InspectedSession } from '../page-data-types.js';
import { make } from './elements.js';
import { sessionTitle } from './overview-panel.js';
import {
  comparedInAddress,
  exportedSession,
  fetchSession,
  followSession,
  PageState,
  readCompared,
  readExported,
  sessionInAddress,
} from './page-state.js';
import { SessionPage } from './session-page.js';
import { showSessions } from './sessions-page.js';

/** Live entries are drawn at most so often: a render for each of them would be quadratic. */
const RENDER_MS = 80;

/**
 * The address follows the selection when it rests: browsers refuse more than 200 changes in ten
 * seconds.
 */
const ADDRESS_MS = 250;

/** Calls `draw` once for all changes of a moment, and less often while new entries come. */
const scheduled = (draw: () => void, isFollowing: () => boolean): (() => void) => {
  let waiting = false;
  let drawnAt = Number.NEGATIVE_INFINITY;
  const run = (): void => {
    requestAnimationFrame(() => {
      waiting = false;
      drawnAt = performance.now();
      draw();
    });
  };
  return () => {
    if (waiting) return;
    waiting = true;
    // A reader who steps through the session sees each step at once.
    const restMs = drawnAt + RENDER_MS - performance.now();
    if (restMs > 0 && isFollowing()) setTimeout(run, restMs);
    else run();
  };
};

const seqInAddress = (): number | null => {
  const [, digits] = /^#(\d+)$/.exec(location.hash) ?? [];
  return digits === undefined ? null : Number(digits);
};

/** Writes the selected entry into the address, so that it can be copied and survives a reload. */
const addressWriter = (): ((pageState: PageState) => void) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (pageState) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const hash = pageState.following ? '' : `#${pageState.seq}`;
      if (location.hash !== hash)
        history.replaceState(null, '', `${location.pathname}${location.search}${hash}`);
    }, ADDRESS_MS);
  };
};

const openPage = (session: InspectedSession): PageState => {
  let page: SessionPage | null = null;
  // The entry in the address. It is selected once it has come, or the last one once all have.
  let pendingSeq = seqInAddress();
  const selectPending = (): void => {
    if (pendingSeq === null) return;
    const isWhole = ['live', 'file', 'damaged'].includes(pageState.connection);
    if (pageState.history.seq < pendingSeq && !isWhole) return;
    const seq = pendingSeq;
    pendingSeq = null;
    pageState.go(seq);
  };
  const writeAddress = addressWriter();
  const render = (): void => {
    selectPending();
    page?.render();
    if (pageState.connection !== 'loading')
      document.title = `${sessionTitle(pageState.history)} · Pawl`;
    if (pendingSeq === null) writeAddress(pageState);
  };
  const pageState = new PageState(
    session,
    scheduled(render, () => pageState.following),
  );
  page = new SessionPage(pageState);
  // an address with an entry is a link to a place in the conversation
  if (pendingSeq !== null) pageState.panel = 'conversation';
  document.title = `${session.header.sessionId} · Pawl`;
  document.body.replaceChildren(page.element);
  if (session.foreignMachine)
    pageState.troubles.add(
      'Another version of the machine wrote this session: the states shown may differ from ' +
        'those that were.',
    );
  addEventListener('hashchange', () => {
    pendingSeq = seqInAddress();
    pageState.update();
  });
  pageState.update();
  return pageState;
};

/** A session that can't be read is no reason to hide the one that can. */
const compare = async (pageState: PageState, id: string): Promise<void> => {
  try {
    await readCompared(pageState, id);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    pageState.troubles.add(`${id} can't be compared: ${why}`);
    pageState.update();
  }
};

const start = async (): Promise<void> => {
  const exported = exportedSession();
  if (exported !== null) readExported(openPage(exported), exported);
  else if (sessionInAddress === '') await showSessions();
  else {
    const pageState = openPage(await fetchSession(sessionInAddress));
    followSession(pageState);
    if (comparedInAddress !== '') await compare(pageState, comparedInAddress);
  }
};

start().catch((error: unknown) => {
  const text = error instanceof Error ? error.message : String(error);
  document.body.replaceChildren(
    make(
      'div',
      { class: 'page' },
      make('main', {}, make('p', { class: 'trouble', role: 'alert' }, text)),
    ),
  );
  document.body.dataset.loaded = 'failed';
});
