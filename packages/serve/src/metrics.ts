/**
 * The figures of a node as OpenMetrics text, under OpenTelemetry's names where its conventions have
 * one (`http.server.request.duration`, `gen_ai.client.token.usage`, …), written as Prometheus
 * writes them.
 */

import type { Event } from '@pawl/agent/machine/event';
import { type State, turnRuns } from '@pawl/agent/machine/state';
import type { Labels } from './keys.js';

/** Figures that are looked up when they are asked for. */
type NodeGauges = {
  readonly sessions: { readonly open: number; readonly busy: number };
  readonly streams: number;
  /** Bytes that wait in memory for readers of streams. */
  readonly bufferedBytes: number;
  readonly requests: number;
  readonly residentBytes: number;
};

/** Events of a session, and its state before and after them. */
export type AppliedChange = {
  readonly before: State;
  readonly events: readonly Event[];
  readonly state: State;
};

export class NodeMetrics {
  readonly #requests = new Family(
    'http_server_request_duration_seconds',
    'histogram',
    'Duration of answered requests; of a stream, until its end.',
    'seconds',
  );
  readonly #streamsEnded = counter(
    'pawl_streams_ended',
    'Streams of events that ended, by reason.',
  );
  readonly #turns = counter('pawl_turns', 'Turns that ended, by what ended them.');
  readonly #tools = counter('pawl_tool_calls', 'Calls of tools that ended, by status.');
  readonly #tokens = counter('gen_ai_client_token_usage', 'Tokens of answered model calls.');
  readonly #cost = counter(
    'pawl_cost_usd',
    'Dollars that answered model calls cost, as far as prices are known.',
  );
  readonly #failures = counter('pawl_model_failures', 'Model calls that failed, by kind.');

  requestEnded(method: string, route: string, status: number, seconds: number): void {
    const labels = {
      http_request_method: method,
      http_route: route,
      http_response_status_code: String(status),
    };
    this.#requests.observe(labels, seconds);
  }

  streamEnded(reason: string): void {
    this.#streamsEnded.add({ reason });
  }

  /** Counts what happened in a session of this key. */
  applied(key: string, { before, events, state }: AppliedChange): void {
    for (const event of events) this.#count({ pawl_key: key }, event, state);
    if (turnRuns(before) && !turnRuns(state))
      this.#turns.add({
        pawl_key: key,
        end: state.name === 'WaitingForUserInput' ? state.reason.kind : 'shutdown',
      });
  }

  #count(labels: Labels, event: Event, { session }: State): void {
    if (event.type === 'LlmCompleted') {
      const model = event.message?.model ?? session.settings.model;
      const ofModel = { ...labels, gen_ai_request_model: model };
      for (const [field, kind] of tokenKinds)
        this.#tokens.add({ ...ofModel, gen_ai_token_type: kind }, event.usage[field]);
      if (event.usage.costUsd !== null) this.#cost.add(ofModel, event.usage.costUsd);
    }
    if (event.type === 'LlmFailed') this.#failures.add({ ...labels, error_type: event.error.kind });
    if (event.type === 'ToolCompleted')
      this.#tools.add({ ...labels, status: event.outcome.status });
  }

  text({ sessions, streams, bufferedBytes, requests, residentBytes }: NodeGauges): string {
    const families = [
      this.#requests,
      this.#streamsEnded,
      this.#turns,
      this.#tools,
      this.#tokens,
      this.#cost,
      this.#failures,
    ];
    return [
      ...families.map((family) => family.text()),
      gaugeText(
        'http_server_active_requests',
        'Requests that are being answered, streams among them.',
        [[{}, requests]],
      ),
      gaugeText('pawl_sessions', 'Sessions that are open on this node, by whether they work.', [
        [{ state: 'busy' }, sessions.busy],
        [{ state: 'idle' }, sessions.open - sessions.busy],
      ]),
      gaugeText('pawl_streams', 'Streams of events that are being read.', [[{}, streams]]),
      gaugeText('pawl_stream_buffered_bytes', 'Bytes that wait in memory for readers of streams.', [
        [{}, bufferedBytes],
      ]),
      gaugeText('process_resident_memory_bytes', 'Memory of the process.', [[{}, residentBytes]]),
      '# EOF\n',
    ].join('');
  }
}

const counter = (name: string, help: string): Family => new Family(name, 'counter', help);

const gaugeText = (
  name: string,
  help: string,
  values: readonly (readonly [Labels, number])[],
): string =>
  `# TYPE ${name} gauge\n# HELP ${name} ` +
  `${help}\n${values.map(([labels, value]) => `${name}${labelsText(labels)} ${value}\n`).join('')}`;

/** Fields of a usage, and their names in OpenTelemetry. */
const tokenKinds = [
  ['inputTokens', 'input'],
  ['outputTokens', 'output'],
  ['cacheReadTokens', 'cache_read'],
  ['cacheWriteTokens', 'cache_write'],
] as const;

const labelsText = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
};

const escapeValue = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

/** Upper bounds in seconds, as the convention for `http.server.request.duration` advises. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** All numbers of one name. */
class Family {
  readonly #name: string;
  readonly #head: string;
  /** By what follows the name in their lines. */
  readonly #values = new Map<string, number>();

  constructor(name: string, kind: 'counter' | 'histogram', help: string, unit?: 'seconds') {
    this.#name = name;
    const unitLine = unit === undefined ? '' : `# UNIT ${name} ${unit}\n`;
    this.#head = `# TYPE ${name} ${kind}\n${unitLine}# HELP ${name} ${help}\n`;
  }

  add(labels: Labels, amount = 1): void {
    this.#add('_total', labels, amount);
  }

  observe(labels: Labels, seconds: number): void {
    for (const bound of SECONDS)
      this.#add('_bucket', { ...labels, le: String(bound) }, seconds <= bound ? 1 : 0);
    this.#add('_bucket', { ...labels, le: '+Inf' }, 1);
    this.#add('_count', labels, 1);
    this.#add('_sum', labels, seconds);
  }

  #add(part: string, labels: Labels, amount: number): void {
    const key = `${part}${labelsText(labels)}`;
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  text(): string {
    const lines = [...this.#values].map(([key, value]) => `${this.#name}${key} ${value}\n`);
    return this.#head + lines.join('');
  }
}
