/** Checks the engine before a node starts. `NodeStartError`: why a node can't start. */

import { attempt, type EngineNodeOptions } from 'pawl/engine';

/**
 * Why a node can't start. `unreachable`: the engine, a node or the store for blobs does not answer;
 * `wrongEngine`: another program, or too old; `portTaken`: the node can't listen.
 */
export class NodeStartError extends Error {
  override readonly name = 'NodeStartError';
  readonly kind: 'unreachable' | 'wrongEngine' | 'portTaken';

  constructor(kind: NodeStartError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Older servers lack signals to running work, by which it is stopped. */
const VERSION_MIN = [1, 7] as const;
const TESTED = '1.7.12';
/** An engine that starts together with its nodes, or is busy, takes a while. */
const ANSWER_MS = 60_000;
const ASK_AGAIN_MS = 500;

const askEngine = async (
  url: string,
  how: string,
  report: EngineNodeOptions['report'],
): Promise<string> => {
  const patience = AbortSignal.timeout(ANSWER_MS);
  for (let tries = 1; ; tries++) {
    const asked = await attempt(async () => {
      const response = await fetch(url, { signal: patience });
      if (response.status >= 500) throw new Error(`status ${response.status}`);
      return response.ok ? await response.text() : '';
    });
    if (asked.kind === 'done') return asked.value;
    const { cause, message } = asked.fault;
    const why = cause instanceof Error ? cause.message : message;
    const said = `The engine does not answer at ${url}: ${why}.`;
    if (patience.aborted) throw new NodeStartError('unreachable', `${said} ${how}`);
    if (tries === 1) report(new Error(`${said} The node waits for it, at most a minute. ${how}`));
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
};

const versionIn = (text: string): string | null => {
  try {
    const { version } = JSON.parse(text) as { readonly version?: unknown };
    return typeof version === 'string' ? version : null;
  } catch {
    return null; // not JSON: another program answers there
  }
};

const isOldOrUnknown = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [majorMin, minorMin] = VERSION_MIN;
  return major !== majorMin || !(minor >= minorMin);
};

/** Throws a NodeStartError if the engine does not answer, is not Restate, or is too old. */
export const checkEngine = async ({
  ingressUrl,
  adminUrl,
  report,
}: EngineNodeOptions): Promise<void> => {
  const health = `${ingressUrl}/restate/health`;
  const noRestate = (url: string, which: string): NodeStartError =>
    new NodeStartError(
      'wrongEngine',
      `What answers at ${url} is not ${which} of a Restate server.`,
    );
  const services = await askEngine(
    health,
    'Start its server, or name the port where it takes calls (8080 by default).',
    report,
  );
  if (!services.includes('services')) throw noRestate(health, 'the port for calls');
  const version = versionIn(
    await askEngine(
      `${adminUrl}/version`,
      'Name the address of its admin port (9070 by default) with --engine-admin.',
      report,
    ),
  );
  if (version === null) throw noRestate(adminUrl, 'the admin port');
  if (isOldOrUnknown(version))
    throw new NodeStartError(
      'wrongEngine',
      `The engine is Restate ${version}; a node needs ${VERSION_MIN.join('.')} or a later ` +
        `1.x (tested with ${TESTED}). Install one of these.`,
    );
};
