import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import type { LauncherOptions } from '../../src/command/launcher.js';
import { ownPrograms, type ProgramPath } from '../../src/platform/find-program.js';
import { closingOthers, systemBash } from '../../src/platform/start-program.js';
import { makePlace, programOf, shell, to } from './place.js';

/** The launcher itself, with real shells, bubblewrap and files. */

const exited = (code: number) => ({ kind: 'exited', code });

/** Bytes of buffers that are still referenced. A collection frees buffers beside the program; the next one waits for that. */
const heldBytes = (): number => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  for (let time = 0; time < 3; time++) collect();
  return process.memoryUsage().arrayBuffers;
};

/** As another shell would be /bin/sh. Busybox where it is installed. */
const shells: readonly (readonly [name: string, words: readonly string[]])[] = [
  ['sh', []],
  ['bash', ['--posix']],
  ['busybox', ['sh']],
];

for (const [name, first] of shells.filter(([one]) => ownPrograms().find(one) !== null)) {
  test(`launcher: it runs in ${name}`, async (t) => {
    const program = programOf(name);
    const closing: LauncherOptions['closingOthers'] = (_, words, last) =>
      closingOthers({ program, words: [...first, ...words] }, last, systemBash());
    const place = makePlace(t, { closingOthers: closing, pieces: [2, 1] });
    for (const code of [0, 3, 125, 137]) {
      const { how, output, report } = await place.run(`echo one; echo two >&2; exit ${code}`);
      assert.deepEqual([how, output, report], [exited(code), 'one\ntwo\n', 'noneLeft']);
    }
    const left = await place.run('sleep 1000 & echo up');
    assert.deepEqual([left.how, left.output, left.report], [exited(0), 'up\n', 'leftBehind']);
  });
}

for (const watches of [true, false]) {
  test(`launcher: no byte of the output is lost, however it is cut into pieces (watched: ${watches})`, async (t) => {
    const place = makePlace(t, { watches, pieces: [3, 2] });
    const slow = await place.run('for i in {1..40}; do echo $i; sleep 0.01; done');
    assert.deepEqual([slow.output.split('\n').length, slow.output.slice(-6)], [41, '39\n40\n']);
    const tails = (command: string): readonly string[] =>
      readdirSync(path.join(place.folder, command)).filter((name) => name.startsWith('tail.'));
    assert.deepEqual(tails('1'), [], 'bytes end a piece, not lines');
    const much = await place.run('seq 400000');
    const expected = Array.from({ length: 400_000 }, (_, at) => `${at + 1}\n`).join('');
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    assert.equal(hash(much.output), hash(expected));
    assert.deepEqual([much.how, much.isCut], [exited(0), false]);
    assert.ok(tails('2').length <= 5, tails('2').join(' '));
  });
}

/** The programs of launcher.sh, of which the one that reads the output begins late. */
const lateCopier = (t: TestContext): ProgramPath => {
  const folder = temporaryFolder(t, 'late-copier');
  for (const name of ['cat', 'mkfifo', 'rm', 'sleep', 'wc'])
    symlinkSync(programOf(name), path.join(folder, name));
  const copier = path.join(folder, 'dd');
  writeFileSync(copier, `#!/bin/sh\nsleep 0.4\nexec ${programOf('dd')} "$@"\n`, { mode: 0o755 });
  return copier as ProgramPath;
};

test('launcher: no output is lost where the machine is so busy that it is read late', async (t) => {
  const place = makePlace(t, { copier: lateCopier(t) });
  for (const enclosure of [place.fence, { detach: [programOf('setsid')] as const }]) {
    const { how, output, isWhole } = await place.run('echo one', {}, enclosure);
    assert.deepEqual([how, output, isWhole], [exited(0), 'one\n', true]);
  }
});

test('launcher: a process that an open command has detached holds its end up for a moment', async (t) => {
  const place = makePlace(t);
  const open = { detach: [programOf('setsid')] as const };
  const go = path.join(place.folder, 'go');
  const detached = `while [ ! -e ${go} ]; do sleep 0.05; done`;
  const script = `setsid sh -c '${detached}' & printf 'one\\0left'`;
  const { how, output, isWhole, report } = await place.run(script, {}, open);
  assert.deepEqual([how, output, isWhole, report], [exited(0), 'one\0left', false, 'missing']);
  writeFileSync(go, '');
});

