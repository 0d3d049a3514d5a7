/**
 * QuickJS, the engine that runs JavaScript, with the functions of code mode: one runtime with two
 * realms (global objects of their own). The `guest` runs the cells, the programs of the model. The
 * `home` runs the prelude, javascript-prelude.js: the functions that cells call.
 *
 * 1. The engine has no access to files, network or processes.
 * 2. The size of the WebAssembly memory limits memory: the limit of QuickJS itself counts no bytes.
 * 3. A call of the engine throws if our stack overflows or the engine breaks. Then the realm is
 *    unfit for use.
 * 4. Runtime and realms end with the thread of their worker.
 *
 * From top to bottom: the types; inputs in memory; the prelude; `openRealm`; and `runCell`, which
 * makes the report of a cell.
 */

import variant from '@jitl/quickjs-singlefile-mjs-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
} from 'quickjs-emscripten-core';
import type { CellReport, CellVariable } from '../../run/cell-types.js';
import { collectOutput, cutOutput, type Output, wellFormed } from '../cell-output.js';
import { rewriteCell } from '../rewrite-cell.js';

/** A global of Node. Its types are part of the DOM library, which this project does not load. */
declare const WebAssembly: {
  readonly Memory: new (pages: { readonly initial: number; readonly maximum: number }) => object;
};

const PAGE_BYTES = 65_536;
/** The largest memory: 2 GB. */
const PAGES_MAX = 32_768;
/** Memory of the engine itself. */
const QUICKJS_BYTES = 16 * 1024 * 1024;
const STACK_BYTES = 1024 * 1024;
/** Free memory that a cell must leave for its report and for the next cell. */
const ROOM_BYTES = 2 * 1024 * 1024;
const JOBS_AT_ONCE = 1_000;
/** Batches of jobs that still run after the time limit: their jobs are interrupted one by one. */
const ROUNDS_OVER_MAX = 100;
/** Allows `await` at the top level of a script. The result is a promise of `{ value }`. */
const EVALUATE_ASYNC = 1 << 7;

/** A call to models by the code; `model` is null for the default sub-model. */
export type RealmRequest = {
  readonly kind: 'llm' | 'rlm';
  readonly prompts: readonly string[];
  readonly model: string | null;
};

/** The functions of the host, our side, that the code can reach. */
type RealmWorld = {
  print(stream: 'stdout' | 'stderr', text: string): void;
  /** Blocks until the texts are there. Null: no call is possible now. */
  ask(subcall: RealmRequest): readonly string[] | null;
  /** Polled by the engine while code runs; true interrupts it. */
  isOver(): boolean;
};

type Thrown = { readonly text: string; readonly stack: string };
type RealmCellEnd =
  | { readonly status: 'ok' }
  | { readonly status: 'raised'; readonly thrown: Thrown }
  /** The cell awaits a promise that can never settle. */
  | { readonly status: 'stuck' };
type RealmEnding = { readonly answer: string | null; readonly variables: readonly CellVariable[] };

type Realm = {
  /** Restores the reserved names; returns those that could not be restored. */
  beginCell(lastOutput: string): readonly string[];
  /** Runs the code and its pending jobs, until none remains or the host interrupts. */
  evaluate(code: string, fileName: string): RealmCellEnd;
  /** True if pending jobs remain, which would run in the next cell. */
  isBusy(): boolean;
  /** Prints what is left; returns the answer and the variables. May run code of the cell. */
  endCell(): RealmEnding;
  read(name: string): string | null;
  /** True if enough memory is free for another cell. */
  hasRoom(): boolean;
};

const isWide = (text: string): boolean => /[^\u0000-\u00ff]/.test(text);

/** Bytes of a text in the engine, plus its UTF-8 copy during the transfer. */
const estimateBytes = (text: string): number => {
  const escaped = text.includes('\0') ? 2 : 1; // goes through JSON
  return (Buffer.byteLength(text) + text.length * (isWide(text) ? 2 : 1)) * escaped;
};

