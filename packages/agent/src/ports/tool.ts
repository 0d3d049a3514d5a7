/**
 * Interface between the runtime and a tool: types, and an empty list of jobs.
 *
 * From top to bottom: the judgement of an input; the memory of files; background jobs; the context
 * of a call; tools that join late; calls that were sent; the outcome; and `Tool`.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { CallOutcome, CallPreview, ShownLines } from '../machine/call.js';
import type { Remaining } from '../machine/settings.js';
import type { Clock } from '../platform/clock.js';
import type { CommandLevel } from '../policy/decide.js';
import type { CallFacts, CallTraits, ShellFacts } from '../policy/judged-call.js';
import type { Blobs } from './journal.js';
import type { ToolDeclaration } from './model.js';

export type Judgement =
  | {
      readonly kind: 'ok';
      readonly input: JsonObject;
      readonly facts: CallFacts;
      /** Overrides the tool's deadline. */
      readonly deadlineMs?: number;
      /**
       * The call changes nothing: `always`, or `fenced`: only if its command runs in a sandbox.
       * Absent: as the tool's traits say.
       */
      readonly reads?: 'always' | 'fenced';
      /**
       * One line for the user: the command, the file, the pattern. If absent, it is derived from
       * the input.
       */
      readonly title?: string;
    }
  | InvalidInput;

export type InvalidInput = {
  readonly kind: 'invalid';
  readonly field: string;
  readonly why: string;
};

/** A text of a file that the model has seen: the whole of it, or lines that a search showed. */
export type SeenText = {
  /** Of the text's bytes. After a rebased edit (see FileMemory) no file has them. */
  readonly sha256: string;
  readonly text: string;
  readonly extent: 'whole' | 'lines';
};

/**
 * The files that tools showed to the model, by real path. One per session. It answers three
 * questions about a file:
 *
 * 1. `get`, `shownLines`: which bytes did calls last show or write, and which of their lines does
 *    the conversation show? Only bytes that are shown whole may be replaced whole.
 * 2. `recall`: which text did the model see last? An edit finds its place by it, even if a search
 *    showed only some lines, or the file has changed since.
 * 3. `ownWrite`: what have tools of this session made of the file, since another program changed
 *    it?
 *
 * Tools fill it: after a read or a write of a file by `set`, after a search by `addLines`, after a
 * change of the content also by `wrote`. `hide` takes back what one call has shown
 * (`ShownLines.by`).
 *
 * A rebased edit changes some lines of a file that another program has changed since the model saw
 * it. It does not show the rest. So `set` gets the earlier text with the edit in it, and the hash
 * of that text, which no file has: the next edit is rebased, too.
 *
 * Simple memories, as in tests, have only `get` and `set`.
 */
export type FileMemory = {
  /** sha256 of the bytes that calls last showed or wrote; after a rebased edit no file has it. */
  get(path: string): string | undefined;
  /**
   * `text`: the whole text, with which an edit still finds its place when the file has changed
   * elsewhere. `lines`: those that calls have shown, beside earlier ones of the same bytes. `lines`
   * absent: this call has shown or written all lines.
   */
  set(path: string, sha256: string, text?: string, lines?: readonly ShownLines[]): void;
  /**
   * The lines of the last known bytes that results in the conversation show. A file is replaced as
   * a whole only if they are all of them. Without this function all count as shown.
   */
  shownLines?(path: string): readonly ShownLines[];
  /** A call has shown nothing: its result was cut or redacted, or a later call has the same id. */
  hide?(callId: string): void;
  /** A search showed lines of this text. That is enough for an edit, not to replace the file. */
  addLines?(path: string, sha256: string, text: string): void;
  /** The last text, while there is room for it, until a resume. `get` may be of other bytes. */
  recall?(path: string): SeenText | undefined;
  /**
   * A tool changed the file from one content to the other, by their sha256. `text`: before it; null
   * for a new file.
   */
  wrote?(path: string, before: string, after: string, text?: string | null): void;
  /** What tools of this session did to the file, while no other program changed it in between. */
  ownWrite?(path: string): OwnWrite | undefined;
};

/**
 * sha256 of a file before this session first changed it, and after it last did. `text`: before it,
 * while there is room for it.
 */
export type OwnWrite = { readonly before: string; readonly after: string; readonly text?: string };

