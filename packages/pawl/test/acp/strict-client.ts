import assert from 'node:assert/strict';
import type {
  ContentBlock,
  CreateElicitationRequest,
  CreateElicitationResponse,
  NewSessionResponse,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import { startPatience } from '../../../../test/until.js';
import { bodyFault, faultIn } from './acp-schema.js';
import { AgentError, type Message } from './wire-message.js';

/** How often a wait looks whether it is over. */
const LOOK_MS = 1_000;

/**
 * A client of the protocol that trusts nothing.
 *
 * 1. Every message, in both directions, has to fit the published schema.
 * 2. Nothing of a session may come before the answer that names it, or after it was closed.
 * 3. A call is announced before it changes, and no request is answered twice.
 */

export type Wire = {
  /** Writes text to the agent's stdin. */
  write(text: string): void;
  /** Calls `take` with every line of the agent's stdout. */
  listen(take: (line: string) => void): void;
};

type Waiting = {
  readonly method: string;
  readonly params: unknown;
  resolve(result: unknown): void;
  reject(error: Error): void;
};

type OnPermission = (
  request: RequestPermissionRequest,
) => RequestPermissionResponse | Promise<RequestPermissionResponse> | null;

export const select = (optionId: string): RequestPermissionResponse => ({
  outcome: { outcome: 'selected', optionId },
});

/** The session id in the parameters of a request; empty if it has none. */
const sessionIn = (params: unknown): string =>
  typeof params === 'object' &&
  params !== null &&
  'sessionId' in params &&
  typeof params.sessionId === 'string'
    ? params.sessionId
    : '';

const textBlock = (text: string): ContentBlock => ({ type: 'text', text });

export class StrictClient {
  readonly #wire: Wire;
  readonly #waiting = new Map<number, Waiting>();
  readonly #watchers = new Set<() => void>();
  readonly #known = new Set<string>();
  readonly #calls = new Set<string>();
  readonly #asked = new Set<number | string>();
  #nextId = 1;
  /** What broke the protocol. */
  readonly faults: string[] = [];
  readonly updates: SessionNotification[] = [];
  readonly permissions: RequestPermissionRequest[] = [];
  /** Errors without an id: answers to what could not be read. */
  readonly unaddressed: AgentError[] = [];
  /** Answers permission requests; null leaves one open. */
  onPermission: OnPermission = () => null;
  readonly forms: CreateElicitationRequest[] = [];
  /** Answers forms; null leaves one open. */
  onForm: (request: CreateElicitationRequest) => CreateElicitationResponse | null = () => null;

  constructor(wire: Wire) {
    this.#wire = wire;
    wire.listen((line) => {
      this.#take(line);
      for (const look of [...this.#watchers]) look();
    });
  }

  async initialize(clientCapabilities: object = {}): Promise<unknown> {
    return this.request('initialize', { protocolVersion: 1, clientCapabilities });
  }

  /** Sends a request; its parameters have to fit the schema unless `unchecked`. */
  request(method: string, params: unknown, unchecked?: 'unchecked'): Promise<unknown> {
    const fault = unchecked === undefined ? bodyFault('agent', method, 'Request', params) : null;
    assert.equal(fault, null, fault ?? '');
    const id = this.#nextId++;
    const answered = new Promise((resolve, reject) =>
      this.#waiting.set(id, { method, params, resolve, reject }),
    );
    if (method === 'session/load') {
      this.#known.add(sessionIn(params));
      this.#forgetCalls(sessionIn(params));
    }
    this.#write({ id, method, params });
    return answered;
  }

  notify(method: string, params: unknown): void {
    const side = method.startsWith('$/') ? 'protocol' : 'agent';
    assert.equal(bodyFault(side, method, 'Notification', params), null);
    this.#write({ method, params });
  }

  /** The id of the last request. */
  get lastId(): number {
    return this.#nextId - 1;
  }

  writeRaw(text: string): void {
    this.#wire.write(text);
  }

  async newSession(cwd: string): Promise<NewSessionResponse> {
    return (await this.request('session/new', { cwd, mcpServers: [] })) as NewSessionResponse; // by the schema
  }

  async prompt(
    sessionId: string,
    prompt: string | readonly ContentBlock[],
  ): Promise<PromptResponse['stopReason']> {
    const blocks = typeof prompt === 'string' ? [textBlock(prompt)] : prompt;
    const answer = (await this.request('session/prompt', {
      sessionId,
      prompt: blocks,
    })) as PromptResponse; // by the schema
    return answer.stopReason;
  }

  /** Updates of a session, of one kind. */
  updatesOf<Kind extends SessionUpdate['sessionUpdate']>(
    sessionId: string,
    kind: Kind,
  ): readonly Extract<SessionUpdate, { readonly sessionUpdate: Kind }>[] {
    return this.updates.flatMap(({ sessionId: id, update }) =>
      id === sessionId && update.sessionUpdate === kind
        ? [update as Extract<SessionUpdate, { readonly sessionUpdate: Kind }>] // by the comparison
        : [],
    );
  }

  /** The text that the agent has streamed in a session. */
  textOf(
    sessionId: string,
    kind:
      | 'agent_message_chunk'
      | 'agent_thought_chunk'
      | 'user_message_chunk' = 'agent_message_chunk',
  ): string {
    return this.updatesOf(sessionId, kind)
      .map(({ content }) => (content.type === 'text' ? content.text : `[${content.type}]`))
      .join('');
  }

  /** Resolves when `look` finds something in what has come so far. */
  async until<T>(what: string, look: () => T | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const isOver = startPatience();
      const timer = setInterval(() => {
        if (!isOver()) return;
        clearInterval(timer);
        this.#watchers.delete(check);
        reject(new Error(`waited in vain: ${what}\n${JSON.stringify(this.updates.slice(-5))}`));
      }, LOOK_MS);
      const check = (): void => {
        const found = look();
        if (found === undefined || found === false) return;
        clearInterval(timer);
        this.#watchers.delete(check);
        resolve(found);
      };
      this.#watchers.add(check);
      check();
    });
  }

  /** Asserts that the agent kept to the protocol. */
  expectNoFault(): void {
    assert.deepEqual(this.faults, []);
  }

  #write(message: object): void {
    this.#wire.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  #take(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line) as Message; // every field is looked at below
    } catch {
      this.faults.push(`no JSON: ${line.slice(0, 200)}`);
      return;
    }
    if (message.jsonrpc !== '2.0') this.faults.push(`no JSON-RPC 2.0: ${line.slice(0, 200)}`);
    if (message.method === undefined) this.#takeAnswer(message);
    else if (message.id === undefined) this.#takeNotification(message.method, message.params);
    else this.#takeRequest(message.id, message.method, message.params);
  }

  #takeAnswer({ id, result, error }: Message): void {
    if (error !== undefined) this.#expect(faultIn('Error', error));
    if (id === null && error !== undefined) {
      this.unaddressed.push(new AgentError(error));
      return;
    }
    const waiting = typeof id === 'number' ? this.#waiting.get(id) : undefined;
    if (waiting === undefined || typeof id !== 'number') {
      this.faults.push(`an answer to no open request: ${id}`);
      return;
    }
    this.#waiting.delete(id);
    const { method, params, resolve, reject } = waiting;
    if (error !== undefined) {
      if (method === 'session/load' && error.code === -32002) this.#known.delete(sessionIn(params));
      reject(new AgentError(error));
      return;
    }
    this.#expect(bodyFault('agent', method, 'Response', result));
    if (method === 'session/new') this.#known.add(sessionIn(result));
    if (method === 'session/resume') this.#known.add(sessionIn(params));
    if (method === 'session/close' || method === 'session/delete')
      this.#known.delete(sessionIn(params));
    resolve(result);
  }

  #takeNotification(method: string, params: unknown): void {
    if (method.startsWith('$/')) {
      this.#expect(bodyFault('protocol', method, 'Notification', params));
      const { requestId } = params as { readonly requestId: number | string }; // by the schema
      if (!this.#asked.has(requestId)) this.faults.push(`cancels no request: ${requestId}`);
      else this.#cancelled(requestId);
      return;
    }
    this.#expect(bodyFault('client', method, 'Notification', params));
    const notification = params as SessionNotification; // by the schema
    const { sessionId, update } = notification;
    if (!this.#known.has(sessionId))
      this.faults.push(`an update of a session that is not open: ${sessionId}`);
    this.#followCall(sessionId, update);
    this.updates.push(notification);
  }

  #followCall(sessionId: string, update: SessionUpdate): void {
    if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') return;
    const key = `${sessionId} ${update.toolCallId}`;
    const isNew = update.sessionUpdate === 'tool_call';
    if (isNew === this.#calls.has(key)) this.faults.push(`${update.sessionUpdate} of ${key}`);
    this.#calls.add(key);
  }

  #forgetCalls(sessionId: string): void {
    for (const key of [...this.#calls])
      if (key.startsWith(`${sessionId} `)) this.#calls.delete(key);
  }

  #takeRequest(id: number | string | null, method: string, params: unknown): void {
    this.#expect(bodyFault('client', method, 'Request', params));
    if (method === 'elicitation/create' && id !== null) {
      void this.#answerForm(id, params as CreateElicitationRequest); // by the schema
      return;
    }
    if (method !== 'session/request_permission' || id === null) {
      this.faults.push(`a request that was not offered: ${method}`);
      return;
    }
    const request = params as RequestPermissionRequest; // by the schema
    if (!this.#calls.has(`${request.sessionId} ${request.toolCall.toolCallId}`))
      this.faults.push(
        `a question about a call that was not announced: ${request.toolCall.toolCallId}`,
      );
    this.permissions.push(request);
    this.#asked.add(id);
    void this.#answer(id, request);
  }

  async #answer(id: number | string, request: RequestPermissionRequest): Promise<void> {
    const response = await this.onPermission(request);
    if (response === null || !this.#asked.delete(id)) return;
    assert.equal(bodyFault('client', 'session/request_permission', 'Response', response), null);
    this.#write({ id, result: response });
  }

  async #answerForm(id: number | string, request: CreateElicitationRequest): Promise<void> {
    this.forms.push(request);
    this.#asked.add(id);
    const response = await this.onForm(request);
    if (response === null || !this.#asked.delete(id)) return;
    assert.equal(bodyFault('client', 'elicitation/create', 'Response', response), null);
    this.#write({ id, result: response });
  }

  /** The agent has withdrawn a question: it is answered so. */
  #cancelled(id: number | string): void {
    this.#asked.delete(id);
    this.withdrawn += 1;
    this.#write({ id, error: { code: -32800, message: 'Request cancelled' } });
  }

  /** Number of questions that the agent withdrew. */
  withdrawn = 0;

  #expect(fault: string | null): void {
    if (fault !== null) this.faults.push(fault);
  }
}
