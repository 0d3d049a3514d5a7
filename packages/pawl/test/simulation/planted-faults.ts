import type { PlantedFault } from '../../../../scripts/simulation/build.js';

/**
 * Faults of the runtime, the journal and the machine that the simulator is to find, each planted alone. `npm run simulate
 * -- --planted --sessions 100000` says after how many sessions each is found.
 */
const fault = (
  name: string,
  file: string,
  ...edits: readonly (readonly [from: string, to: string])[]
): PlantedFault => ({
  name,
  file: `packages/${file}`,
  edits: edits.map(([from, to]) => ({ from, to })),
});

const RECOVERY = 'agent/src/session/tool-run.ts';
const LOOP = 'agent/src/session/loop.ts';
const WRITER = 'agent/src/journal/writer.ts';
const PATHS = 'agent/src/journal/state-folder.ts';
const TOOL_RUN = 'agent/src/session/tool-run.ts';

/** Faults of the first version, and their next relatives. */
const earlierFaults: readonly PlantedFault[] = [
  fault(
    'a command that was running when the process was killed runs again',
    RECOVERY,
    [
      "if (effect === 'opaque') {\n      tools.recoverOpaque(batchId, call);\n      continue;\n    }",
      '',
    ],
    ["if (effect === 'pure') return null;", "if (effect !== 'probeable') return null;"],
  ),
  fault('a session with a damaged header is left out of the list', 'agent/src/journal/list.ts', [
    "errorCode(error) === 'ENOENT' ? null : unreadable(file, error),",
    'error === undefined ? unreadable(file, errorCode(error)) : null,',
  ]),
  fault(
    'a retry waits by the clock of the wall',
    'agent/src/platform/clock.ts',
    ['now: () => (waiting === 0 ? wall() : Math.round(offset + steady())),', 'now: wall,'],
    [
      'const cancel = wait(delayMs, () => {',
      `const due = wall() + delayMs;
      const cancel = wait(delayMs, () => {
        if (wall() < due) return void wait(due - wall(), ring);`,
    ],
  ),
  fault(
    'a clock that was set back makes a retry longer after a resume',
    'agent/src/machine/moves/shutdown-and-resume.ts',
    [
      '  const timer = remainingTimer(state, event.at, event.stoppedAt);\n',
      `  const { at, stoppedAt = at } = event;
  const delayMs = Math.max(0, state.dueAt - stoppedAt);
  const timer = { timerId: state.timerId, dueAt: at + delayMs, delayMs };
`,
    ],
  ),
  fault(
    'a clock that was set back makes a time limit longer after a resume',
    'agent/src/machine/moves/budget.ts',
    [
      'timerFrom(timerId, at, clamp(dueAt - stoppedAt, delayMs));',
      'timerFrom(timerId, at, Math.max(0, dueAt - stoppedAt));',
    ],
  ),
  fault('damaged lines at the end are taken for a torn end', 'agent/src/journal/reader.ts', [
    "if (ended === 'yes') return this.#damaged(why);",
    "if (ended === 'yes') return { kind: 'torn', bytes: this.#end - this.size };",
  ]),
  fault('a spending call with nothing left has no limit', 'agent/src/machine/settings.ts', [
    "limit === 'unlimited' ? { type: 'unlimited' } : { type: 'left', amount: Math.max(0, limit - spent) };",
    "limit === 'unlimited' || limit <= spent + 0.003 ? { type: 'unlimited' } : { type: 'left', amount: limit - spent };",
  ]),
];

