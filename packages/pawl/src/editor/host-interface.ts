import type { Session } from '@pawl/agent/api/create-agent';
import type { SessionRights } from '@pawl/agent/api/session-settings';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import type { InspectableStore } from '@pawl/agent/journal/read/read-without-lock';
import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { Watcher } from '@pawl/agent/ports/session-input-output';

/** What the ACP agent needs of the program around it. */

/** A session to open again. */
export type ResumeRequest = {
  readonly id: string;
  /** Throws if the session must not be opened. `workspace`: the folder that it works in. */
  accept(workspace: string): Promise<void>;
  /** Of a session that was open a moment ago: the rights that it had. */
  readonly rights?: SessionRights;
  /** Called with every step of the session so far, in order; null if nobody wants to see them. */
  readonly visit: ((step: JournalStep) => void) | null;
};

export type SessionRequest = {
  /** Real absolute path of the workspace. */
  readonly workspace: string;
  /** Null for a new session. */
  readonly resume: ResumeRequest | null;
  /** MCP servers that the editor gives to the session. */
  readonly servers: readonly McpServer[];
  /** Called with every step, beginning with the first. */
  readonly watcher: Watcher;
  /** Receives warnings for the user, one line each. */
  warn(text: string): void;
};

/** A slash command that the editor offers. `hint` describes its argument; null if it takes none. */
export type EditorCommand = {
  readonly name: string;
  readonly description: string;
  readonly hint: string | null;
};

/** The skills and commands of a session's folder. */
export type EditorPrompts = {
  /** Names that can be typed after `/`. */
  readonly choices: readonly { readonly text: string; readonly about: string }[];
  /** Whether `expand` may change this text. */
  expands(typed: string): boolean;
  /** The prompt for a typed `/NAME WORDS`; other texts as they are. `fault`: why it could not be read. */
  expand(typed: string): Promise<{ readonly text: string; readonly fault: string | null }>;
};

export type OpenedSession = {
  readonly session: Session;
  readonly prompts: EditorPrompts;
  /** Null without MCP servers. */
  readonly servers: Pick<SessionServers, 'answerWith'> | null;
};

/** One answer to a TrustQuestion. */
export type TrustChoice = {
  readonly id: string;
  readonly name: string;
  readonly kind: 'allow_always' | 'reject_once' | 'reject_always';
};

export type TrustAnswer = {
  /** What holds now, in a few words. */
  readonly said: string;
  readonly isAllowed: boolean;
};

/** Something of the project that runs only if the user allows exactly this text. */
export type TrustQuestion = {
  /** One line. */
  readonly title: string;
  /** The whole text, or how it differs from the one that was allowed. */
  readonly content: string;
  readonly kind: 'text' | 'diff';
  /** What a yes means. */
  readonly meaning: string;
  readonly choices: readonly TrustChoice[];
  /** Stores the answer; null: not now. Rejects if it could not be stored. */
  answer(choice: string | null): Promise<TrustAnswer>;
};

/** An error for the user. `configuration`: the user has to set something up, for example a key. */
export type DescribedError = {
  readonly kind: 'configuration' | 'other';
  readonly reason: string;
  readonly message: string;
};

export type AcpHost = {
  readonly version: string;
  readonly journals: InspectableStore;
  open(request: SessionRequest): Promise<OpenedSession>;
  readonly commands: readonly EditorCommand[];
  /** Runs one of the commands; resolves with what it prints. Never rejects. */
  runCommand(session: Session, name: string, words: string): Promise<string>;
  /** Ids of the models that can be chosen now, besides the session's own. */
  models(): readonly string[];
  /** What the project wants to run, and the user has not been asked about. Such things do not run in a session until then. */
  trustQuestions(workspace: string, warn: (text: string) => void): Promise<readonly TrustQuestion[]>;
  describeError(error: unknown): DescribedError;
};