const openRuntime = async (textBytes: number, memoryMax: number): Promise<QuickJSRuntime> => {
  const pages = Math.ceil((QUICKJS_BYTES + textBytes + memoryMax) / PAGE_BYTES);
  if (QUICKJS_BYTES + textBytes > PAGES_MAX * PAGE_BYTES) {
    throw new Error(
      `the inputs need ${Math.ceil(textBytes / 1e6)} MB, and QuickJS has 2 GB: use python`,
    );
  }
  const memory = new WebAssembly.Memory({
    initial: QUICKJS_BYTES / PAGE_BYTES,
    maximum: Math.min(pages, PAGES_MAX),
  });
  const quickjs = await newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmMemory: memory }),
  );
  const runtime = quickjs.newRuntime();
  runtime.setMaxStackSize(STACK_BYTES);
  return runtime;
};

/**
 * Copies a text into the realm. A text with a NUL goes as JSON, since a plain transfer ends at the
 * NUL.
 */
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

/** Returned to the prelude when the cell must end. The same as in javascript-prelude.js. */
const OVER = 'over';

type Printed = { readonly stream: 'stdout' | 'stderr'; readonly text: string };

/** The host's side of the prelude: every value crosses as JSON. */
const worldHandle = (home: QuickJSContext, world: RealmWorld): QuickJSHandle => {
  const handle = home.newObject();
  // The type is safe: the prelude wrote the JSON, in a realm where no cell's code runs.
  const parseJson = <T>(text: QuickJSHandle | undefined): T =>
    JSON.parse(text === undefined ? 'null' : home.getString(text)) as T;
  home
    .newFunction('print', (json) => {
      const { stream, text } = parseJson<Printed>(json);
      world.print(stream, text);
      return world.isOver() ? home.newString(OVER) : home.undefined;
    })
    .consume((print) => home.setProp(handle, 'print', print));
  home
    .newFunction('ask', (json) => {
      const texts = world.ask(parseJson<RealmRequest>(json));
      if (world.isOver()) return home.newString(OVER);
      return texts === null ? home.undefined : home.newString(JSON.stringify(texts));
    })
    .consume((ask) => home.setProp(handle, 'ask', ask));
  return handle;
};

/** What the functions of the prelude return. Their inputs are JSON but for that of `describe`. */
type Prelude = {
  /** Takes the names by which cells can read the inputs. */
  readonly offer: null;
  /** Takes the last output; returns the names that could not be restored. */
  readonly begin: readonly string[];
  readonly end: RealmEnding;
  readonly read: string | null;
  readonly describe: Thrown;
};
type Call = <K extends keyof Prelude>(name: K, input: QuickJSHandle | string | null) => Prelude[K];

/** Opens the prelude; returns a function that calls one of its functions. */
const openPrelude = (
  home: QuickJSContext,
  guest: QuickJSContext,
  prelude: string,
  world: RealmWorld,
): Call => {
  const make = home.unwrapResult(home.evalCode(prelude, 'prelude'));
  const api = worldHandle(home, world).consume((handle) =>
    home.unwrapResult(home.callFunction(make, home.undefined, [guest.global, handle])),
  );
  return (name, input) => {
    const handle = typeof input === 'string' ? home.newString(input) : (input ?? home.undefined);
    const result = home.callMethod(api, name, [handle]);
    if (typeof input === 'string') handle.dispose(); // also if it failed: memory may be short
    const json = home.unwrapResult(result).consume((text) => home.getString(text));
    // The type is safe: the prelude wrote the JSON, in a realm where no cell's code runs.
    return JSON.parse(json) as Prelude[typeof name];
  };
};

