import type { Edit, Fault } from '../../../scripts/plant/fault.js';

/**
 * Faults that are planted in a copy of the sources, each alone, and what has to find each: random
 * walks through the machine, the explorer, or the simulator of crashes and disks. What a test with
 * rows has to find is tried by `npm run mutate`.
 */

const inMachine =
  (catcher: Fault['catcher']) =>
  (harm: string, file: string, ...edits: readonly Edit[]): Fault => ({
    file: `packages/agent/src/machine/${file}`,
    edits,
    catcher,
    harm,
  });

/** Finds its faults within so many states. */
const explorer = (configuration: string, statesMax = 500): ReturnType<typeof inMachine> =>
  inMachine({ kind: 'explorer', configuration, statesMax });

const walks = inMachine({ kind: 'walks' });

const simulator = (harm: string, file: string, ...edits: readonly Edit[]): Fault => ({
  file: `packages/agent/src/${file}`,
  edits,
  catcher: { kind: 'simulator' },
  harm,
});

const foundByWalks: readonly Fault[] = [
  walks('an old timer starts the next attempt', 'moves/retry.ts', [
    '  event.timerId === state.timerId;',
    "  event.timerId !== '';",
  ]),
  walks('a bill that comes twice is paid twice', 'moves/request.ts', [
    'if (usage === null || !session.unaccounted.includes(id)) return session;',
    'if (usage === null) return session;',
  ]),
  walks('a reply that names a call twice is taken', 'moves/reply.ts', [
    '.size !== reply.calls.length;',
    '.size > reply.calls.length;',
  ]),
  walks(
    'a second outcome overwrites the first',
    'moves/batch-events.ts',
    [
      'return call !== undefined && isRunning(call);',
      'return call !== undefined && (isRunning(call) || isEnded(call));',
    ],
    [
      'if (call === undefined || !isRunning(call)) return ignoreOutcome(state, event);',
      'if (call === undefined) return ignoreOutcome(state, event);',
    ],
    [
      '...cancelTimer(call.graceTimerId), shown',
      '...cancelTimer(isRunning(call) ? call.graceTimerId : null), shown',
    ],
  ),
  walks('results stand in the order in which their calls ended', 'moves/batch-events.ts', [
    'const ended = calls.filter(isEnded);',
    'const ended = calls.filter(isEnded).toSorted((one, other) => one.completedAt - other.completedAt);',
  ]),
  walks('text typed while the machine works is dropped', 'moves/turn.ts', [
    `  const session = enqueue(state.session, event);
  const text`,
    `  const { session } = state;
  const text`,
  ]),
  walks('a cancel loses the queue', 'moves/stop.ts', [
    'notice(state), restore(state.session.queue)',
    'notice(state)',
  ]),
  walks('shutdown leaves calls unanswered', 'moves/shutdown-and-resume.ts', [
    '      return settleForShutdown(state, event);',
    '      return { session: state.session, actions: settleForShutdown(state, event).actions };',
  ]),
  walks('the timer of a cancel outlives its batch', 'moves/batch-events.ts', [
    'cancelTimer(call.graceTimerId)), ...ofBatch];',
    'cancelTimer(call.graceTimerId))];',
  ]),
  walks('a request is not sent', 'table.ts', [
    `      rest: request.sendCall,
`,
    '',
  ]),
  walks('a summary swallows the question', 'conversation.ts', [
    'parts: [first, ...openParts(conversation)]',
    'parts: [first]',
  ]),
];

