import type { CallFacts, CallOutcome, CallTraits } from './agent/call.js';
import type { ModelError, StopReason, UserEvent } from './agent/event.js';
import type { AssistantText, JsonObject, Message, ProviderMetadata, ReasoningPart } from './agent/message.js';
import type { State } from './agent/state.js';
import type { Prices } from './agent/usage.js';
import type { Diagnostic, Edge } from './kernel/step.js';
import type { AgentTypes, MachineTypes } from './needs-machine.js';

/** What the runtime asks of the world, and what the world may ask of a runtime. Types only. */

// ---- Model ----

export type ModelFacts = {
  readonly windowTokens: number;
  readonly outputTokensMax: number;
  readonly thinking: 'yes' | 'no';
  readonly tools: 'yes' | 'no';
  /** Whether it can be shown pictures; absent of one of which that is not known. */
  readonly images?: 'yes' | 'no';
  /** null: unknown, and said to be unknown. */
  readonly prices: Prices | null;
  /** Where the facts come from; null of a model that the catalogue does not know. */
  readonly source: string | null;
};

export type ToolDeclaration = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject;
};

export type ModelRequest = {
  readonly instructions: string;
  readonly tools: readonly ToolDeclaration[];
  readonly messages: readonly Message[];
  /** `none`: the reply is to be text only. A model that can't be told so may call all the same. */
  readonly toolChoice?: 'none';
};

/** Counts as the provider reports them: input without what was read from or written to a cache. */
export type TokenUsage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
};

/** A call as it came: `rawInput` is the text the model wrote, never repaired. */
export type RawCall = {
  readonly type: 'call';
  readonly callId: string;
  readonly tool: string;
  readonly rawInput: string;
  readonly metadata?: ProviderMetadata;
};

export type ModelPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'toolCall'; readonly tool: string; readonly text: string }
  | {
      readonly type: 'completed';
      readonly parts: readonly (AssistantText | ReasoningPart | RawCall)[];
      readonly stopReason: StopReason;
      readonly usage: TokenUsage;
    }
  | { readonly type: 'failed'; readonly error: ModelError; readonly usage: TokenUsage | null };

/** A language model behind one wire. */
export type Model = {
  /** `provider/name`. */
  readonly id: string;
  readonly facts: ModelFacts;
  readonly canAbort: 'yes' | 'no';
  /** Loads in the background what the first call needs. A failure is that call's to report. */
  prepare?(): void;
  /**
   * One call, never retried here. Yields pieces and ends with exactly one `completed` or `failed`; it does not
   * reject. After `signal` is aborted it may end at once without either.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPiece>;
};

// ---- Tools ----

export type Judgement =
  | {
      readonly kind: 'ok';
      readonly input: JsonObject;
      readonly facts: CallFacts;
      /** In place of the tool's own deadline. */
      readonly deadlineMs?: number;
    }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/** What a tool remembers of the files it showed to the model, by real path. One per session. */
export type FileMemory = {
  /** sha256 of the file's bytes when it was last read or written by a tool. */
  get(path: string): string | undefined;
  set(path: string, sha256: string): void;
};

/** A command that goes on in the background; it ends with the session. */
export type Job = {
  readonly jobId: string;
  readonly command: string;
  status(): string;
  output(): string;
  kill(): Promise<void>;
};

export type Jobs = {
  /** Registers a job under the next id (`job-1`, ...). */
  add(start: (jobId: string) => Job): Job;
  get(jobId: string): Job | undefined;
  list(): readonly Job[];
};

export type ToolContext = {
  /** Real absolute path. */
  readonly workspace: string;
  readonly callId: string;
  /** The real paths that policy decided about. A path that leads elsewhere by now must not be touched. */
  readonly paths: readonly string[];
  /** The hosts that policy decided about. One that the call is led to from there must not be reached. */
  readonly hosts: readonly string[];
  /** Aborted with reason `cancelled` or `timedOut`: end soon and report what there is. */
  readonly signal: AbortSignal;
  /** Aborted when time is up: end at once, leave no process. */
  readonly force: AbortSignal;
  readonly files: FileMemory;
  readonly jobs: Jobs;
  readonly blobs: Blobs;
  /** What is left of the session's limits; null of what has none. */
  left(): { readonly usd: number | null; readonly tokens: number | null };
  /** Live output for display. */
  progress(text: string): void;
};

/** `text` is whole; the runtime cuts it to the limit and keeps the rest as a blob. */
export type ToolOutcome = Omit<CallOutcome, 'blob' | 'seen'>;

/** sha256 of one file before and after a change; without `after` the call changes nothing, or nobody can tell. */
export type FileHashes = { readonly before: string; readonly after?: string };

export type Tool = ToolDeclaration & {
  readonly traits: CallTraits;
  /** Checks input against the schema and finds out what policy must know. Touches nothing. */
  judge(input: JsonObject, workspace: string): Judgement | Promise<Judgement>;
  /** Of a probeable call: the file it is about to change, recorded before the effect. Changes nothing. */
  before?(input: JsonObject, context: ToolContext): Promise<FileHashes>;
  /** Of a call that ended well, what stays word for word when the messages around it are replaced by a summary. */
  keep?(input: JsonObject): string;
  /** Performs the call. A failure of the task is an outcome; a rejection is a fault of the tool, and reported as one. */
  run(input: JsonObject, context: ToolContext): Promise<ToolOutcome>;
};

// ---- Journal ----