test('launcher: words and variables arrive as they are, and what is secret is written to no disk', async (t) => {
  const place = makePlace(t);
  const odd = Array.from({ length: 127 }, (_, at) => String.fromCharCode(at + 1)).join('');
  const texts = [
    odd,
    'ÁÀÂ\u0081\u0088 \u{1F600}',
    ' \'"$(x)`y`\\ \n\n tail \n',
    '',
    "'",
    '-n',
    '\\n$HOME',
  ];
  for (const text of texts) {
    const environment = { PATH: '/usr/bin:/bin', SHOWN: text, SECRET: `secret-4711${text}` };
    const { output } = await place.run('printf "%s|%s|" "$SHOWN" "$SECRET"; printf %s "$1"', {
      environment,
      unwritten: ['SECRET'],
      words: ['-c', 'printf "%s|%s|" "$SHOWN" "$SECRET"; printf %s "$1"', 'bash', text],
    });
    assert.equal(output, `${text}|secret-4711${text}|${text}`);
  }
  const names = readdirSync(place.folder).filter((name) => /^\d+$/.test(name));
  const written = (file: string): string =>
    names.map((name) => readFileSync(path.join(place.folder, name, file), 'utf8')).join();
  assert.match(written('command'), /SHOWN=/);
  assert.doesNotMatch(['run', 'command', 'status'].map(written).join(), /secret-4711/);
});

test('launcher: a command finds no signal ignored, three descriptors and the mask of files as everybody', async (t) => {
  const place = makePlace(t);
  const mask = (process.umask() + 0o1000).toString(8).slice(1);
  const { output } = await place.run('grep SigIgn /proc/self/status; umask; ls /proc/$$/fd; cat');
  assert.match(output, new RegExp(`^SigIgn:\\s+0+\\n0${mask}\\n0\\n1\\n2\\n$`));
});

test('launcher: a command finds no file of its own spool, through no process, and can not tell its own end', async (t) => {
  const place = makePlace(t);
  const { how, output } = await place.run(`
    for file in /proc/[0-9]*/fd/*; do
      echo "$file $(readlink "$file")"
      for line in 'run 1 1' 'exit 0' eof 'g 2' 'p 3'; do echo "$line" >>"$file"; done
      echo 'exit 0' 1<>"$file"
    done 2>/dev/null >/tmp-is-closed || for file in /proc/[0-9]*/fd/*; do
      echo "at $(readlink "$file")"
      case $(readlink "$file") in pipe:* | /dev/null) ;; *) echo 'exit 0' >>"$file" ;; esac
    done 2>/dev/null
    echo 'exit 0' >/run/pawl/command || echo closed
    exit 7`);
  assert.deepEqual(how, exited(7));
  assert.match(output, /closed\n$/);
  const places = [...output.matchAll(/^at (.+)$/gm)].map(([, place]) => place ?? '');
  assert.ok(places.length > 3, output);
  // The command's own list of folders comes and goes; /run/pawl/command is read-only.
  const allowed =
    /^(pipe:\[\d+\]|anon_inode:\[eventfd\]|\/dev\/null|\/proc\/.*|\/run\/pawl\/command)$/;
  for (const one of places) assert.match(one, allowed, output);
});

test('launcher: the next command is parked, and discarded where another fence is wanted', async (t) => {
  const place = makePlace(t);
  await place.run(':');
  await until('the next one waits', () => existsSync(path.join(place.folder, '2')));
  const first = await place.run('echo same');
  assert.equal(first.output, 'same\n');
  await until('the next one waits', () => existsSync(path.join(place.folder, '3')));
  const other = { ...place.fence, words: [...place.fence.words, '--setenv', 'OTHER', 'yes'] };
  const isThere = (): boolean => existsSync(path.join(place.folder, '3'));
  // One that waits behind another fence is replaced when commands follow each other closely.
  for (let tries = 0; tries === 0 || (isThere() && tries < 20); tries++) {
    const taken = await place.launcher.take(other);
    let output = '';
    taken?.start(
      shell('echo $OTHER'),
      '/',
      { due: null, record: null },
      to((text) => {
        output += text;
      }),
    );
    await taken?.ended;
    assert.equal(output, 'yes\n');
    await new Promise(setImmediate);
  }
  await until('what was parked is gone', () => !isThere());
  assert.equal(place.shells().length > 0, true);
});

test('launcher: commands run at once, each with a launcher of its own, and one of them stays', async (t) => {
  const place = makePlace(t);
  const all = await Promise.all([1, 2, 3].map((n) => place.run(`sleep 0.3; echo ${n}; exit ${n}`)));
  assert.deepEqual(
    all.map(({ how, output }) => [how, output]),
    [1, 2, 3].map((n) => [exited(n), `${n}\n`]),
  );
  await until('one launcher stays', () => new Set(place.shells().map(groupOf)).size === 1);
});