const journalFaults: readonly PlantedFault[] = [
  fault('a write is acknowledged without a sync', WRITER, [
    'this.#size + written);\n    }\n    await this.#handle.datasync();',
    'this.#size + written);\n    }',
  ]),
  fault('a sync that failed in another thread counts as done', WRITER, [
    'error === null ? resolve() : reject(error)',
    'error === null ? resolve() : resolve(void reject)',
  ]),
  fault('a write that took a part of the bytes counts as whole', WRITER, [
    'written += this.#handle.write(bytes, written, rest, this.#size + written);',
    'written += Math.max(rest, this.#handle.write(bytes, written, rest, this.#size + written));',
  ]),
  fault('the journal goes on after a failed write', WRITER, ['    this.#refusal = error;\n', '']),
  fault('a torn end stays in the file', 'agent/src/journal/file-store.ts', [
    '  await journal.truncate(size);\n',
    '',
  ]),
  fault('a torn end takes the last good line with it', 'agent/src/journal/file-store.ts', [
    'await journal.truncate(size);',
    'await journal.truncate(Math.max(0, size - 40));',
  ]),
  fault('a last line without a line feed gets none', 'agent/src/journal/file-store.ts', [
    "await handle.write('\\n', size);",
    '',
  ]),
  fault('a new file is renamed before its content is durable', PATHS, [
    '      await handle.sync();\n    } finally {\n      await handle.close();\n    }\n    await rename',
    '    } finally {\n      await handle.close();\n    }\n    await rename',
  ]),
  fault('the name of a new file is not made durable', PATHS, [
    '  await syncFolder(dirname(path));\n};',
    '};',
  ]),
  fault('a folder that a killed process has made is not made durable', PATHS, [
    'if (!isNew && durable.has(folder)) return;',
    'if (!isNew) return;',
  ]),
  fault(
    'lines that a killed process has written are not made durable before their mark',
    'agent/src/journal/file-store.ts',
    ['      await handle.datasync();\n', ''],
  ),
  fault(
    'the name of a journal that a killed process has made is not made durable',
    'agent/src/journal/file-store.ts',
    ['  await closingOnFailure(journal, () => syncFolder(dirname(path)));\n', ''],
  ),
];

const LOCK = 'agent/src/journal/lock.ts';
const LOAD = 'agent/src/journal/snapshot.ts';

/** The holes that measuring the first version found: one writer, recovery of commits, full disks. And snapshots. */
const laterFaults: readonly PlantedFault[] = [
  fault(
    'a session is opened that another process has open',
    LOCK,
    [
      "if (check === 'unknown' && !takeOver) throw locked(path, holder, holder && whereIs(holder, self));",
      '',
    ],
    [
      "if (rival === undefined || (await checkHolder(path, rival, self)) !== 'unknown') return;",
      'if (rival !== null) return;',
    ],
  ),
  fault('the lock of a killed process never becomes free', 'agent/src/journal/lock.ts', [
    "return (await isGoneHere(path, holder, self)) ? 'gone' : 'unknown';",
    "return 'unknown';",
  ]),
  fault(
    'an automatic commit does not look for the one that was prepared',
    'agent/src/machine/moves/hooks.ts',
    ['  interrupted: state.prepared ?? [],', '  interrupted: [],'],
  ),
  fault('a commit that was prepared is not journaled', 'agent/src/machine/moves/hooks.ts', [
    'go({ ...state, prepared: [...(state.prepared ?? []), effect] });',
    'go({ ...state, prepared: effect === null ? [effect] : [] });',
  ]),
  fault('reserved space is not given back when the disk is full', 'agent/src/journal/writer.ts', [
    '      const was = isThere;',
    '      const was = isThere && path === "";',
  ]),
  fault('a session goes on after its entries went to reserved space', LOOP, [
    'if (full !== null) await this.#endOnFullDisk(full);',
    'void full;',
  ]),
  fault(
    'nobody looks whether the journal is still the own file',
    WRITER,
    [
      '    await this.#ownership.before(this.#size);\n    try {\n      await this.#writeSynced',
      '    try {\n      await this.#writeSynced',
    ],
    ['    this.#ownership.after(this.#size + bytes.length);\n', ''],
  ),
  fault('a snapshot leaves out the last message', 'agent/src/journal/snapshot.ts', [
    '      .toArray(from)\n',
    '      .toArray(from)\n      .slice(0, from === 0 ? -1 : undefined)\n',
  ]),
  fault('a snapshot counts although the journal before it has changed', LOAD, [
    'if ((await sumBytes(handle, last.size)) !== last.sum) return null;',
    '',
  ]),
  fault('a snapshot counts as the end of the journal', 'agent/src/journal/file-store.ts', [
    '      : JournalScan.after(handle, path, size, start.point);',
    '      : JournalScan.after(handle, path, start.point.size, start.point);',
  ]),
];

