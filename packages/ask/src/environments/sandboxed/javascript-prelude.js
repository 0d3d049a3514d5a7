/**
 * The names that a JavaScript cell (a program of the model) finds: functions that call models, `print`, the inputs, the
 * answer; and how values are shown as text.
 *
 * `guest` is the global object of the cells; `world` has two functions of the host, our side: `print` and `ask`, which
 * calls models.
 *
 * 1. It runs in a realm of its own beside the one of the cells: whatever a cell does to its prototypes, this code keeps
 *    working. Values for cells are made with functions taken from their realm before any cell ran.
 * 2. Everything that crosses to the host is JSON, so that a NUL or half a surrogate pair arrives as what it is.
 * 3. Code of the cell that runs here (a getter, a proxy, toJSON) is interrupted like the cell itself.
 */
(guest, world) => {
  const { parse } = guest.JSON;
  const { TypeError: GuestTypeError, Error: GuestError } = guest;
  const listOf = guest.Array.from.bind(guest.Array);
  const guestObjectTraits = guest.Object.prototype;
  const INSPECTED_MAX = 200_000;
  const DEPTH_MAX = 6;
  const VARIABLES_MAX = 500;
  const NAME_MAX = 100;
  /** Time for counting the fields of objects, which takes the longer the more there are. */
  const COUNT_MS = 50;
  /** Characters of a cell's output that go to the host at once; from then on in pieces. */
  const AT_ONCE = 20_000;
  const HANDED_OVER_AT = 4_096;
  /** What the host returns instead of an answer when the cell is to end. */
  const OVER = 'over';

  const isObject = (value) =>
    (typeof value === 'object' && value !== null) || typeof value === 'function';
  /** The getter of a built-in's field. It also tells the kind of a value: it throws for any other kind. */
  const getterOf = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  const mapSize = getterOf(Map.prototype, 'size');
  const setSize = getterOf(Set.prototype, 'size');
  const bytesOf = getterOf(ArrayBuffer.prototype, 'byteLength');
  const elementsOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype), 'length');
  const sourceOf = getterOf(RegExp.prototype, 'source');
  const flagsOf = getterOf(RegExp.prototype, 'flags');
  const tryOr = (fallback, work) => {
    try {
      return work();
    } catch {
      return fallback; // the value is not what was asked for, or its own code failed
    }
  };
  const plainField = (object, name) => Object.getOwnPropertyDescriptor(object, name)?.value;

  /** Name of the class of an object, looked up without running code of the cell, except for proxies. */
  const classOf = (value) =>
    tryOr('Object', () => {
      for (let one = value; one !== null; one = Object.getPrototypeOf(one)) {
        const made = plainField(one, 'constructor');
        const name = typeof made === 'function' ? plainField(made, 'name') : undefined;
        if (typeof name === 'string' && name !== '') return name;
      }
      return 'Object';
    });
  const isError = (value) =>
    isObject(value) && tryOr(false, () => value instanceof GuestError || value instanceof Error);
  const typeOf = (value) => {
    if (value === null) return 'null';
    return typeof value === 'object' ? classOf(value) : typeof value;
  };
  /** Characters, items, entries or bytes; null for a value without a size. */
  const sizeOf = (value, mayCount) => {
    if (typeof value === 'string') return value.length;
    if (typeof value !== 'object' || value === null) return null;
    if (tryOr(false, () => Array.isArray(value))) return tryOr(null, () => value.length);
    for (const size of [mapSize, setSize, elementsOf, bytesOf]) {
      const found = tryOr(null, () => size.call(value));
      if (found !== null) return found;
    }
    return mayCount && classOf(value) === 'Object'
      ? tryOr(null, () => Object.keys(value).length)
      : null;
  };

  // ---- Values as text ----

  const keyText = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key));
  const errorText = (error) => {
    const name = tryOr('Error', () => String(error.name));
    const message = tryOr('', () => String(error.message));
    return message === '' ? name : `${name}: ${message}`;
  };

  const inspectPrimitive = (value) => {
    if (typeof value === 'string') return JSON.stringify(value);
    if (typeof value === 'bigint') return `${value}n`;
    return Object.is(value, -0) ? '-0' : String(value);
  };
  const inspectFunction = (value) => {
    const name = tryOr('', () => plainField(value, 'name'));
    return typeof name === 'string' && name !== '' ? `[Function ${name}]` : '[Function]';
  };
  /** Items between brackets, until the room in `left` is used up. */
  const inspectItems = (open, items, close, left) => {
    const shown = [];
    for (const item of items) {
      if (left.characters <= 0) {
        shown.push('… more');
        break;
      }
      const text = item();
      left.characters -= text.length + 2;
      shown.push(text);
    }
    return shown.length === 0 ? open + close : `${open} ${shown.join(', ')} ${close}`;
  };
  /** Functions that show one value each, so that values beyond the room are never shown. */
  const thunks = function* (values, show) {
    for (const value of values) yield () => show(value);
  };
  const indexed = function* (list, length) {
    for (let index = 0; index < length; index += 1) yield list[index];
  };
  const eachMap = Map.prototype.entries;
  const eachSet = Set.prototype.values;

  const inspectObject = (value, inner, left) => {
    const known = [
      () => `${new Date(Date.prototype.getTime.call(value)).toISOString()}`,
      () => `/${sourceOf.call(value)}/${flagsOf.call(value)}`,
      () =>
        inspectItems(
          `Map(${mapSize.call(value)}) {`,
          thunks(eachMap.call(value), ([key, held]) => `${inner(key)} => ${inner(held)}`),
          '}',
          left,
        ),
      () =>
        inspectItems(
          `Set(${setSize.call(value)}) {`,
          thunks(eachSet.call(value), inner),
          '}',
          left,
        ),
      () => {
        const length = elementsOf.call(value);
        if (length === undefined) throw new TypeError('no typed array');
        return inspectItems(
          `${classOf(value)}(${length}) [`,
          thunks(indexed(value, length), inner),
          ']',
          left,
        );
      },
    ];
    for (const one of known) {
      const text = tryOr(null, one);
      if (typeof text === 'string') return text;
    }
    if (Array.isArray(value)) {
      return value.length === 0
        ? '[]'
        : inspectItems('[', thunks(indexed(value, value.length), inner), ']', left);
    }
    const name = classOf(value);
    return inspectItems(
      name === 'Object' ? '{' : `${name} {`,
      thunks(Object.keys(value), (key) => `${keyText(key)}: ${inner(value[key])}`),
      '}',
      left,
    );
  };
  const inspect = (value, above = [], left = { characters: INSPECTED_MAX }) => {
    if (!isObject(value)) return inspectPrimitive(value);
    if (typeof value === 'function') return inspectFunction(value);
    if (above.includes(value)) return '[Circular]';
    if (isError(value)) return errorText(value);
    if (above.length >= DEPTH_MAX) return `[${classOf(value)}]`;
    const inner = (held) => inspect(held, [...above, value], left);
    return tryOr(`[${classOf(value)}]`, () => inspectObject(value, inner, left));
  };
  const display = (value) => (typeof value === 'string' ? value : inspect(value));

  /** The text of a value as a prompt or an answer: JSON if possible. */
  const textOf = (value) => {
    if (typeof value === 'string') return value;
    if (!isObject(value)) return String(value);
    const simple =
      Array.isArray(value) || classOf(value) === 'Object' || typeof value.toJSON === 'function';
    const json = simple ? tryOr(undefined, () => JSON.stringify(value)) : undefined;
    return typeof json === 'string' ? json : inspect(value);
  };

  // ---- What a cell can call ----

  /** The engine checks for an interrupt only every some thousand jumps: this loop makes them. */
  const waitForInterrupt = () => {
    for (;;);
  };
  /** Output that is not yet handed over to the host, which costs much more than to print. */
  const printed = { stdout: '', stderr: '' };
  let characters = 0;
  const handOver = (stream) => {
    const text = printed[stream];
    printed[stream] = '';
    characters += text.length;
    if (text !== '' && world.print(JSON.stringify({ stream, text })) === OVER) waitForInterrupt();
  };
  const say = (stream, values) => {
    for (let index = 0; index < values.length; index += 1) {
      printed[stream] += `${index === 0 ? '' : ' '}${display(values[index])}`;
    }
    printed[stream] += '\n';
    if (characters < AT_ONCE || printed[stream].length >= HANDED_OVER_AT) handOver(stream);
  };
  const print = (...values) => say('stdout', values);
  const complain = (...values) => say('stderr', values);
  const assert = (holds, ...values) => {
    if (!holds) complain('Assertion failed', ...values);
  };

  const ask = (kind, prompts, named) => {
    if (prompts.length === 0) return parse('[]');
    const model = named === undefined || named === null ? null : textOf(named);
    const texts = world.ask(JSON.stringify({ kind, prompts, model }));
    if (texts === OVER) waitForInterrupt();
    if (texts === undefined)
      throw new GuestError('no call can be made while the report of a cell is written');
    return parse(texts);
  };
  const askOne = (kind, name) => (prompt, model) => {
    if (prompt === undefined) throw new GuestTypeError(`${name}(prompt) needs a prompt`);
    return ask(kind, [textOf(prompt)], model)[0];
  };
  const askMany = (kind, name) => (prompts, model) => {
    if (!Array.isArray(prompts))
      throw new GuestTypeError(`${name}(prompts) needs an array of prompts`);
    return ask(kind, [...indexed(prompts, prompts.length)].map(textOf), model);
  };

  /** The answer record. `taken` is the text of its content at the moment when it became ready. */
  const answer = parse('{}');
  let [content, ready, taken] = ['', false, null];
  Object.defineProperties(answer, {
    content: {
      enumerable: true,
      get: () => content,
      set: (value) => {
        content = value;
      },
    },
    ready: {
      enumerable: true,
      get: () => ready,
      set: (value) => {
        const was = ready;
        ready = Boolean(value);
        if (ready && !was) taken = textOf(content);
      },
    },
  });

  const variables = () => {
    const startedAtMs = Date.now();
    const found = [];
    for (const name of Reflect.ownKeys(guest)) {
      if (typeof name !== 'string' || name.length > NAME_MAX || builtIn.has(name)) continue;
      const value = plainField(guest, name);
      // undefined: declared, but a failure came first
      if (value === undefined || value === offered) continue;
      const mayCount = Date.now() - startedAtMs < COUNT_MS;
      found.push({ name, type: typeOf(value), size: sizeOf(value, mayCount) });
      if (found.length === VARIABLES_MAX) break;
    }
    return found;
  };
  const showVariables = () => {
    const lines = variables().map(
      ({ name, type, size }) => `${name}: ${type}${size === null ? '' : ` (${size})`}`,
    );
    return lines.length === 0 ? 'no variables yet' : lines.join('\n');
  };

  const reserved = {
    context: guest.context,
    last_output: '',
    llm_query: askOne('llm', 'llm_query'),
    llm_query_batched: askMany('llm', 'llm_query_batched'),
    rlm_query: askOne('rlm', 'rlm_query'),
    rlm_query_batched: askMany('rlm', 'rlm_query_batched'),
    show_vars: showVariables,
    SHOW_VARS: showVariables,
    print,
    console: {
      ...{ log: print, info: print, debug: print, dir: print, table: print },
      ...{ error: complain, warn: complain, trace: complain, assert },
    },
    answer,
  };
  /** Binds the name to the value again. False if the cell has made that impossible. */
  const restore = (name, value) => {
    const fresh = { value, writable: true, configurable: true, enumerable: false };
    const held = Object.getOwnPropertyDescriptor(guest, name);
    return held === undefined || held.value !== value
      ? Reflect.defineProperty(guest, name, held === undefined ? fresh : { value })
      : true;
  };
  for (const [name, value] of Object.entries(reserved)) restore(name, value);
  const builtIn = new Set(Reflect.ownKeys(guest));

  /** The object that the code has bound `answer` to, if it is not our record; otherwise null. */
  const rebound = () => {
    const bound = plainField(guest, 'answer');
    return isObject(bound) && bound !== answer ? bound : null;
  };

  /** The value of `names`, once `offer` has made it. */
  let offered = null;
  /** Inputs by name: fields of an object, which can also be read like a Map. */
  const byName = (json, texts) => {
    const names = JSON.parse(json);
    const lookUp = (name) => (Object.hasOwn(made, name) ? made[name] : undefined);
    const pairs = () => listOf(names.map((name) => listOf([name, made[name]])));
    const each = (list) => list[Symbol.iterator]();
    const methods = {
      get: lookUp,
      has: (name) => Object.hasOwn(made, name),
      keys: () => each(listOf(names)),
      values: () => each(listOf(names.map(lookUp))),
      entries: () => each(pairs()),
      forEach: (visit) => {
        for (const name of names) visit(made[name], name, made);
      },
      [Symbol.iterator]: () => each(pairs()),
    };
    const kind = Object.create(guestObjectTraits);
    for (const key of Reflect.ownKeys(methods))
      Object.defineProperty(kind, key, { value: methods[key] });
    Object.defineProperty(kind, 'size', { get: () => names.length });
    const made = Object.create(kind);
    names.forEach((name, index) => {
      Object.defineProperty(made, name, {
        value: texts[index],
        writable: true,
        configurable: true,
        enumerable: true,
      });
    });
    return made;
  };

  return {
    /** Offers the inputs by name where they are in `context` already. A cell may bind the name to something else. */
    offer(json) {
      const texts = typeof guest.context === 'string' ? [guest.context] : guest.context;
      offered = byName(json, texts);
      Reflect.defineProperty(guest, 'names', {
        value: offered,
        writable: true,
        configurable: true,
        enumerable: false,
      });
      return 'null';
    },
    /** Before a cell: restores the reserved names. Returns JSON of those that can't be restored. */
    begin(lastOutput) {
      const draft = rebound();
      if (draft !== null)
        content = tryOr(content, () => ('content' in draft ? draft.content : content));
      [ready, taken, characters] = [false, null, 0];
      reserved.last_output = JSON.parse(lastOutput);
      const lost = Object.entries(reserved).filter(([name, value]) => !restore(name, value));
      return JSON.stringify(lost.map(([name]) => name));
    },
    /** After a cell: JSON of the answer and of the variables. */
    end() {
      handOver('stdout');
      handOver('stderr');
      const bound = rebound();
      const given = taken ?? tryOr(null, () => (bound?.ready ? textOf(bound.content) : null));
      return JSON.stringify({ answer: given, variables: variables() });
    },
    /** JSON of a variable as text; null if there is none. */
    read(json) {
      const name = JSON.parse(json);
      const isOfCells = !builtIn.has(name) || Object.hasOwn(reserved, name);
      const held = isOfCells ? Object.getOwnPropertyDescriptor(guest, name) : undefined;
      return JSON.stringify(held === undefined ? null : textOf(held.value));
    },
    /** JSON of what was thrown: its text, and its stack, from which the caller takes the lines. */
    describe(thrown) {
      if (!isError(thrown))
        return JSON.stringify({ text: `Thrown: ${display(thrown)}`, stack: '' });
      const stack = tryOr('', () => String(thrown.stack));
      return JSON.stringify({ text: errorText(thrown), stack });
    },
  };
};
