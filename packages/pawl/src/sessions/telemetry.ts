/** Whether the user wants spans to be sent; only then their code is loaded. */

import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import type { Watcher } from '@pawl/agent/ports/session';
import { combineWatchers } from '@pawl/agent/session/approvals';
import type { Session } from '@pawl/agent/session/create-agent';
import type { ExportOptions } from './export-spans.js';

type TelemetryFlags = {
  readonly telemetry?: string;
  readonly telemetryEndpoint?: string;
  readonly baseUrl?: string;
};

const isSet = (value: string | undefined): boolean => (value?.trim() ?? '') !== '';

/**
 * OpenTelemetry's names for OTLP over HTTP; both are sent as JSON, which collectors take at the
 * same address.
 */
const PROTOCOLS: ReadonlySet<string> = new Set(['http/json', 'http/protobuf']);

/**
 * Why nothing is sent to a collector that the variables of OpenTelemetry name; null if spans are
 * sent.
 */
const protocolFault = (environment: ProcessEnvironment): string | null => {
  const name = isSet(environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL)
    ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
    : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  const protocol = environment[name]?.trim() ?? '';
  return protocol === '' || PROTOCOLS.has(protocol)
    ? null
    : `telemetry: nothing is sent, since ${name} is ${protocol} and Pawl sends JSON over HTTP. ` +
        `Set it to http/json, and the endpoint to the collector's port for HTTP (4318 is usual)`;
};

/**
 * A collector, by the setting or by the variables of OpenTelemetry; undefined if nobody names one.
 */
const findCollector = (
  { telemetry = 'auto', telemetryEndpoint }: TelemetryFlags,
  environment: ProcessEnvironment,
): Pick<ExportOptions, 'endpoint'> | undefined => {
  if (telemetry === 'off' || environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true')
    return undefined;
  if (isSet(telemetryEndpoint)) return { endpoint: telemetryEndpoint ?? null };
  const named = [
    environment.OTEL_EXPORTER_OTLP_ENDPOINT,
    environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ];
  return environment.OTEL_TRACES_EXPORTER !== 'none' && named.some(isSet)
    ? { endpoint: null }
    : undefined;
};

/**
 * The watcher of a session, which also makes spans if the user wants them; `attend` connects them
 * with it.
 */
type Watching = {
  readonly watcher: { readonly watcher?: Watcher };
  attend(session: Session): void;
};

/** A watcher may break without harm to the session's own, which no telemetry may disturb. */
export const watchWithSpans = async (
  watcher: Watcher | undefined,
  flags: TelemetryFlags,
  warn: (text: string) => void,
): Promise<Watching> => {
  const ownWatcher = watcher === undefined ? {} : { watcher };
  const collector = findCollector(flags, process.env);
  if (collector === undefined) return { watcher: ownWatcher, attend: () => undefined };
  const fault = collector.endpoint === null ? protocolFault(process.env) : null;
  if (fault !== null) {
    warn(fault);
    return { watcher: ownWatcher, attend: () => undefined };
  }
  const { exportSpans } = await import('./export-spans.js');
  const content = flags.telemetry === 'content' ? 'with' : 'without';
  const spans = exportSpans({ ...collector, content, baseUrl: flags.baseUrl, warn });
  const report = (fault: Error): void => warn(`telemetry: it ends here: ${fault.message}`);
  return {
    watcher: { watcher: combineWatchers(watcher ?? (() => undefined), spans.watcher, report) },
    attend: (session) => spans.attend(session),
  };
};