/** The state of the promise of an evaluated cell. Disposes of its value. */
const readCellEnd = (guest: QuickJSContext, promise: QuickJSHandle, call: Call): RealmCellEnd => {
  const state = guest.getPromiseState(promise);
  if (state.type === 'pending') return { status: 'stuck' };
  if (state.type === 'rejected') return raised(state.error, call);
  if (state.notAPromise === true) return { status: 'ok' };
  // The result of a script is `{ value }`. If the value is a rejected promise, its failure is
  // reported.
  return state.value.consume((result) =>
    guest.getProp(result, 'value').consume((last) => {
      const ended = guest.getPromiseState(last);
      if (ended.type === 'fulfilled' && ended.notAPromise !== true) ended.value.dispose();
      return ended.type === 'rejected' ? raised(ended.error, call) : { status: 'ok' };
    }),
  );
};

const raised = (thrown: QuickJSHandle, call: Call): RealmCellEnd => ({
  status: 'raised',
  thrown: thrown.consume((handle) => call('describe', handle)),
});

/**
 * Runs all pending jobs; an error in a job rejects its promise. After the cell's time is over,
 * looping jobs are interrupted; an endless chain of new jobs remains, and isBusy reports it.
 */
const finishJobs = (runtime: QuickJSRuntime, world: RealmWorld): void => {
  for (let roundsOver = 0; runtime.hasPendingJob() && roundsOver < ROUNDS_OVER_MAX; ) {
    runtime.executePendingJobs(JOBS_AT_ONCE).dispose();
    if (world.isOver()) roundsOver += 1;
  }
};

/**
 * Opens the realms with the texts of the inputs and their names. Rejects if the texts do not fit
 * into QuickJS's maximum memory.
 */
export const openRealm = async (
  prelude: string,
  { contexts, names }: { readonly contexts: readonly string[]; readonly names: readonly string[] },
  memoryMax: number,
  world: RealmWorld,
): Promise<Realm> => {
  const textBytes = contexts.reduce((sum, text) => sum + estimateBytes(text), 0);
  const runtime = await openRuntime(textBytes, memoryMax);
  const guest = runtime.newContext();
  const home = runtime.newContext();
  setContexts(guest, contexts);
  const call = openPrelude(home, guest, prelude, world);
  call('offer', JSON.stringify(names));
  runtime.setInterruptHandler(() => world.isOver());
  return {
    beginCell: (lastOutput) => call('begin', JSON.stringify(lastOutput)),
    evaluate(code, fileName) {
      const started = guest.evalCode(code, fileName, EVALUATE_ASYNC);
      if (started.error) return raised(started.error, call);
      return started.value.consume((promise) => {
        finishJobs(runtime, world);
        return readCellEnd(guest, promise, call);
      });
    },
    isBusy: () => runtime.hasPendingJob(),
    endCell: () => call('end', null),
    read: (name) => call('read', JSON.stringify(name)),
    hasRoom() {
      const result = home.evalCode(`new ArrayBuffer(${ROOM_BYTES}); 0`, 'room');
      const has = result.error === undefined;
      result.dispose();
      return has;
    },
  };
};

// ---- One cell, and its report ----

const FRAMES_MAX = 6;

export type Outputs = { readonly stdout: Output; readonly stderr: Output };
/** Maximum characters of `last_output`, which must fit into memory. */
const KEPT_MAX = 4_000_000;
/** `last_output` may take this fraction (1/n) of the memory. */
const KEPT_SHARE = 16;

export const newOutputs = (memoryMax: number): Outputs => {
  const keptMax = Math.min(KEPT_MAX, memoryMax / KEPT_SHARE);
  return { stdout: collectOutput(keptMax), stderr: collectOutput(keptMax) };
};

type CellRun = {
  readonly realm: Realm;
  readonly code: string;
  readonly number: number;
  /** Collects the output of the realm while the cell runs. */
  readonly outputs: Outputs;
  /** Output of the previous cell. */
  readonly lastOutput: string;
  readonly outputMax: number;
  /** True if the cell was interrupted, by its deadline or from outside. */
  readonly wasStopped: () => boolean;
  /**
   * Grants some extra time for the report, which may run code of the cell's values (e.g. toJSON).
   */
  readonly allowEnding: () => void;
};

/** `unfit`: the reason why the realm must be replaced; null if it can be used again. */
type FinishedRun = {
  readonly report: CellReport;
  readonly unfit: string | null;
  readonly output: string;
};

