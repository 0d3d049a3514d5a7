/**
 * `pawl/telemetry`: spans of OpenTelemetry for sessions of the library. It needs the package
 * `@opentelemetry/api`.
 */

import type { Context, Tracer } from '@opentelemetry/api';
import type { Runtime } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import { SessionSpans } from '@pawl/inspector/session-spans';

export type TelemetryOptions = {
  /** A tracer of your provider: `trace.getTracer('my-app')`. */
  readonly tracer: Tracer;
  /** The context that the turns belong to. Default: each turn begins a trace of its own. */
  readonly parent?: Context;
  /**
   * `with`: prompts, replies, arguments and results are part of the spans, with secrets replaced.
   * Default: `without`.
   */
  readonly content?: 'with' | 'without';
};

/**
 * Makes spans of all that the session does from now on: turns, calls of the model, calls of tools.
 * The returned function ends what is open and stops; the end of the session does so too.
 */
export const traceSession = (
  session: Pick<Session, 'id' | 'watch' | 'redact' | 'ended'>,
  { tracer, parent, content = 'without' }: TelemetryOptions,
): (() => void) => {
  const spans = new SessionSpans({
    tracer,
    sessionId: session.id,
    ...(parent === undefined ? {} : { parent }),
    content: content === 'with' ? (text) => session.redact(text) : null,
  });
  const unwatch = session.watch((step) => spans.see(step));
  const stop = (): void => {
    unwatch();
    spans.close();
  };
  session.ended.then(stop, stop);
  return stop;
};

/**
 * The same for a session of any runtime, such as one that runs in a workflow engine, in the process
 * that watches it. The spans hold nothing of what was said: which values are secret is known only
 * where the session works.
 */
export const traceRuntimeSession = (
  runtime: Pick<Runtime, 'watch'>,
  sessionId: string,
  { tracer, parent }: Omit<TelemetryOptions, 'content'>,
): (() => void) => {
  const spans = new SessionSpans({
    tracer,
    sessionId,
    ...(parent === undefined ? {} : { parent }),
    content: null,
  });
  const stop = (): void => {
    unwatch();
    spans.close();
  };
  const unwatch = runtime.watch(sessionId, (step) => {
    spans.see(step);
    if (step.state.name === 'ShuttingDown') stop();
  });
  return stop;
};