test('launcher: while commands follow each other closely more than one waits, and one when they stop', async (t) => {
  const place = makePlace(t);
  const launchers = (): number => new Set(place.shells().map(groupOf)).size;
  await place.run(':');
  await until('only the next one is left', () => launchers() === 1);
  // On a busy machine some of them do not follow closely enough.
  let most = 1;
  for (let code = 1; code <= 100 && (code <= 6 || most < 2); code++) {
    const { how, output } = await place.run(`echo ${code}; exit ${code}`);
    assert.deepEqual([how, output], [exited(code), `${code}\n`]);
    // The look at all processes takes time itself: only after two that follow each other at once.
    if (code % 2 === 0) most = Math.max(most, launchers());
  }
  assert.ok(most >= 2);
  await until('one launcher stays', () => launchers() === 1);
  await until('files of commands are gone but for the last and the next', () => {
    const left = readdirSync(place.folder).length;
    return left <= 5;
  });
  const { output } = await place.run('echo again');
  assert.equal(output, 'again\n');
});

test('launcher: many commands in close succession leave few files, and no memory held', async (t) => {
  const place = makePlace(t);
  const left = (): number => readdirSync(place.folder).length;
  await place.run(':');
  const before = heldBytes();
  const counts: number[] = [];
  for (let at = 0; at < 80; at++) {
    assert.equal((await place.run(`echo ${at}`)).output, `${at}\n`);
    counts.push(left());
  }
  // Newer versions of Node give it back a moment after the collection.
  await until('no memory is held', () => heldBytes() - before < 1_000_000);
  assert.ok(Math.max(...counts) < 60, `${Math.max(...counts)} folders`);
  const { output } = await place.run('head -c 2000000 /dev/zero');
  assert.equal(output.length, 2_000_000);
  await until('only the last and the next ones are left', () => left() <= 5);
});

/** 0 of a process that has ended. */
const groupOf = (pid: number): number => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[2]);
  } catch {
    return 0;
  }
};

const leaderOf = (pids: readonly number[]): number => pids.find((pid) => groupOf(pid) === pid) ?? 0;

test('launcher: when a command is due is written before it begins, and why it was cancelled', async (t) => {
  const place = makePlace(t);
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  const read = (name: string): string => readFileSync(path.join(place.folder, '1', name), 'utf8');
  let output = '';
  taken.start(
    shell('echo up; sleep 1000; exit 0'),
    '/',
    { due: 4_711, record: null },
    to((text) => {
      output += text;
    }),
  );
  assert.equal(read('order'), '4711\n');
  await until('it runs', () => output === 'up\n');
  taken.recordCancellation();
  process.kill(taken.process.pid, 'SIGKILL');
  assert.deepEqual((await taken.ended).how, exited(137));
  assert.equal(read('why'), 'cancelled');
});

test('launcher: where it is killed, the running command still tells its real end, and the next one works', async (t) => {
  const place = makePlace(t);
  const shared = temporaryFolder(t, 'shared');
  const fence = { ...place.fence, words: [...place.fence.words, '--ro-bind', shared, '/shared'] };
  const taken = await place.launcher.take(fence);
  assert.ok(taken !== null);
  let output = '';
  const receiver = to((text) => {
    output += text;
  });
  const command = 'echo up; until [ -e /shared/go ]; do sleep 0.02; done; exit 5';
  taken.start(shell(command), '/', { due: null, record: null }, receiver);
  await until('it runs', () => output === 'up\n');
  process.kill(leaderOf(place.shells()), 'SIGKILL');
  writeFileSync(path.join(shared, 'go'), '');
  assert.deepEqual((await taken.ended).how, exited(5));
  assert.deepEqual((await place.run('exit 6')).how, exited(6));
});

test('launcher: where it is killed while a command waits, another one is parked', async (t) => {
  const place = makePlace(t);
  await place.run(':');
  await until('the next one waits', () => existsSync(path.join(place.folder, '2/status')));
  process.kill(-leaderOf(place.shells()), 'SIGKILL');
  const next = await place.run('exit 6');
  // It may not have been dead yet when it was asked.
  if (next.how.kind !== 'neverStarted') assert.deepEqual(next.how, exited(6));
  assert.deepEqual((await place.run('exit 7')).how, exited(7));
});

test('launcher: what was taken and can not begin any more says so, and never begins', async (t) => {
  const place = makePlace(t);
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  process.kill(-leaderOf(place.shells()), 'SIGKILL');
  taken.start(
    shell('echo up'),
    '/',
    { due: null, record: null },
    to(() => assert.fail('it has begun')),
  );
  assert.deepEqual((await taken.ended).how, { kind: 'neverStarted' });
});

