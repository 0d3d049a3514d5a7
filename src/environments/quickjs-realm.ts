import variant from '@jitl/quickjs-singlefile-mjs-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
} from 'quickjs-emscripten-core';
import type { CellVariable } from '../recursive/cell.js';

/**
 * QuickJS with the names of recursive mode in it: two realms of one runtime, one for the cells, one for our own code.
 *
 * 1. Nothing here reaches files, network or process: the engine has none, and gets none.
 * 2. What bounds memory is the WebAssembly memory itself. The engine's own limit counts only blocks, not bytes.
 * 3. A call of the engine throws where our own stack ends or the engine breaks; then the realm is not to be used again.
 */

/** Node has it; its types come with those of a browser, which we do without. */
declare const WebAssembly: {
  readonly Memory: new (pages: { readonly initial: number; readonly maximum: number }) => object;
};

const PAGE_BYTES = 65_536;
const PAGES_MAX = 32_768;
const QUICKJS_BYTES = 16 * 1024 * 1024;
const STACK_BYTES = 1024 * 1024;
/** Memory that a cell must leave for the next one, to report and to tidy up. */
const ROOM_BYTES = 2 * 1024 * 1024;
const JOBS_AT_ONCE = 1_000;
/** How often JOBS_AT_ONCE are run after the end of a cell's time, to let what it left behind be interrupted. */
const ROUNDS_OVER_MAX = 100;
/** QuickJS: evaluate as a script in which `await` stands at the top level; the value is a promise of `{ value }`. */
const EVALUATE_ASYNC = 1 << 7;

/** What the code can reach of the world. */
export type World = {
  print(stream: 'stdout' | 'stderr', text: string): void;
  /** Waits for the texts. Null: there is nobody to ask. */
  ask(kind: 'llm' | 'rlm', prompts: readonly string[]): readonly string[] | null;
  /** Asked now and then while code runs; true interrupts it for good. */
  isOver(): boolean;
};

export type Thrown = { readonly text: string; readonly stack: string };
export type Outcome =
  | { readonly status: 'ok' }
  | { readonly status: 'raised'; readonly thrown: Thrown }
  /** It waits for something that nothing here can bring about. */
  | { readonly status: 'stuck' };
export type Ending = { readonly answer: string | null; readonly variables: readonly CellVariable[] };

export type Realm = {
  /** Restores the reserved names; those that the code has made unrestorable. */
  begin(lastOutput: string): readonly string[];
  /** Runs the code and all that follows from it, until nothing is left to do or the world says that it is over. */
  evaluate(code: string, fileName: string): Outcome;
  /** Whether jobs are left: promises that would go on in the next cell. */
  isBusy(): boolean;
  end(): Ending;
  read(name: string): string | null;
  /** Whether there is memory left to go on with. */
  hasRoom(): boolean;
};

const isWide = (text: string): boolean => /[^\u0000-\u00ff]/.test(text);

/** Bytes of a text in the engine, and of its UTF-8 copy while it is handed over. */
const bytesOf = (text: string): number => {
  const escaped = text.includes('\0') ? 2 : 1; // goes through JSON
  return (Buffer.byteLength(text) + text.length * (isWide(text) ? 2 : 1)) * escaped;
};

const openRuntime = async (textBytes: number, memoryMax: number): Promise<QuickJSRuntime> => {
  const pages = Math.ceil((QUICKJS_BYTES + textBytes + memoryMax) / PAGE_BYTES);
  if (QUICKJS_BYTES + textBytes > PAGES_MAX * PAGE_BYTES) {
    throw new Error(
      `the contexts need ${Math.ceil(textBytes / 1e6)} MB, and QuickJS has 2 GB: use javascript or python`,
    );
  }
  const memory = new WebAssembly.Memory({
    initial: QUICKJS_BYTES / PAGE_BYTES,
    maximum: Math.min(pages, PAGES_MAX),
  });
  const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory: memory }));
  const runtime = quickjs.newRuntime();
  runtime.setMaxStackSize(STACK_BYTES);
  return runtime;
};

/** A text in the realm. The engine's texts end at a NUL when they are handed over, so these go as JSON. */
const newText = (realm: QuickJSContext, text: string): QuickJSHandle => {
  if (!text.includes('\0')) return realm.newString(text);
  return realm
    .newString(JSON.stringify(text))
    .consume((json) =>
      realm
        .getProp(realm.global, 'JSON')
        .consume((tool) => realm.unwrapResult(realm.callMethod(tool, 'parse', [json]))),
    );
};

const setContexts = (realm: QuickJSContext, contexts: readonly string[]): void => {
  const [only] = contexts;
  if (contexts.length === 1 && only !== undefined) {
    newText(realm, only).consume((text) => realm.setProp(realm.global, 'context', text));
    return;
  }
  realm.newArray().consume((list) => {
    contexts.forEach((text, index) => {
      newText(realm, text).consume((handle) => realm.setProp(list, index, handle));
    });
    realm.setProp(realm.global, 'context', list);
  });
};

/** Said instead of an answer when the cell is to end; as in javascript-prelude.js. */
const OVER = 'over';