/**
 * A command that runs in the background; it ends with the session, unless the program is killed.
 */
export type Job = {
  readonly jobId: string;
  readonly command: string;
  status(): string;
  output(): string;
  /** Bytes that `output` lacks, if only a part is kept. */
  droppedBytes?(): number;
  kill(): Promise<void>;
};

export type Jobs = {
  /** Registers a job under the next id (`job-1`, ...). */
  add(start: (jobId: string) => Job): Job;
  /** Registers a job of an earlier process of the session under its id. */
  restore(job: Job): void;
  get(jobId: string): Job | undefined;
  list(): readonly Job[];
};

export type ToolContext = {
  /** Real absolute path. */
  readonly workspace: string;
  /** The session of the call. Absent: outside of a session. */
  readonly sessionId?: string;
  readonly callId: string;
  /**
   * The batch of the call. Unlike the id of the call alone, both together are unique in the
   * session.
   */
  readonly batchId: string;
  /**
   * The real paths that policy approved. Don't touch a path that resolves to another one by now.
   */
  readonly paths: readonly string[];
  /**
   * Whether a real path holds credentials. A call about a folder above it doesn't show them: the
   * user was not asked. Absent: no path is known to hold any.
   */
  isSecret?(path: string): boolean;
  /** The hosts that policy approved. Don't follow redirects to other hosts. */
  readonly hosts: readonly string[];
  /**
   * Sandbox level for commands of this call: the session's level, plus permissions granted to the
   * call.
   */
  readonly sandbox: CommandLevel;
  /** The commands that the text of the call runs, as they were judged. Absent: it is no command. */
  readonly shell?: ShellFacts;
  /**
   * The call reaches more than the session's level. `byUser`: the user allowed exactly this call.
   * `unasked`: a rule or an earlier answer did. Absent: it stays at the session's level.
   */
  readonly widened?: 'byUser' | 'unasked';
  /** No user can be asked for more than the session's level. Absent: one can. */
  readonly unattended?: true;
  /** The user's words to a call that asks; empty for a plain yes. Absent: it asked nothing. */
  readonly reply?: string;
  /** Aborted with the reason `cancelled` or `timedOut`: end soon and return the partial result. */
  readonly signal: AbortSignal;
  /** Aborted after the grace period: end at once, leave no process. */
  readonly force: AbortSignal;
  readonly files: FileMemory;
  readonly jobs: Jobs;
  readonly blobs: Blobs;
  /** The rest of the session's limits. A call that uses models must not spend more. */
  left(): { readonly usd: Remaining; readonly tokens: Remaining };
  /** Live output for display. */
  progress(text: string): void;
  /**
   * Call it before a request with an effect leaves this process (SentCalls, step 2). The runtime
   * does it for tools without `findInterrupted`.
   */
  sending?(): void;
  /** Whether a call that was running when the session was interrupted had left (step 3). */
  findSent?(): Promise<SentState>;
  /** The time limit of the call stands still until this resolves: the user is asked something. */
  whileAsking?<T>(asked: Promise<T>): Promise<T>;
  /** The call has shown that it goes on: its time limit begins anew, up to a bound. */
  extend?(): void;
};

/** Tools of programs that were not ready when the session began. */
export type LateTools = {
  /**
   * Resolves with the tools that join the session with a request; it may wait for them before the
   * first one. Never rejects. After an abort it resolves with none.
   */
  before(request: {
    /** The model has not replied so far, so another list of tools costs no cached prompt. */
    readonly isFirst: boolean;
    /** Names of the tools that the session declares. */
    readonly declared: ReadonlySet<string>;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  }): Promise<readonly Tool[]>;
};

/**
 * Which calls have left this process for another program, so that after a crash only one that has
 * not left is made again. `call`: a text that names its batch and its id.
 *
 * 1. `announce`, before the start of the call is journaled. Without it `find` can't tell.
 * 2. `record`, before the request leaves. Throws if it can't: then the call must not leave.
 * 3. After a crash `find`, in the next process of the session.
 */
export type SentCalls = {
  announce(workspace: string): void;
  record(workspace: string, call: string): void;
  find(workspace: string, call: string): Promise<SentState>;
};

/** `notSent`: the call never left the process, and its process has ended. */
export type SentState = 'sent' | 'notSent' | 'unknown';

