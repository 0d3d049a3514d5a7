import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type CommandVerdict, readStatus, verdictOf } from '../../src/launcher/command-verdict.js';
import { makePlace, type Place, processesWith, sessionOf, startPawl, uniqueSleep, until } from './pawl.js';

/**
 * The program is killed at random moments while it runs commands: nothing of them is left, each had its entry in the
 * journal before it began, and the files of the launcher tell how each of them stood.
 *
 * PAWL_COMMAND_KILL_RUNS sets how often (6 if not set).
 */

const RUNS = Number(process.env.PAWL_COMMAND_KILL_RUNS ?? 6);
const COMMANDS = 30;

const codeOf = (number: number): number => number % 3;
/** Every other one takes long enough to be killed in it. */
const commandOf = (number: number): string =>
  `echo start-${number} >>log; for ((i = 0; i < ${number % 2 === 0 ? 2_000 : 50_000}; i++)); do :; done; echo end-${number} >>log; exit ${codeOf(number)}`;

const script = (): string => {
  const numbers = Array.from({ length: COMMANDS }, (_, at) => at + 1);
  const replies = numbers.map((n) => ({ calls: [{ tool: 'bash', input: { command: commandOf(n) } }] }));
  return JSON.stringify({ replies: [...replies, { text: 'done' }] });
};

/** Of processes that live and stand in a folder of this place. */
const processesIn = (folder: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const isAlive = !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      return isAlive && realpathSync(`/proc/${pid}/cwd`).startsWith(folder);
    } catch {
      return false; // it has ended, or stands in a folder that only it sees
    }
  });

/** It may be killed before it has made one. */
const hasSession = ({ state }: Place): boolean => {
  const folder = join(state, 'pawl', 'sessions');
  return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.jsonl'));
};

const logOf = ({ workspace }: Place): string => {
  const file = join(workspace, 'log');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

/** Of the commands whose order was written: how they stood. Nothing of them runs any more. */
const verdictsOf = ({ state }: Place): ReadonlyMap<number, CommandVerdict> => {
  const all = join(state, 'pawl', 'sandbox');
  const found = new Map<number, CommandVerdict>();
  for (const session of existsSync(all) ? readdirSync(all) : []) {
    const folder = join(all, session, 'commands');
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      const read = (file: string): string => {
        const place = join(folder, name, file);
        return existsSync(place) ? readFileSync(place, 'latin1') : '';
      };
      const number = /start-(\d+)/.exec(read('command'))?.[1];
      if (number === undefined) continue;
      const isClaimed = existsSync(join(folder, name, 'claim'));
      const facts = { isClaimed, status: readStatus(read('status')), isAlive: false, why: read('why') };
      found.set(Number(number), verdictOf(facts));
    }
  }
  return found;
};

/** Numbers of the calls that the journal knows to have begun, and to have ended. */
const journaled = (place: Place): { readonly begun: Set<number>; readonly ended: Set<number> } => {
  const file = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  const [begun, ended] = [new Set<number>(), new Set<number>()];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const call = /"type":"(ToolStarted|ToolCompleted)",[^}]*?"callId":"call-(\d+)-1"/.exec(line);
    if (call !== null) (call[1] === 'ToolStarted' ? begun : ended).add(Number(call[2]));
  }
  return { begun, ended };
};

const checkOne = (number: number, log: string, verdict: CommandVerdict | undefined): void => {
  const [hasBegun, hasEnded] = [log.includes(`start-${number}\n`), log.includes(`end-${number}\n`)];
  const told = `command ${number}: ${JSON.stringify(verdict)}\n${log}`;
  switch (verdict?.kind) {
    case 'neverStarted':
      assert.equal(hasBegun, false, told);
      break;
    case 'finished':
    case 'draining':
      assert.equal(hasEnded, true, told);
      assert.equal(verdict.exitCode, codeOf(number), told);
      break;
    case 'killed':
      assert.equal(verdict.why, 'lost', told);
      break;
    case 'running':
      assert.fail(told);
      break;
    case undefined:
      assert.equal(hasBegun, hasEnded, told);
      break;
    default:
      verdict satisfies never;
  }
};

const counts = new Map<string, number>();

for (let run = 1; run <= RUNS; run++) {
  test(`killed while it runs commands, at a random moment (${run} of ${RUNS})`, async (context) => {
    const place = makePlace(context);
    const file = join(place.folder, 'script.json');
    writeFileSync(file, script());
    const running = startPawl(place, ['--model', `scripted/${file}`, '-p', 'go']);
    const after = Math.floor((Math.random() * COMMANDS) / 3);
    await until(`${after} commands have run`, () => logOf(place).includes(`start-${after}\n`) || after === 0);
    await delay(Math.random() * (after === 0 ? 400 : 40));
    running.child.kill('SIGKILL');
    await running.ended;
    await until('nothing is left', () => processesIn(place.folder).length === 0);
    const log = logOf(place);
    if (!hasSession(place)) return assert.equal(log, '');
    const { begun, ended } = journaled(place);
    const verdicts = verdictsOf(place);
    for (let number = 1; number <= COMMANDS; number++) {
      const verdict = verdicts.get(number);
      checkOne(number, log, verdict);
      if (log.includes(`start-${number}\n`)) assert.ok(begun.has(number), `${number} began unwritten`);
      if (verdict === undefined && log.includes(`start-${number}\n`)) assert.ok(ended.has(number));
      if (verdict !== undefined) counts.set(verdict.kind, (counts.get(verdict.kind) ?? 0) + 1);
    }
  });
}

test('killed while a command runs that would not end: nothing of it is left', async (context) => {
  const place = makePlace(context);
  const file = join(place.folder, 'script.json');
  const seconds = uniqueSleep(context);
  const command = `setsid sleep ${seconds}`;
  const calls = [{ tool: 'bash', input: { command } }];
  writeFileSync(file, JSON.stringify({ replies: [{ calls }, { text: 'done' }] }));
  const running = startPawl(place, ['--model', `scripted/${file}`, '-p', 'go']);
  await until('it runs', () => processesWith(`sleep ${seconds}`).length > 0);
  running.child.kill('SIGKILL');
  await running.ended;
  await until('nothing is left', () => processesWith(seconds).length === 0);
  await until('no launcher is left', () => processesIn(place.folder).length === 0);
});

test('the moments were told', (context) => {
  context.diagnostic(JSON.stringify(Object.fromEntries(counts)));
});