const loopFaults: readonly PlantedFault[] = [
  fault('actions are performed before their event is durable', LOOP, [
    'if (group.drafts.length > 0) await this.#journal.append(group.drafts);\n',
    "this.#commit(group, 'perform');\n    if (group.drafts.length > 0) await this.#journal.append(group.drafts);\n    if (group.steps.length > 0) return;\n",
  ]),
  fault('an input is acknowledged before it is durable', LOOP, [
    'this.#inbox.push(item);\n',
    'this.#inbox.push(item);\n    item.sender?.resolve({ seq: 0 });\n',
  ]),
  fault('the merged text of a reply is never journaled', LOOP, [
    'if (text !== null && !this.#adapter.contains(event, text))',
    'if (text === undefined)',
  ]),
  fault('a session goes on after its journal has failed', LOOP, [
    '    this.#refuseAll(fault);\n    void this.end(fault);',
    '    void fault;',
  ]),
  fault('a watcher that throws ends the session', 'agent/src/session/loop.ts', [
    'const watched = attemptNow<unknown>(() => watcher(stepped));',
    'const watched = { kind: "done", value: watcher(stepped) } as ReturnType<typeof attemptNow<unknown>>;',
  ]),
  fault('a tool begins before its start is durable', TOOL_RUN, [
    '      this.#session.post(started, this.#runWhenDurable(run));\n',
    '      this.#session.post(started);\n      void this.#finish(run);\n',
  ]),
  fault('a tool runs with another input than the one that was judged', TOOL_RUN, [
    'tool.run(run.call.input, context)',
    'tool.run({ ...run.call.input, extra: 1 }, context)',
  ]),
  fault('an edit is done again after a crash without a look at the file', RECOVERY, [
    'return decideProbeable(call, recorded, look, files);',
    'return recorded === null ? decideProbeable(call, recorded, look, files) : null;',
  ]),
  fault('an edit counts as done after a crash without a look at the file', RECOVERY, [
    '  if (now === recorded.before) return null;\n  if (now === undefined || now !== recorded.after) return FILE_CHANGED;',
    '  if (now === undefined) return FILE_CHANGED;',
  ]),
  fault('calls that ran are forgotten after a crash', RECOVERY, [
    '  if (opened.batchId !== batchId) return [];',
    '  if (opened.batchId === batchId) return [];',
  ]),
  fault('a timer is twice as long', 'agent/src/platform/clock.ts', [
    'clock.after(Math.max(0, delayMs), ring)',
    'clock.after(Math.max(0, delayMs * 2), ring)',
  ]),
  fault('a reply that broke off is not noticed', 'agent/src/session/model-call.ts', [
    "if (reading.kind === 'done') end(",
    "if (reading.kind === 'done') void (",
  ]),
  fault('nobody watches for a model that falls silent', 'agent/src/session/model-call.ts', [
    'cancel = limitMs > 0 ? clock.after(limitMs, check) : null;',
    'cancel = null;',
  ]),
];

const machineFaults: readonly PlantedFault[] = [
  fault('a request leaves out the last result', 'agent/src/machine/conversation.ts', [
    '    .slice(0, length)',
    "    .slice(0, length)\n    .map((message) => ({ ...message, parts: message.parts.filter((part, at) => part.type !== 'result' || at === 0) }) as Message)",
  ]),
  fault(
    'a retry is forgotten when the session resumes',
    'agent/src/machine/moves/shutdown-and-resume.ts',
    [
      'return go({ ...state, ...timer, session }, ...actions, schedule(timer));',
      'return go({ ...state, ...timer, session }, ...actions);',
    ],
  ),
];

export const plantedFaults: readonly PlantedFault[] = [
  ...earlierFaults,
  ...journalFaults,
  ...laterFaults,
  ...loopFaults,
  ...machineFaults,
];