/** Context of a preview. It can read the file memory but not change it. */
export type PreviewContext = Pick<ToolContext, 'workspace' | 'paths' | 'signal'> & {
  readonly files: Pick<FileMemory, 'get' | 'recall' | 'shownLines' | 'ownWrite'>;
};

/**
 * The tool returns its whole `text`; the runtime truncates it to the limit and stores the full text
 * as a blob. A line of `text` in square brackets is the tool's note about its output: people see it
 * only with the full output, or if the call failed.
 */
export type ToolOutcome = Omit<CallOutcome, 'blob' | 'seen' | 'hooks'> & {
  /**
   * Bytes of output that `text` lacks, if the tool itself kept only a part: the model is told that
   * they are gone.
   */
  readonly droppedBytes?: number;
  /** `text` is the output of a command: of a long one the end matters most, and what went wrong. */
  readonly isLog?: boolean;
  /** The command of a log ended well: its text is not searched for errors. */
  readonly endedWell?: boolean;
  /**
   * The tool bounds its text itself, to so many bytes: up to there it is not cut, unless the
   * session's limit is lower than usual or the batch is full.
   */
  readonly cutBytes?: number;
};

/**
 * sha256 of one file before and after a change; `after` is absent if the call changes nothing, or
 * if it is unknown.
 */
export type FileHashes = { readonly before: string; readonly after?: string };

/** What a tool finds of a call that was running when the session was interrupted. */
export type InterruptedCall =
  /** It had not begun, and never will. */
  | { readonly kind: 'neverBegan' }
  /** The text says what is known. */
  | { readonly kind: 'unknown'; readonly text: string }
  | {
      readonly kind: 'found';
      /** Time until its deadline in ms, 0 or less if that has passed; null without one. */
      readonly leftMs: number | null;
      /** It still runs, so it has run without a break since the session was interrupted. */
      readonly isRunning?: boolean;
      /** Waits for its end, as `run` does. */
      finish(): Promise<ToolOutcome>;
    };

export type Tool = ToolDeclaration & {
  readonly traits: CallTraits;
  /** It does nothing but reach hosts, so it is offered where the rules may let it reach one. */
  readonly reaches?: 'hosts';
  /** Validates the input and collects the facts that policy needs. Changes nothing. */
  judge(input: JsonObject, workspace: string): Judgement | Promise<Judgement>;
  /**
   * Computes the planned change before the user is asked. If it finds that the call can't work, the
   * call ends without a question. Changes nothing.
   */
  preview?(input: JsonObject, context: PreviewContext): Promise<CallPreview>;
  /**
   * For the effect `probeable` (CallEffect): hashes of the file before and after the change,
   * recorded before the call. After a crash the file itself shows whether the call took effect.
   * Changes nothing.
   */
  before?(input: JsonObject, context: ToolContext): Promise<FileHashes>;
  /**
   * Called before the start of a call is journaled, so that a later process knows where to look for
   * the call. Must be quick, and must not fail.
   */
  announce?(workspace: string): void;
  /**
   * For the effect `opaque`, which no file shows: finds a call that was running when the session
   * was interrupted.
   */
  findInterrupted?(input: JsonObject, context: ToolContext): Promise<InterruptedCall>;
  /**
   * Text of the tool's last successful call, which stays verbatim when compaction replaces the
   * messages around it. All tools with `keep` share one such text: that of the last call of any.
   */
  keep?(input: JsonObject, result: string): string;
  /**
   * Performs the call. A failed task is an outcome; a rejection is reported as a bug in the tool.
   */
  run(input: JsonObject, context: ToolContext): Promise<ToolOutcome>;
};

/** An empty list of background jobs. One per session. */
export const createJobs = (): Jobs => {
  const jobs = new Map<string, Job>();
  let count = 0;
  return {
    add(start) {
      count += 1;
      const jobId = `job-${count}`;
      const job = start(jobId);
      jobs.set(jobId, job);
      return job;
    },
    restore(job) {
      jobs.set(job.jobId, job);
      // a damaged file may hold any id
      const [, number = '0'] = /^job-(\d{1,9})$/.exec(job.jobId) ?? [];
      count = Math.max(count, Number(number));
    },
    get: (jobId) => jobs.get(jobId),
    list: () => [...jobs.values()],
  };
};
