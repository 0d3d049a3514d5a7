import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { copyFile, stat } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { journalPath, markPath } from '@pawl/agent/journal/state-folder';
import type { Entry } from '@pawl/agent/ports/journal';
import { createRedactor } from '@pawl/agent/secrets/redactor';
import { settingsFrom } from '../../../test/kit/agent/trace-player.js';
import {
  eventsOf,
  STARTED_AT,
  STORY,
  StoredSession,
  storeTrace,
} from '../../../test/kit/inspector/stored-session.js';
import { atEnd, temporaryFolder } from '../../../test/temporary-folder.js';
import type { FeedPiece } from '../src/page-data-types.js';
import { cleanValue, InspectedSessions } from '../src/server/inspected-sessions.js';
import { type Inspector, startInspector } from '../src/server/inspector-server.js';

/** The server behind the page, asked as a browser asks, and as others try to. */

const PAGE = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'"><p>page</p>`;
const SECRET = 'q7Lw-93kd-XXv2-81zz';

const serve = async (context: TestContext): Promise<{ inspector: Inspector; folder: string }> => {
  const folder = temporaryFolder(context, 'inspector');
  const redactor = createRedactor([{ name: 'MY_TOKEN', value: SECRET }]);
  const inspector = await startInspector({ folder, version: '1', redactor, page: PAGE });
  atEnd(context, () => inspector.close());
  return { inspector, folder };
};

type Got = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
};

const get = (
  address: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Got> =>
  new Promise((resolve, reject) => {
    const asked = request(address, options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(parts).toString(),
        }),
      );
    });
    asked.on('error', reject);
    asked.end();
  });

/** Reads a feed until `enough`, then hangs up. */
const feed = (
  address: string,
  enough: (pieces: readonly FeedPiece[]) => boolean,
  headers: Record<string, string> = {},
): Promise<readonly FeedPiece[]> =>
  new Promise((resolve, reject) => {
    const asked = request(address, { headers }, (response) => {
      let text = '';
      const pieces: FeedPiece[] = [];
      response.setEncoding('utf8').on('data', (part: string) => {
        const messages = (text + part).split('\n\n');
        text = messages.pop() ?? '';
        for (const message of messages)
          pieces.push(JSON.parse(message.slice(message.indexOf('data: ') + 6)));
        if (!enough(pieces)) return;
        asked.destroy();
        resolve(pieces);
      });
      response.on('end', () => reject(new Error(`the feed ended early: ${text.slice(0, 400)}`)));
    });
    asked.on('error', (error) => reject(error));
    asked.end();
  });

const entriesOf = (pieces: readonly FeedPiece[]): readonly Entry[] =>
  pieces.flatMap((piece) => (piece.kind === 'entries' ? piece.entries : []));
const caughtUp = (pieces: readonly FeedPiece[]): boolean =>
  pieces.some((piece) => piece.kind === 'entries' && piece.caughtUp);
const dataOf = (inspector: Inspector, id: string, part: string): string =>
  `${inspector.address}data/${id}/${part}`;

