/**
 * Runs cells (programs of the model): reads orders from the channel and sends reports. The messages are described in
 * packages/ask/src/environments/sandboxed-repl.ts.
 *
 * 1. Nothing runs between cells: timers are our own, promises are run to their end inside the cell. So all of the
 *    code's work runs inside `bounded`, where SIGINT ends it and lets this program go on. Node takes a SIGINT in a thread of
 *    its own, which may notice it late, in a later `bounded`. The order "settle" waits for that; and work of ours that it
 *    ended is tried again.
 * 2. A call to models writes one line and reads one. If SIGINT cut it short, the rest of the answer is a line that
 *    nobody waits for: it is skipped, whole or not.
 */
({ node, guest, settings, createOutput, createTimers, createNames }) => {
  const FRAMES_MAX = 6;
  /** Exit code if the cell has broken what this program needs. */
  const BROKEN = 70;
  /** How long Node's thread gets to notice a SIGINT; how often work of ours is tried that a SIGINT ended. */
  const SETTLE_MS = 40;
  const TRIES_MAX = 5;
  const STUCK =
    'Error: the code waits for a promise that nothing can settle: there are timers, but no files and no network here\n';
  const STOPPED = 'Stopped: the cell was interrupted; what it had bound is kept.\n';
  const LAST_OUTPUT = '; the next cell has all of it in last_output';

  // ---- The channel ----

  const traits = guest.Object.prototype;
  const traitNames = new Set(Reflect.ownKeys(traits));
  /** Removes what the cell added to Object.prototype: Node's own functions would find it in their objects. */
  const clearTraits = () => {
    const found = Reflect.ownKeys(traits);
    if (found.length === traitNames.size) return false;
    for (const name of found) if (!traitNames.has(name)) Reflect.deleteProperty(traits, name);
    return true;
  };

  let unread = '';
  const readLine = () => {
    for (let line = ''; ; ) {
      const piece = unread === '' ? node.read() : unread;
      const at = piece.indexOf('\n');
      unread = at < 0 ? '' : piece.slice(at + 1);
      if (at >= 0) return line + piece.slice(0, at);
      line += piece;
    }
  };
  /** The next message; null for the rest of one that was cut short. */
  const receive = () => {
    clearTraits();
    try {
      return JSON.parse(readLine());
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  };
  const send = (said) => {
    clearTraits();
    node.write(`${JSON.stringify(said)}\n`);
  };

  // ---- What cells find ----

  /**
   * The cell that runs. `failed`: something was thrown that nobody caught. `settled`: its code has ended. `over`: so has
   * all work that it started.
   */
  let cell = { number: 0, ordinal: 0, failed: false, settled: false, over: true };
  const { collect, cut } = createOutput(settings);
  const newOutput = (stream) => collect((text) => send({ type: 'printed', stream, text }));
  let output = { stdout: newOutput('stdout'), stderr: newOutput('stderr') };

  const sizeOf = (prompts) => prompts.reduce((sum, prompt) => sum + prompt.length, 0);
  const ask = (json) => {
    if (cell.over) return undefined;
    const { kind, prompts, model } = JSON.parse(json);
    const characters = sizeOf(prompts);
    if (characters > settings.textMax) {
      const most = `one call takes ${settings.textMax} characters of prompts at most`;
      throw new guest.RangeError(`${most}, these have ${characters}`);
    }
    cell.ordinal += 1;
    const { number, ordinal } = cell;
    send({ type: 'subcall', number, ordinal, kind, prompts, model });
    for (;;) {
      const reply = receive();
      if (reply?.type !== 'texts' || reply.number !== number || reply.ordinal !== ordinal) continue;
      if (reply.texts === null) timers.sleepForever(); // the cell is stopped: SIGINT comes
      return JSON.stringify(reply.texts);
    }
  };
  const print = (json) => {
    const { stream, text } = JSON.parse(json);
    output[stream].add(text);
  };
  const timers = createTimers(guest);
  for (const name of ['exit', 'kill']) {
    guest.process[name] = () => {
      throw new guest.Error(`process.${name} ends only the cell here: what it had bound is kept`);
    };
  }
  for (const stream of ['stdout', 'stderr']) {
    const write = (text) => {
      output[stream].add(typeof text === 'string' ? text : node.decode(text));
      return true;
    };
    Reflect.defineProperty(guest.process, stream, { value: { write }, configurable: true });
  }
  const names = createNames(guest, { print, ask });

  const listOf = guest.Array.from.bind(guest.Array);
  const { contexts, names: inputNames } = receive();
  let texts = null;
  const readContext = (file, index) => {
    const note = `Note: input ${index + 1} is not UTF-8: the bytes that are not were replaced.\n`;
    return node.readText(file, () => output.stderr.add(note));
  };
  /** The texts of the inputs, read at the first use. */
  const getTexts = () => {
    texts ??= listOf(contexts.map(readContext));
    return texts;
  };
  /** The text of a single input; otherwise a list of texts, made with the cells' own Array. */
  const getContext = () => (contexts.length === 1 ? getTexts()[0] : getTexts());
  const define = (name, value) =>
    Reflect.defineProperty(guest, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: false,
    });
  const restoreContext = () => {
    const replace = (value) => void define('context', value);
    const enumerable = false;
    return Reflect.defineProperty(guest, 'context', {
      get: getContext,
      set: replace,
      configurable: true,
      enumerable,
    });
  };

  /** The inputs by name. A cell that binds the name to something else keeps that. */
  const offerNames = () => {
    const replace = (value) => void define('names', value);
    let made = null;
    const get = () => {
      made ??= names.byName(JSON.stringify(inputNames), getTexts());
      return made;
    };
    Reflect.defineProperty(guest, 'names', {
      get,
      set: replace,
      configurable: true,
      enumerable: false,
    });
  };
  offerNames();

  // ---- Failures ----

  const placesOf = (stack) =>
    [...stack.matchAll(/^ *at (?:async )?(.*?) ?\(?cell-(\d+):(\d+):\d+\)?$/gm)]
      .slice(0, FRAMES_MAX)
      .map(([, name, number, line]) => {
        const within = name === '' || name === '<anonymous>' ? '' : `${name}, `;
        return `\n    at ${within}line ${line}${Number(number) === cell.number ? '' : ' of an earlier cell'}`;
      });
  /** Reports a failure. `syntaxLine`: the line of a syntax error. */
  const fail = (thrown, syntaxLine = null) => {
    cell.failed = true;
    const { text, stack } = JSON.parse(names.describe(thrown));
    const places = placesOf(stack).join('');
    output.stderr.add(
      text + (places === '' && syntaxLine !== null ? `\n    at line ${syntaxLine}` : places) + '\n',
    );
  };
  node.onRejection((reason) => fail(reason));

  /** The thrown value. The inspector gives only an id of an object: a function called on it passes the object on. */
  const thrownValue = ({ exception }) => {
    if (exception.objectId === undefined)
      return 'value' in exception ? exception.value : exception.description;
    let value;
    const take = (found) => {
      value = found;
    };
    const functionDeclaration = `function () { ${node.onHook(take, 'this')} }`;
    node.post('Runtime.callFunctionOn', {
      objectId: exception.objectId,
      functionDeclaration,
      silent: true,
    });
    return value;
  };

  // ---- A cell ----

  const evaluate = (code, of) => {
    const expression = `${code}\n;void 0\n//# sourceURL=cell-${of.number}`;
    const how = { replMode: true, awaitPromise: true, silent: true, objectGroup: 'cell' };
    node.post('Runtime.evaluate', { expression, ...how }, (error, result) => {
      // a promise of a cell that was stopped; or SIGINT ended the code, which newer versions of Node report here
      if (of !== cell || error?.message.includes('Execution was terminated')) return;
      of.settled = true;
      if (error && !clearTraits()) node.exit(BROKEN);
      if (error)
        fail(new guest.Error('the code changed what all objects inherit; that was taken back'));
      const details = error ? undefined : result.exceptionDetails;
      if (details === undefined) return;
      const isSyntax = details.stackTrace === undefined;
      fail(thrownValue(details), isSyntax ? details.lineNumber + 1 : null);
    });
  };

  /** Runs the work. False if SIGINT ended it. */
  const runToEnd = (what) => {
    const end = node.bounded(what);
    return (
      end === null ||
      (end !== 'interrupted' && node.bounded(() => fail(end.error)) !== 'interrupted')
    );
  };
  /** Runs the code, its promises and its timers. Returns the status of the cell. */
  const finish = (code) => {
    for (let next = () => evaluate(code, cell); next !== null; next = timers.next()) {
      if (runToEnd(next) && runToEnd(node.runTicks)) continue;
      output.stderr.add(STOPPED);
      return 'stopped';
    }
    if (!cell.settled) output.stderr.add(STUCK);
    return cell.settled && !cell.failed ? 'ok' : 'raised';
  };
  /** The cell's answer and variables. Reading them may run code of the cell, so it is bounded. */
  const look = () => {
    let ending = null;
    const take = () => {
      ending = JSON.parse(names.end());
    };
    for (let tries = 1; tries <= TRIES_MAX && ending === null; tries++)
      if (node.bounded(take) !== 'interrupted') break;
    if (ending === null) node.exit(BROKEN);
    if (ending.answer === null || ending.answer.length <= settings.textMax) return ending;
    output.stderr.add(
      `Note: the answer is longer than ${settings.textMax} characters and is not taken.\n`,
    );
    return { ...ending, answer: null };
  };

  let lastOutput = '';
  const run = ({ number, code }) => {
    output = { stdout: newOutput('stdout'), stderr: newOutput('stderr') };
    cell = { number, ordinal: 0, failed: false, settled: false, over: false };
    const lost = new Set(JSON.parse(names.begin('""')));
    if (!restoreContext()) lost.add('context');
    if (!define('last_output', lastOutput)) lost.add('last_output');
    const locked = [...lost].join(', ');
    if (lost.size > 0) output.stderr.add(`Note: the code made ${locked} impossible to restore.\n`);
    const status = finish(code);
    cell.over = true;
    timers.clear();
    const ending = look();
    clearTraits();
    node.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    lastOutput = output.stdout.whole();
    const report = { stdout: cut(lastOutput, LAST_OUTPUT), stderr: cut(output.stderr.whole(), '') };
    send({ type: 'finished', number, status, ...report, ...ending });
  };
  /** Waits, so that a late SIGINT of the last cell ends this wait and not the next cell. */
  const settle = () => {
    for (let tries = 1; tries <= TRIES_MAX; tries++)
      if (node.bounded(() => timers.sleep(SETTLE_MS)) !== 'interrupted') return;
  };
  const read = ({ name }) => {
    let text = null;
    node.bounded(() => {
      const isContext = name === 'context' && contexts.length === 1;
      text = isContext ? getContext() : JSON.parse(names.read(JSON.stringify(name)));
    });
    send({ type: 'value', text: text === null ? null : text.slice(0, settings.textMax) });
  };

  contexts.forEach((file, index) => {
    const why = node.whyUnreadable(file);
    if (why !== null) send({ type: 'refused', why: `input ${index + 1} can not be read: ${why}` });
  });
  send({ type: 'ready' });
  for (;;) {
    const order = receive();
    if (order?.type === 'settle') settle();
    if (order?.type === 'run') run(order);
    if (order?.type === 'read') read(order);
  }
};
