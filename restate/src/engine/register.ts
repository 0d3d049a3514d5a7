/** Tells the engine where nodes are. */

/** Registers the services at an address; again with every start of a node, since its services may have changed. */
export const register = async (adminUrl: string, uri: string): Promise<void> => {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri, force: true }),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok) return;
  throw new Error(
    `the engine did not accept the node at ${uri}: ${response.status} ${await response.text()}`,
  );
};