const foundByExplorer: readonly Fault[] = [
  explorer('everything')('one retry too many', 'moves/retry.ts', [
    'attempt <= settings.maxRetries &&',
    'attempt <= settings.maxRetries + 1 &&',
  ]),
  explorer('drain')('calls of a reply that was cancelled are run', 'moves/stop.ts', [
    'return state.reply.draining;',
    "return state.reply.draining === 'time' ? 'time' : null;",
  ]),
  explorer('rules change')('reads start beside an edit', 'moves/tool-batch.ts', [
    'if (isExclusive(next) || running.some(({ judged }) => isExclusive(judged))) return false;',
    'if (isExclusive(next)) return false;',
  ]),
  explorer('policies')('rounds are not counted', 'moves/budget.ts', [
    'rounds: session.turn.rounds + 1',
    'rounds: session.turn.rounds',
  ]),
  explorer('budget')('a retry is sent although the session may not spend', 'table.ts', [
    `      alwaysOnEntry: [{ when: budget.sessionIsSpent, to: 'BudgetExceeded', then: budget.stopBeforeCall }],
      rest: request.sendCall,`,
    '      rest: request.sendCall,',
  ]),
  explorer('tools that spend')('two calls are handed the same budget', 'moves/tool-batch.ts', [
    `  if (spendsAlone && running.some(({ judged }) => isSpending(judged))) return false;
`,
    '',
  ]),
  explorer('time')('shutdown leaves a hook running', 'moves/shutdown-and-resume.ts', [
    "actions: [{ type: 'AbortHook', hookId: state.hookId }]",
    'actions: []',
  ]),
  explorer('hooks')('a hook that says stop is not heard', 'moves/hooks.ts', [
    'boolean => !event.proceed;',
    "boolean => event.hookId === '';",
  ]),
  explorer('reserves')('money that is set aside counts as free', 'moves/request.ts', [
    'limit * (1 - ROUNDING) - session.usage.costUsd - reservedUsd(session);',
    'limit * (1 - ROUNDING) - session.usage.costUsd;',
  ]),
  explorer('reserves of tools', 1500)(
    'the second request of a hook takes the place of the first',
    'moves/request.ts',
    ['usd: (before?.usd ?? 0) + inputUsd + outputUsd,', 'usd: inputUsd + outputUsd,'],
  ),
  explorer('fallback')('a wrong key leads to another model', 'moves/retry.ts', [
    "error.kind === 'quotaExhausted' || (",
    "error.kind === 'quotaExhausted' || error.kind === 'auth' || (",
  ]),
  explorer('fallback', 1500)('a window that is too small is not seen', 'moves/retry.ts', [
    'return contextTokens > windowTokens * settings.compactMidRatio',
    'return contextTokens < 0',
  ]),
  explorer('fallback')('a model is asked twice in a turn', 'moves/retry.ts', [
    'index > asked &&',
    'index >= 0 &&',
  ]),
  explorer('fallback')('nobody is told of the model that takes over', 'moves/retry.ts', [
    "fallbackWarning([reason, ...skipped, takesOver].join('; '))",
    "fallbackWarning([reason, ...skipped].join('; '))",
  ]),
  explorer('fallback')('the first model is not asked again', 'moves/turn.ts', [
    'state.session.settings.primary !== undefined && turnIsReleased(state);',
    "state.session.settings.primary !== undefined && state.next === 'sendAgain';",
  ]),
  explorer('fallback')(
    'a model that the user chooses is left again',
    'moves/shutdown-and-resume.ts',
    ['primary !== undefined && patch.model === undefined;', 'primary !== undefined;'],
  ),
];

