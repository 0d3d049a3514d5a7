/**
 * Sends the spans of sessions to the user's collector. Loaded only where telemetry is on: it takes
 * 32 ms.
 */

import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { findEndpoint, providers } from '@pawl/agent/models/provider-table';
import { type ProcessEnvironment, VERSION } from '@pawl/agent/platform/environment';
import type { Stepped, Watcher } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import { SessionSpans, type SpanOptions } from '@pawl/inspector/session-spans';
import { FLUSH_MS, flushAtEnd } from '../process/exit-codes.js';

/** One attempt of an export; it must end before the deadline of the exit. */
const EXPORT_MS = FLUSH_MS - 500;

export type ExportOptions = {
  /**
   * The collector's address, from the settings; without it the variables of OpenTelemetry name it.
   */
  readonly endpoint: string | null;
  readonly content: 'with' | 'without';
  /** The address of the provider that the user gave; null for its usual one. */
  readonly baseUrl: string | undefined;
  readonly warn: (text: string) => void;
};

export type SpanExport = {
  readonly watcher: Watcher;
  /**
   * Connects the spans with their session, as soon as it is open. Steps that came before are not
   * lost.
   */
  attend(session: Session): void;
};

/** Says once that spans don't arrive. */
const withWarning = (exporter: SpanExporter, { warn, endpoint }: ExportOptions): SpanExporter => {
  let hasWarned = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0 && !hasWarned) {
          hasWarned = true;
          const where = endpoint ?? 'the address in OTEL_EXPORTER_OTLP_ENDPOINT';
          const why = result.error === undefined ? '' : `: ${result.error.message}`;
          warn(`telemetry: spans can't be sent to ${where}, and are dropped${why}`);
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
};

let sharedTracer: Tracer | null = null;

/** One provider for all sessions of the program. */
const openTracer = (options: ExportOptions): Tracer => {
  if (sharedTracer !== null) return sharedTracer;
  const { endpoint } = options;
  const url = endpoint === null ? {} : { url: `${endpoint.replace(/\/+$/, '')}/v1/traces` };
  const exporter = withWarning(
    new OTLPTraceExporter({ ...url, timeoutMillis: EXPORT_MS }),
    options,
  );
  const named = resourceFromAttributes({ 'service.name': 'pawl', 'service.version': VERSION });
  const provider = new BasicTracerProvider({
    resource: named.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  flushAtEnd(() => provider.shutdown());
  sharedTracer = provider.getTracer('pawl', VERSION);
  return sharedTracer;
};

/**
 * The span of the program that started Pawl, by TRACEPARENT (W3C Trace Context); undefined if it
 * names none. Its flag decides whether spans are sent.
 */
const parentIn = ({ TRACEPARENT = '' }: ProcessEnvironment): Context | undefined => {
  const [, traceId = '', spanId = '', flags = ''] =
    /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/.exec(TRACEPARENT.trim()) ??
    [];
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : undefined;
};

/** The address of the provider's server, which spans of model calls name. */
const serverIn =
  (baseUrl: string | undefined): SpanOptions['serverOf'] =>
  (model) => {
    const provider = providers.find(({ name }) => model.startsWith(`${name}/`));
    if (provider === undefined) return null;
    const endpoint = findEndpoint(provider, process.env, baseUrl);
    if (endpoint.kind !== 'ok' || endpoint.url === null) return null;
    const { hostname, port, protocol } = new URL(endpoint.url);
    return {
      address: hostname,
      port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port),
    };
  };

/** Makes and sends the spans of one session. */
export const exportSpans = (options: ExportOptions): SpanExport => {
  const tracer = openTracer(options);
  const parent = parentIn(process.env);
  const early: Stepped[] = [];
  let spans: SessionSpans | null = null;
  return {
    watcher: (step) => {
      if (spans === null) early.push(step);
      else spans.see(step); // makes the spans that begin or end with the step
    },
    attend(session) {
      const opened = new SessionSpans({
        tracer,
        sessionId: session.id,
        ...(parent === undefined ? {} : { parent }),
        content: options.content === 'with' ? (text) => session.redact(text) : null,
        serverOf: serverIn(options.baseUrl) ?? (() => null),
      });
      for (const step of early.splice(0)) opened.see(step);
      spans = opened;
      const close = (): void => opened.close();
      session.ended.then(close, close);
    },
  };
};