describe('the server of the inspector', () => {
  it('answers only the address with its token, for this computer, for reading', async (context) => {
    const { inspector } = await serve(context);
    const { port, pathname, host } = new URL(inspector.address);
    const good = await get(inspector.address);
    assert.equal(good.status, 200);
    assert.equal(
      good.headers['content-security-policy'],
      "default-src 'none'; frame-ancestors 'none'",
    );
    assert.equal(good.headers['cache-control'], 'no-store');
    assert.equal(good.headers['access-control-allow-origin'], undefined);
    const token = pathname.slice(1, -1);
    assert.ok(token.length >= 32);
    const refused: readonly (readonly [string, Parameters<typeof get>[1], number])[] = [
      [`http://${host}/`, {}, 403],
      [`http://${host}/${token.slice(0, -1)}${token.endsWith('x') ? 'y' : 'x'}/`, {}, 403],
      [`http://${host}/${token.slice(0, -1)}/sessions`, {}, 403],
      [inspector.address, { headers: { host: `evil.example:${port}` } }, 403],
      [inspector.address, { headers: { host: '127.0.0.1:1' } }, 403],
      [inspector.address, { headers: { host: '127.0.0.1' } }, 403],
      [inspector.address, { headers: { origin: 'http://evil.example' } }, 403],
      [inspector.address, { headers: { origin: 'null' } }, 403],
      [inspector.address, { headers: { origin: `https://127.0.0.1:${port}` } }, 403],
      ...['POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'].map(
        (method) => [inspector.address, { method }, 405] as const,
      ),
      [`${inspector.address}nothing`, {}, 404],
      [`${inspector.address}data/..%2F..%2Fetc/session`, {}, 404],
      [`${inspector.address}data/none/session`, {}, 422],
    ];
    for (const [address, options, status] of refused) {
      const got = await get(address, options);
      assert.equal(
        got.status,
        status,
        `${options?.method ?? 'GET'} ${address} ${JSON.stringify(options)}`,
      );
      assert.ok(!got.text.includes('page'), got.text);
    }
    assert.equal(
      (await get(inspector.address, { headers: { origin: `http://localhost:${port}` } })).status,
      200,
    );
    assert.equal(
      (await get(inspector.address, { headers: { host: `localhost:${port}` } })).status,
      200,
    );
  });

  it('lists sessions, tells their figures, and replaces secrets everywhere', async (context) => {
    const { inspector, folder } = await serve(context);
    const trace = `> Start\n> UserInput "deploy with ${SECRET} now"\n> LlmCompleted req-1 says "I used ${SECRET}."\n`;
    await storeTrace(folder, 'told', trace);
    const pieces = await feed(dataOf(inspector, 'told', 'feed'), caughtUp);
    const texts = [
      (await get(`${inspector.address}sessions`)).text,
      (await get(dataOf(inspector, 'told', 'session'))).text,
      (await get(dataOf(inspector, 'told', 'summary'))).text,
      JSON.stringify(pieces),
    ];
    for (const text of texts) assert.ok(!text.includes(SECRET), text);
    assert.match(texts.join(), /deploy with \[secret:\$MY_TOKEN\] now/);
    const summary = JSON.parse(texts[2] ?? '');
    assert.deepEqual([summary.seq, summary.state, summary.turns], [3, 'WaitingForUserInput', 1]);
    assert.match(texts[1] ?? '', /You are Pawl/);
    // a damage names the file, and so its folder
    const secretFolder = `${folder}/${SECRET}`;
    await storeTrace(secretFolder, 'told', trace);
    const journal = journalPath(secretFolder, 'told');
    writeFileSync(journal, readFileSync(journal, 'utf8').replace('I used', 'I lost'));
    const redactor = createRedactor([{ name: 'MY_TOKEN', value: SECRET }]);
    const sessions = new InspectedSessions({ folder: secretFolder, version: '1', redactor });
    const { damage } = await sessions.exported('told');
    assert.match(damage ?? '', /\[secret:\$MY_TOKEN\].*damaged/);
    const keys = cleanValue(redactor, { [SECRET]: 1, '[secret:$MY_TOKEN]': 2 });
    assert.deepEqual(Object.values(keys as object), [1, 2]);
  });

  it('gives a journal that another process writes to, and goes on where a reader stopped', async (context) => {
    const { inspector, folder } = await serve(context);
    const events = eventsOf(STORY);
    const stored = await StoredSession.create(folder, 'live', settingsFrom('careful {}'));
    await stored.add(events.slice(0, 4));
    const address = dataOf(inspector, 'live', 'feed');
    const growing = feed(address, (pieces) => entriesOf(pieces).length === 8);
    await feed(address, caughtUp); // a second reader at the same time
    for (const event of events.slice(4, 8)) await stored.add([event]);
    assert.deepEqual(
      entriesOf(await growing).map(({ seq, event }) => [seq, event.type]),
      events.slice(0, 8).map(({ type }, index) => [index + 1, type]),
    );
    const later = await feed(address, caughtUp, { 'last-event-id': '6' });
    assert.deepEqual(
      entriesOf(later).map(({ seq }) => seq),
      [7, 8],
    );
    await stored.journal.close();
  });

  it('waits for the rest of a line, starts again with another file, and names damage', async (context) => {
    const { inspector, folder } = await serve(context);
    const seven = eventsOf(STORY).slice(0, 7);
    for (const [id, count] of [
      ['torn', 5],
      ['whole', 7],
    ] as const) {
      const stored = await StoredSession.create(folder, id, settingsFrom(''));
      await stored.add(seven.slice(0, count));
      await stored.journal.close();
    }
    const file = journalPath(folder, 'torn');
    const { size } = await stat(file);
    // a writer in the middle of its line, which the mark does not name yet
    truncateSync(file, size - 9);
    rmSync(markPath(file));
    let restarted = 0;
    const following = feed(dataOf(inspector, 'torn', 'feed'), (pieces) => {
      if (restarted === 0 && entriesOf(pieces).length === 4) {
        restarted = 1;
        copyFile(journalPath(folder, 'whole'), `${file}.new`).then(() =>
          renameSync(`${file}.new`, file),
        );
      }
      return pieces.some(({ kind }) => kind === 'restart') && entriesOf(pieces).at(-1)?.seq === 7;
    });
    const seqs = entriesOf(await following).map(({ seq }) => seq);
    assert.deepEqual(seqs, [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7]);
    appendFileSync(file, '{"seq":8,"event":{"type":"Start","at":1},"crc":"00000000"}\n');
    const pieces = await feed(dataOf(inspector, 'torn', 'feed'), (some) =>
      some.some(({ kind }) => kind === 'damaged'),
    );
    assert.equal(entriesOf(pieces).length, 7);
    assert.match(JSON.stringify(pieces.at(-1)), /damaged at line 9/);
  });

  it('calls zeros after a power loss no damage, but a file that was cut', async (context) => {
    const { inspector, folder } = await serve(context);
    const stored = await StoredSession.create(folder, 'zeros', settingsFrom(''));
    await stored.add(eventsOf(STORY).slice(0, 5));
    const file = journalPath(folder, 'zeros');
    await stored.journal.close();
    const before = readFileSync(file, 'utf8').trimEnd().lastIndexOf('\n') + 1;
    appendFileSync(file, Buffer.alloc(64));
    let isCut = false;
    const cut = await feed(dataOf(inspector, 'zeros', 'feed'), (pieces) => {
      if (!isCut && caughtUp(pieces)) truncateSync(file, before);
      isCut ||= caughtUp(pieces);
      return pieces.some(({ kind }) => kind === 'damaged');
    });
    assert.deepEqual(
      new Set(cut.map(({ kind }) => kind)),
      new Set(['entries', 'restart', 'damaged']),
    );
    assert.match(JSON.stringify(cut.at(-1)), /the file was cut: entry 5/);
  });

  it('waits for a slow reader, and leaves neither listeners nor an open journal behind', async (context) => {
    const { inspector, folder } = await serve(context);
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warn);
    atEnd(context, () => process.off('warning', warn));
    const stored = await StoredSession.create(folder, 'long', settingsFrom(''));
    const text = 'a long text '.repeat(200);
    const typed = Array.from(
      { length: 4_000 },
      (_, at) => ({ type: 'UserInput', at, text, mode: 'steer' }) as const,
    );
    await stored.add(typed);
    await stored.journal.close();
    const pieces = await feed(dataOf(inspector, 'long', 'feed'), caughtUp);
    assert.equal(entriesOf(pieces).length, 4_000);
    assert.deepEqual(warnings, []);

    // Readers that leave while the next entries are read: the journal is not kept open for them.
    const file = journalPath(folder, 'long');
    const isOpen = (): boolean =>
      readdirSync('/proc/self/fd').some((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`) === file;
        } catch {
          return false; // closed meanwhile
        }
      });
    const leaving = Array.from({ length: 8 }, () =>
      feed(dataOf(inspector, 'long', 'feed'), () => true),
    );
    await Promise.all(leaving);
    for (let looks = 0; isOpen(); looks++) {
      assert.ok(looks < 500, 'the journal stays open for readers that have left');
      await pause(20);
    }
  });

  it('says since when a session runs by its own events', async (context) => {
    const { inspector, folder } = await serve(context);
    await storeTrace(folder, 'story', STORY);
    const summary = JSON.parse((await get(dataOf(inspector, 'story', 'summary'))).text);
    assert.equal(summary.startedAt, STARTED_AT);
    assert.equal(summary.endedAt, STARTED_AT + 960_000);
  });
});