const foundBySimulator: readonly Fault[] = [
  simulator(
    'a command that was running when the process was killed runs again',
    'session/recover-calls.ts',
    [
      `if (effect === 'opaque') {
      tools.recoverOpaque(batchId, call);
      continue;
    }`,
      '',
    ],
    ["if (effect === 'pure') return null;", "if (effect !== 'probeable') return null;"],
  ),
  simulator(
    'the request of a model that took over goes to the first one',
    'session/model-call.ts',
    [
      'const model = this.#equipment.model(session.settings.model);',
      'const model = this.#equipment.model((session.settings.primary ?? session.settings).model);',
    ],
  ),
  simulator('an unknown price is taken under a limit', 'machine/moves/retry.ts', [
    'if (prices === null && unpriced === undefined && hasMoneyLimit(session))',
    'if (prices === null && unpriced === undefined && !hasMoneyLimit(session))',
  ]),
  simulator('a session with a damaged header is left out of the list', 'journal/list.ts', [
    "errorCode(error) === 'ENOENT' ? null : unreadable(file, error),",
    'error === undefined ? unreadable(file, errorCode(error)) : null,',
  ]),
  simulator(
    'a retry waits by the clock of the wall',
    'platform/clock.ts',
    ['now: () => (waiting === 0 ? wall() : Math.round(offset + steady())),', 'now: wall,'],
    [
      'const cancel = wait(delayMs, () => {',
      `const due = wall() + delayMs;
      const cancel = wait(delayMs, () => {
        if (wall() < due) return void wait(due - wall(), ring);`,
    ],
  ),
  simulator(
    'a clock that was set back makes a retry longer after a resume',
    'machine/moves/shutdown-and-resume.ts',
    [
      `  const timer = remainingTimer(state, event.at, event.stoppedAt);
`,
      `  const { at, stoppedAt = at } = event;
  const delayMs = Math.max(0, state.dueAt - stoppedAt);
  const timer = { timerId: state.timerId, dueAt: at + delayMs, delayMs };
`,
    ],
  ),
  simulator(
    'a clock that was set back makes a time limit longer after a resume',
    'machine/state.ts',
    [
      'timerFrom(timerId, at, clamp(dueAt - stoppedAt, delayMs));',
      'timerFrom(timerId, at, Math.max(0, dueAt - stoppedAt));',
    ],
  ),
  simulator('damaged lines at the end are taken for a torn end', 'journal/reader.ts', [
    "if (ended === 'yes') return this.#damaged(why);",
    "if (ended === 'yes') return { kind: 'torn', bytes: this.#end - this.size };",
  ]),
  simulator('a spending call with nothing left has no limit', 'machine/settings.ts', [
    "limit === 'unlimited' ? { type: 'unlimited' } : { type: 'left', amount: Math.max(0, limit - spent) };",
    "limit === 'unlimited' || limit <= spent + 0.003 ? { type: 'unlimited' } : { type: 'left', amount: limit - spent };",
  ]),
  simulator('a write is acknowledged without a sync', 'journal/writer.ts', [
    `this.#size + written);
    }
    await this.#handle.datasync();`,
    `this.#size + written);
    }`,
  ]),
  simulator('a sync that failed in another thread counts as done', 'journal/writer.ts', [
    'error === null ? resolve() : reject(error)',
    'error === null ? resolve() : resolve(void reject)',
  ]),
  simulator('a write that took a part of the bytes counts as whole', 'journal/writer.ts', [
    'written += this.#handle.write(bytes, written, tail, this.#size + written);',
    'written += Math.max(tail, this.#handle.write(bytes, written, tail, this.#size + written));',
  ]),
  simulator('the journal goes on after a failed write', 'journal/writer.ts', [
    `    this.#refusal = error;
`,
    '',
  ]),
  simulator('a torn end stays in the file', 'journal/file-store.ts', [
    `  await journal.truncate(size);
`,
    '',
  ]),
  simulator('a torn end takes the last good line with it', 'journal/file-store.ts', [
    'await journal.truncate(size);',
    'await journal.truncate(Math.max(0, size - 40));',
  ]),
  simulator('a last line without a line feed gets none', 'journal/file-store.ts', [
    "await handle.write('\\n', size);",
    '',
  ]),
  simulator('a new file is renamed before its content is durable', 'journal/state-folder.ts', [
    `      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename`,
    `    } finally {
      await handle.close();
    }
    await rename`,
  ]),
  simulator('the name of a new file is not made durable', 'journal/state-folder.ts', [
    `  await syncFolder(dirname(path));
};`,
    '};',
  ]),
  simulator(
    'a folder that a killed process has made is not made durable',
    'journal/state-folder.ts',
    ['if (!isNew && durable.has(folder)) return;', 'if (!isNew) return;'],
  ),
  simulator(
    'lines that a killed process has written are not made durable before their mark',
    'journal/file-store.ts',
    [
      `      await handle.datasync();
`,
      '',
    ],
  ),
  simulator(
    'the name of a journal that a killed process has made is not made durable',
    'journal/file-store.ts',
    [
      `    await closingOnFailure(journal, () => syncFolder(dirname(parts.path)));
`,
      '',
    ],
  ),
  simulator(
    'a session is opened that another process has open',
    'journal/lock.ts',
    [
      "if (check === 'unknown' && !takeOver) throw locked(path, holder, holder && whereIs(holder, self));",
      '',
    ],
    [
      "if (rival === undefined || (await checkHolder(path, rival, self)) !== 'unknown') return;",
      'if (rival !== null) return;',
    ],
  ),
  simulator('the lock of a killed process never becomes free', 'journal/lock.ts', [
    "return (await isHolderGone(path, holder, self)) ? 'gone' : 'unknown';",
    "return 'unknown';",
  ]),
  simulator(
    'an automatic commit does not look for the one that was prepared',
    'machine/moves/hooks.ts',
    ['  interrupted: state.prepared ?? [],', '  interrupted: [],'],
  ),
  simulator('a commit that was prepared is not journaled', 'machine/moves/hooks.ts', [
    'go({ ...state, prepared: [...(state.prepared ?? []), effect] });',
    'go({ ...state, prepared: effect === null ? [effect] : [] });',
  ]),
  simulator('reserved space is not given back when the disk is full', 'journal/writer.ts', [
    '      const wasReserved = isReserved;',
    '      const wasReserved = isReserved && path === "";',
  ]),
  simulator('a session goes on after its entries went to reserved space', 'session/loop.ts', [
    'if (full !== null) await this.#endOnFullDisk(full);',
    'void full;',
  ]),
  simulator(
    'nobody looks whether the journal is still the own file',
    'journal/writer.ts',
    [
      `    await this.#environment.before(this.#size);
    try {
      await this.#writeSynced`,
      `    try {
      await this.#writeSynced`,
    ],
    [
      `    this.#environment.after(this.#size + bytes.length);
`,
      '',
    ],
  ),
  simulator('a snapshot leaves out the last message', 'journal/snapshot.ts', [
    'messages: messages.toArray(shared), rest }',
    'messages: messages.toArray(shared).slice(0, shared === 0 ? -1 : undefined), rest }',
  ]),
  simulator('a snapshot counts although the journal before it has changed', 'journal/snapshot.ts', [
    'if (sumBytes(fd, size) !== sum) return false;',
    '',
  ]),
  simulator('a snapshot counts as the end of the journal', 'journal/file-store.ts', [
    '      : JournalScan.after(handle, path, size, start.point);',
    '      : JournalScan.after(handle, path, start.point.size, start.point);',
  ]),
  simulator('actions are performed before their event is durable', 'session/loop.ts', [
    `if (group.drafts.length > 0) await this.#journal.append(group.drafts);
`,
    `this.#commit(group, 'perform');
    if (group.drafts.length > 0) await this.#journal.append(group.drafts);
    if (group.steps.length > 0) return;
`,
  ]),
  simulator('an input is acknowledged before it is durable', 'session/loop.ts', [
    `this.#inbox.push(item);
`,
    `this.#inbox.push(item);
    item.sender?.resolve({ seq: 0 });
`,
  ]),
  simulator('the merged text of a reply is never journaled', 'session/loop.ts', [
    'if (text !== null && !this.#adapter.contains(event, text))',
    'if (text === undefined)',
  ]),
  simulator('a session goes on after its journal has failed', 'session/loop.ts', [
    `    this.#refuseAll(fault);
    void this.end(fault);`,
    '    void fault;',
  ]),
  simulator('a watcher that throws ends the session', 'session/loop.ts', [
    'const watched = attemptNow<unknown>(() => watcher(stepped));',
    'const watched = { kind: "done", value: watcher(stepped) } as ReturnType<typeof attemptNow<unknown>>;',
  ]),
  simulator('a tool begins before its start is durable', 'session/tool-run.ts', [
    `      this.#session.post(started, this.#runWhenDurable(run));
`,
    `      this.#session.post(started);
      void this.#finish(run);
`,
  ]),
  simulator('a tool runs with another input than the one that was judged', 'session/tool-run.ts', [
    'tool.run(run.call.input, context)',
    'tool.run({ ...run.call.input, extra: 1 }, context)',
  ]),
  simulator(
    'an edit is done again after a crash without a look at the file',
    'session/recover-calls.ts',
    [
      'return decideProbeable(call, recorded, hashFile, files);',
      'return recorded === null ? decideProbeable(call, recorded, hashFile, files) : null;',
    ],
  ),
  simulator(
    'an edit counts as done after a crash without a look at the file',
    'session/recover-calls.ts',
    [
      `  if (now === recorded.before) return null;
  if (now === undefined || now !== recorded.after) return FILE_CHANGED;`,
      '  if (now === undefined) return FILE_CHANGED;',
    ],
  ),
  simulator('calls that ran are forgotten after a crash', 'session/recover-calls.ts', [
    '  if (opened.batchId !== batchId) return [];',
    '  if (opened.batchId === batchId) return [];',
  ]),
  simulator('a timer is twice as long', 'platform/clock.ts', [
    'clock.after(Math.max(0, delayMs), ring)',
    'clock.after(Math.max(0, delayMs * 2), ring)',
  ]),
  simulator('a reply that broke off is not noticed', 'session/model-call.ts', [
    "finish(\n      received.kind === 'done'",
    "if (received.kind !== 'done') finish(\n      received.kind === 'done'",
  ]),
  simulator('nobody watches for a model that falls silent', 'session/model-call.ts', [
    'cancel = limitMs > 0 ? clock.after(limitMs, check) : null;',
    'cancel = null;',
  ]),
  simulator('a request leaves out the last result', 'machine/conversation.ts', [
    '    .slice(0, length)',
    `    .slice(0, length)
    .map((message) => ({ ...message, parts: message.parts.filter((part, at) => part.type !== 'result' || at === 0) }) as Message)`,
  ]),
  simulator(
    'a retry is forgotten when the session resumes',
    'machine/moves/shutdown-and-resume.ts',
    [
      'return go({ ...state, ...timer, session }, ...actions, schedule(timer));',
      'return go({ ...state, ...timer, session }, ...actions);',
    ],
  ),
];

export const plantedFaults: readonly Fault[] = [
  ...foundByWalks,
  ...foundByExplorer,
  ...foundBySimulator,
];