/** The host's side of the prelude: every value crosses as JSON. */
const worldHandle = (home: QuickJSContext, world: World): QuickJSHandle => {
  const handle = home.newObject();
  const jsonOf = (text: QuickJSHandle | undefined): unknown =>
    JSON.parse(text === undefined ? 'null' : home.getString(text));
  home
    .newFunction('print', (json) => {
      // Made by the prelude, whose realm no cell's code runs in.
      const { stream, text } = jsonOf(json) as {
        readonly stream: 'stdout' | 'stderr';
        readonly text: string;
      };
      world.print(stream, text);
      return world.isOver() ? home.newString(OVER) : home.undefined;
    })
    .consume((print) => home.setProp(handle, 'print', print));
  home
    .newFunction('ask', (json) => {
      // As above.
      const { kind, prompts } = jsonOf(json) as {
        readonly kind: 'llm' | 'rlm';
        readonly prompts: readonly string[];
      };
      const texts = world.ask(kind, prompts);
      if (world.isOver()) return home.newString(OVER);
      return texts === null ? home.undefined : home.newString(JSON.stringify(texts));
    })
    .consume((ask) => home.setProp(handle, 'ask', ask));
  return handle;
};

type Call = <T>(name: string, input: QuickJSHandle | string | null) => T;

/** Calls a function of the prelude with a text, or with what was thrown; what it returns is JSON of what it promises. */
const openPrelude = (home: QuickJSContext, guest: QuickJSContext, prelude: string, world: World): Call => {
  const make = home.unwrapResult(home.evalCode(prelude, 'prelude'));
  const own = worldHandle(home, world).consume((handle) =>
    home.unwrapResult(home.callFunction(make, home.undefined, [guest.global, handle])),
  );
  return <T>(name: string, input: QuickJSHandle | string | null): T => {
    const handle = typeof input === 'string' ? home.newString(input) : (input ?? home.undefined);
    const json = home
      .unwrapResult(home.callMethod(own, name, [handle]))
      .consume((text) => home.getString(text));
    if (typeof input === 'string') handle.dispose();
    // The prelude writes it, in a realm that no cell's code runs in; javascript-prelude.js says of each function what.
    return JSON.parse(json) as T;
  };
};

/** What a promise that the code made has come to; the value is the caller's to dispose of. */
const outcomeOf = (guest: QuickJSContext, promise: QuickJSHandle, call: Call): Outcome => {
  const state = guest.getPromiseState(promise);
  if (state.type === 'pending') return { status: 'stuck' };
  if (state.type === 'rejected') return raised(state.error, call);
  if (state.notAPromise === true) return { status: 'ok' };
  // Of a script: `{ value }`. A promise there counts as awaited, so that its failure is not lost.
  return state.value.consume((result) =>
    guest.getProp(result, 'value').consume((last) => {
      const ended = guest.getPromiseState(last);
      if (ended.type === 'fulfilled' && ended.notAPromise !== true) ended.value.dispose();
      return ended.type === 'rejected' ? raised(ended.error, call) : { status: 'ok' };
    }),
  );
};

const raised = (thrown: QuickJSHandle, call: Call): Outcome => ({
  status: 'raised',
  thrown: thrown.consume((handle) => call<Thrown>('describe', handle)),
});

/**
 * All jobs; what one throws belongs to the promise that it settles. Once it is over each that loops is interrupted; a
 * chain of jobs that makes itself anew without end is left, and isBusy tells.
 */
const finishJobs = (runtime: QuickJSRuntime, world: World): void => {
  for (let roundsOver = 0; runtime.hasPendingJob() && roundsOver < ROUNDS_OVER_MAX; ) {
    runtime.executePendingJobs(JOBS_AT_ONCE).dispose();
    if (world.isOver()) roundsOver += 1;
  }
};

/** Opens the realms. Rejects where the contexts do not fit into the memory that QuickJS can have. */
export const openRealm = async (
  prelude: string,
  contexts: readonly string[],
  memoryMax: number,
  world: World,
): Promise<Realm> => {
  const textBytes = contexts.reduce((sum, text) => sum + bytesOf(text), 0);
  const runtime = await openRuntime(textBytes, memoryMax);
  const guest = runtime.newContext();
  const home = runtime.newContext();
  setContexts(guest, contexts);
  const call = openPrelude(home, guest, prelude, world);
  runtime.setInterruptHandler(() => world.isOver());
  return {
    begin: (lastOutput) => call<readonly string[]>('begin', JSON.stringify(lastOutput)),
    evaluate(code, fileName) {
      const started = guest.evalCode(code, fileName, EVALUATE_ASYNC);
      if (started.error) return raised(started.error, call);
      return started.value.consume((promise) => {
        finishJobs(runtime, world);
        return outcomeOf(guest, promise, call);
      });
    },
    isBusy: () => runtime.hasPendingJob(),
    end: () => call<Ending>('end', null),
    read: (name) => call<string | null>('read', JSON.stringify(name)),
    hasRoom() {
      const made = home.evalCode(`new ArrayBuffer(${ROOM_BYTES}); 0`, 'room');
      const has = made.error === undefined;
      made.dispose();
      return has;
    },
  };
};