test('launcher: a command that can not be written never begins, and says so', async (t) => {
  const place = makePlace(t);
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  rmSync(path.join(place.folder, '1', 'command')); // refused, as by a full disk
  taken.start(
    shell('echo up'),
    '/',
    { due: null, record: null },
    to(() => assert.fail('it has begun')),
  );
  assert.deepEqual((await taken.ended).how, { kind: 'neverStarted' });
  assert.deepEqual((await place.run('exit 7')).how, exited(7));
});

test('launcher: output that was read is removed even if that can not be noted', async (t) => {
  const place = makePlace(t, { pieces: [1, 1] });
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  mkdirSync(path.join(place.folder, '1', 'removed')); // refused, as by a full disk
  let length = 0;
  taken.start(
    shell("head -c 1000000 /dev/zero | tr '\\0' x"),
    '/',
    { due: null, record: null },
    to((text) => {
      length += text.length;
    }),
  );
  assert.deepEqual([(await taken.ended).how, length], [exited(0), 1_000_000]);
});

test('launcher: an end mark in the output of an open command does not end it', async (t) => {
  const open = { detach: [programOf('setsid')] as const };
  const script = "printf '\\0ended\\n'; sleep 0.5; echo up; exit 7";
  const { how, output } = await makePlace(t).run(script, {}, open);
  assert.deepEqual([how, output], [exited(7), 'up\n']);
});

test('launcher: a command that is killed with everything around it counts as killed', async (t) => {
  const place = makePlace(t);
  const command = `echo up; sleep 1000; : ${place.folder}; exit 0`;
  const running = place.run(command);
  const pieces = (): string =>
    readdirSync(place.folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\/(?:out|tail\.\d+)$/.test(name))
      .map((name) => readFileSync(path.join(place.folder, name), 'utf8'))
      .join('');
  await until('its output is written', () => pieces().includes('up'));
  process.kill(-leaderOf(place.shells()), 'SIGKILL');
  const { how, output } = await running;
  assert.deepEqual([how, output], [{ kind: 'killed' }, 'up\n']);
});

test('launcher: an exit code that is written late on a busy machine counts', async (t) => {
  const place = makePlace(t);
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  const { pid } = taken.process;
  const runner = Number(/\) \S+ (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  process.kill(runner, 'SIGSTOP');
  taken.start(
    shell('exit 3'),
    '/',
    { due: null, record: null },
    to(() => undefined),
  );
  let isOver = false;
  void taken.ended.then(() => {
    isOver = true;
  });
  await until('the command itself has ended', () =>
    / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')),
  );
  await new Promise((resolve) => setTimeout(resolve, 1_300)); // longer than what counts as lost
  assert.ok(!isOver);
  process.kill(runner, 'SIGCONT');
  assert.deepEqual((await taken.ended).how, exited(3));
});

test('launcher: after a cancelled command the next one is not parked at once, since the session may end', async (t) => {
  const place = makePlace(t);
  const taken = await place.launcher.take(place.fence);
  assert.ok(taken !== null);
  let output = '';
  taken.start(
    shell('echo up; sleep 1000'),
    '/',
    { due: null, record: null },
    to((text) => {
      output += text;
    }),
  );
  // Before, bubblewrap has not yet told its child to end with it.
  await until('it runs', () => output === 'up\n');
  taken.recordCancellation();
  process.kill(taken.process.pid, 'SIGKILL');
  await taken.ended;
  // Longer than the delay after other commands: nothing tells that something does not happen.
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.ok(!existsSync(path.join(place.folder, '2')));
  assert.equal((await place.run('echo next')).output, 'next\n');
});

test('launcher: a command that a full disk keeps from being parked leaves none behind that is taken', async (t) => {
  const place = makePlace(t);
  const { launcher, folder, fence } = place;
  await place.run('true');
  const isParked = (): boolean =>
    existsSync(path.join(folder, '2')) &&
    readFileSync(path.join(folder, '2/status'), 'utf8').startsWith('run');
  await until('the next one is parked', isParked);
  const other = { ...fence, words: [...fence.words, '--setenv', 'OTHER', '1'] };
  for (const name of ['3', '4']) mkdirSync(path.join(folder, name)); // so neither can be made
  assert.equal(await launcher.take(other), null);
  assert.deepEqual((await place.run('echo ran')).output, 'ran\n');
});

test('launcher: a fence that fails leaves no files', async (t) => {
  // one that has not failed yet when it is asked can be taken
  for (let tries = 0; tries < 20; tries++) {
    const { launcher, folder, fence } = makePlace(t);
    if ((await launcher.take({ ...fence, words: ['--no-such-option'] })) !== null) continue;
    const isCommand = (name: string): boolean => /^\d/.test(name);
    await until('its files are removed', () => !readdirSync(folder).some(isCommand));
    return;
  }
  assert.fail('it never failed in time');
});
