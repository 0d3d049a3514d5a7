import { agentMachine } from 'pawl/engine';

/** Tells the engine where nodes are. */

/** Of this package; it is released together with Pawl, under the same number. */
export const version = '0.1.0';

/**
 * The address under which the engine knows the services of this version. The path means nothing to a node: it makes a
 * deployment of its own of each version. So the engine goes on with calls that have begun where they began, and an
 * update never replaces a deployment.
 */
export const deploymentAddress = (uri: string): string =>
  `${uri.replace(/\/$/, '')}/pawl-${version}-machine-${agentMachine.version}`;

/** The deployment is registered already: the node was started again. */
const CONFLICT = 409;

/** Registers the services of this version at an address. Replaces nothing. */
export const register = async (adminUrl: string, uri: string): Promise<void> => {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: deploymentAddress(uri), force: false }),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok || response.status === CONFLICT) return;
  throw new Error(
    `the engine did not accept the node at ${uri}: ${response.status} ${await response.text()}`,
  );
};
