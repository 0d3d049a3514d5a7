import type { Entry } from '@pawl/agent/ports/journal';
import type { ExportedSession, FeedPiece, InspectedSession } from '../page-data-types.js';
import type { PageState } from './page-state.js';

/** Where the page gets a session from: the file that it is in, or the server that it came from. */

export const exportedSession = (): ExportedSession | null => {
  const text = document.getElementById('exported')?.textContent ?? 'null';
  return JSON.parse(text) as ExportedSession | null; // Safe: the program that wrote the file put it there.
};

/** `/TOKEN/session/ID`: the token, and the id if there is one. */
const [, token = '', , sessionId = ''] = location.pathname.split('/');
export const sessionInAddress = sessionId;
export const addressOf = (path: string): string => `/${token}/${path}`;

export const fetchJson = async <T>(path: string): Promise<T> => {
  const response = await fetch(addressOf(path));
  if (!response.ok) throw new Error((await response.text()).trim());
  return (await response.json()) as T; // Safe: the server of this very program made it.
};

export const fetchSession = (id: string): Promise<InspectedSession> => fetchJson(`data/${id}/session`);

const take = (pageState: PageState, entries: readonly Entry[]): void => {
  pageState.history.add(entries);
  pageState.grown();
};

/** Reads the entries of the session and each one that comes. After a broken connection the browser goes on by itself. */
export const followSession = (pageState: PageState): void => {
  const feed = new EventSource(addressOf(`data/${pageState.id}/feed`));
  const end = (trouble: string, connection: 'lost' | 'damaged'): void => {
    feed.close();
    pageState.connection = connection;
    pageState.trouble = trouble;
    pageState.update();
  };
  feed.addEventListener('open', () => {
    if (pageState.connection === 'lost') pageState.connection = 'live';
    pageState.update();
  });
  feed.addEventListener('error', () => {
    pageState.connection = 'lost';
    pageState.update();
  });
  feed.addEventListener('message', (message: MessageEvent<string>) => {
    const piece = JSON.parse(message.data) as FeedPiece; // Safe: the server of this very program made it.
    if (piece.kind === 'restart') pageState.restart();
    else if (piece.kind === 'damaged') end(piece.why, 'damaged');
    else {
      if (piece.caughtUp) pageState.connection = 'live';
      take(pageState, piece.entries);
      if (piece.caughtUp) document.body.dataset.loaded = 'yes';
    }
  });
};

export const readExported = (pageState: PageState, { entries, damage }: ExportedSession): void => {
  pageState.connection = damage === null ? 'file' : 'damaged';
  pageState.trouble = damage ?? '';
  take(pageState, entries);
  document.body.dataset.loaded = 'yes';
};