/** The stack frames in cells, as lines such as `at f, line 3`. Other frames are skipped. */
const findPlaces = (stack: string, number: number): readonly string[] =>
  [...stack.matchAll(/^ *at (.*?) ?\(?cell-(\d+):(\d+)(?::\d+)?\)?$/gm)]
    .slice(0, FRAMES_MAX)
    .map(([, name = '', cell, line]) => {
      const within = name === '' || name.startsWith('<') ? '' : `${name}, `;
      const elsewhere = Number(cell) === number ? '' : ' of an earlier cell';
      return `\n    at ${within}line ${line}${elsewhere}`;
    });

const failureText = ({ text, stack }: Thrown, number: number): string =>
  `${text}${findPlaces(stack, number).join('')}\n`;

const STUCK =
  'Error: the code waits for a promise that nothing can settle: there are no timers, files ' +
  'or network here\n';

/** Runs the code and writes its failure to stderr. */
const evaluate = ({
  realm,
  code,
  number,
  outputs,
  wasStopped,
}: CellRun): 'ok' | 'raised' | 'stopped' => {
  const { stderr } = outputs;
  if (wasStopped()) {
    stderr.add('Stopped: the cell was cancelled before it began.\n');
    return 'stopped';
  }
  const written = rewriteCell(code);
  if (written.status === 'failed') {
    const place = written.line === null ? '' : `\n    at line ${written.line}`;
    stderr.add(`SyntaxError: ${written.message}${place}\n`);
    return 'raised';
  }
  const outcome: RealmCellEnd = realm.evaluate(written.code, `cell-${number}`);
  if (wasStopped()) {
    stderr.add('Stopped: the cell was interrupted; what it had bound is kept.\n');
    return 'stopped';
  }
  if (outcome.status === 'raised') stderr.add(failureText(outcome.thrown, number));
  if (outcome.status === 'stuck') stderr.add(STUCK);
  return outcome.status === 'ok' ? 'ok' : 'raised';
};

/** The answer and the variables; null if the realm fails to list them. */
const endRealm = (realm: Realm): RealmEnding | null => {
  try {
    return realm.endCell();
  } catch {
    return null; // out of memory or time: the realm is unfit, and the report says so
  }
};

const whyUnfit = (realm: Realm, ending: RealmEnding | null, status: string): string | null => {
  // a cell that failed may have used up the memory
  if (status !== 'ok' && !realm.hasRoom()) return 'its memory was full';
  if (ending === null) return 'it could not tell what is bound';
  return realm.isBusy() ? 'the code left work behind that never ends' : null;
};

/**
 * Prepares the realm; returns names that could not be restored. If memory is short, `last_output`
 * is cut.
 */
const begin = ({ realm, lastOutput, outputMax }: CellRun): readonly string[] => {
  try {
    return realm.beginCell(lastOutput);
  } catch {
    // Retry with a shorter text. If that fails, too, the realm is replaced and the report says so.
    return realm.beginCell(cutOutput(lastOutput, outputMax, ''));
  }
};

/** Runs a cell. Throws if the engine itself breaks. */
export const runCell = (run: CellRun): FinishedRun => {
  const { realm, outputs, outputMax } = run;
  const lost = begin(run);
  const status = evaluate(run);
  run.allowEnding();
  const ending = endRealm(realm);
  const unfit = whyUnfit(realm, ending, status);
  if (lost.length > 0)
    outputs.stderr.add(`Note: the code made ${lost.join(', ')} impossible to restore.\n`);
  const output = outputs.stdout.whole();
  const report: CellReport = {
    status,
    stdout: cutOutput(output, outputMax, '; the next cell has all of it in last_output'),
    stderr: cutOutput(outputs.stderr.whole(), outputMax, ''),
    variables: ending?.variables ?? [],
    answer: ending === null || ending.answer === null ? null : wellFormed(ending.answer),
    variablesLost: 'no',
  };
  return { report, unfit, output };
};
