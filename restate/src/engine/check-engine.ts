/** Whether the engine can be used, before a node starts: it answers, it is Restate, and it is new enough. */

/** Why a node can't start. `unreachable`: the engine or a node does not answer; `wrongEngine`: another program, or too old. */
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
const ANSWER_MS = 5_000;

const ask = async (url: string, how: string): Promise<string> => {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    return response.ok ? await response.text() : '';
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new NodeStartError('unreachable', `The engine does not answer at ${url}: ${why}. ${how}`);
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

/** Throws a NodeStartError. */
export const checkEngine = async (ingressUrl: string, adminUrl: string): Promise<void> => {
  const health = `${ingressUrl}/restate/health`;
  const noRestate = (url: string, which: string): NodeStartError =>
    new NodeStartError('wrongEngine', `What answers at ${url} is not ${which} of a Restate server.`);
  const services = await ask(
    health,
    'Start its server, or name the port where it takes calls (8080 by default).',
  );
  if (!services.includes('services')) throw noRestate(health, 'the port for calls');
  const version = versionIn(
    await ask(
      `${adminUrl}/version`,
      'Name the address of its admin port (9070 by default) with --engine-admin.',
    ),
  );
  if (version === null) throw noRestate(adminUrl, 'the admin port');
  if (isOldOrUnknown(version))
    throw new NodeStartError(
      'wrongEngine',
      `The engine is Restate ${version}; a node needs ${VERSION_MIN.join('.')} or a later 1.x (tested with ${TESTED}). Install one of these.`,
    );
};