export type Blobs = {
  /** Keeps text under its sha256 (hex), durable when it resolves. */
  put(text: string): Promise<string>;
  get(sha256: string): Promise<string | undefined>;
};

/** The first line of a journal. */
export type Header<M extends MachineTypes = AgentTypes> = {
  readonly version: 1;
  /** Which machine it is of; absent of the agent's. */
  readonly kind?: Exclude<M['kind'], 'agent'>;
  readonly sessionId: string;
  readonly createdAt: number;
  readonly workspace: string;
  readonly parent: { readonly sessionId: string; readonly seq: number } | null;
  /** Fingerprint of the machine: a hash of its edges. */
  readonly machine: string;
  readonly settings: M['settings'];
  /** What the model is told, frozen at session start, by the sha256 of its blobs. */
  readonly instructions: string;
  readonly tools: string;
  /** The price used until the model changes (SettingsChanged), stored so that costs can be checked later. */
  readonly prices: Prices | null;
};

/** What the model is told in every request: the instructions, and the tools' declarations as JSON. */
export type Frozen = { readonly instructions: string; readonly tools: string };

export type Entry<M extends MachineTypes = AgentTypes> = { readonly seq: number; readonly event: M['event'] };

/** What is written: the event and the state after it, from which the journal takes its checks. */
export type Draft<M extends MachineTypes = AgentTypes> = {
  readonly event: M['event'];
  readonly state: M['state'];
};

export type Journal<M extends MachineTypes = AgentTypes> = {
  readonly header: Header<M>;
  /** seq of the last entry; 0 of an empty journal. */
  readonly seq: number;
  /** Writes entries in order; resolves when they are durable. A rejection means: none of them may be acted on. */
  append(drafts: readonly Draft<M>[]): Promise<void>;
  read(from?: number): AsyncIterable<Entry<M>>;
  readonly blobs: Blobs;
  /** What the header names by its blobs; `damaged` if one is missing. */
  frozen(): Promise<Frozen>;
  /** Releases the lock. */
  close(): Promise<void>;
};

export type OpenJournal<M extends MachineTypes = AgentTypes> = {
  readonly journal: Journal<M>;
  /** The fold of all entries: exactly the state from before. */
  readonly state: M['state'];
  /** A last line that was cut off in the middle of writing: removed, and kept aside under `keptAs`. */
  readonly tornTail: { readonly bytes: number; readonly keptAs: string } | null;
};

export type SessionInfo = {
  readonly sessionId: string;
  /** Which machine it is of. */
  readonly kind: MachineTypes['kind'];
  readonly workspace: string;
  readonly createdAt: number;
  readonly changedAt: number;
  readonly parent: Header['parent'];
  readonly model: string;
  /** First words of the user, for lists; empty of a session without input. */
  readonly title: string;
};

/**
 * The journals of one machine; those of others are only listed and forked. Errors: JournalError (see journal/error.ts)
 * of kinds locked, damaged, newerVersion, otherMachine, notFound, cannotWrite.
 */
export type JournalStore<M extends MachineTypes = AgentTypes> = {
  /** Shared by all sessions, and there before any. */
  readonly blobs: Blobs;
  /** Put the blobs that the header names first: a session without them can't be opened again. */
  create(header: Header<M>): Promise<Journal<M>>;
  open(sessionId: string): Promise<OpenJournal<M>>;
  /** The fold of all entries, without the lock and without changing anything. */
  peek(
    sessionId: string,
  ): Promise<{ readonly header: Header<M>; readonly seq: number; readonly state: M['state'] }>;
  /** A new session that holds the entries up to `seq`; durable when it resolves. */
  fork(sessionId: string, seq: number, newSessionId: string, createdAt: number): Promise<void>;
  read(sessionId: string, from?: number): AsyncIterable<Entry<M>>;
  /** Newest first, those of other machines too. */
  list(): AsyncIterable<SessionInfo>;
};

// ---- The user's stopping policy ----

/** Asked before every model call: null lets it be sent; a sentence ends the turn and says why. */
export type StoppingPolicy = (state: State) => string | null | Promise<string | null>;

// ---- Clock, watcher ----

export type Clock = {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, ring: () => void): () => void;
};

/** One application of the machine, as it happened. `seq` is null of an event that is not journaled. */
export type Stepped<M extends MachineTypes = AgentTypes> = {
  readonly seq: number | null;
  readonly event: M['event'];
  readonly state: M['state'];
  readonly actions: readonly M['action'][];
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/** Looks on: cannot block and cannot change anything. Called in order, after the event is durable. */
export type Watcher<M extends MachineTypes = AgentTypes> = (stepped: Stepped<M>) => void;

// ---- Runtime ----

type Without<E, K extends PropertyKey> = E extends unknown ? Omit<E, K> : never;
/** A user's event without its time, which the runtime stamps. */
export type Input = Without<UserEvent, 'at'>;

/** Many sessions behind one interface, whatever drives them. */
export type Runtime = {
  /** Durable and applied when it resolves. */
  send(sessionId: string, input: Input): Promise<{ readonly seq: number }>;
  /** The journal from `from` (default 1), then what comes live, until the session closes. */
  read(sessionId: string, from?: number): AsyncIterable<Entry>;
  state(sessionId: string): Promise<{ readonly seq: number; readonly state: State }>;
  /** A new session with the conversation up to `seq`; its id. */
  fork(sessionId: string, seq: number): Promise<string>;
  list(): AsyncIterable<SessionInfo>;
};
