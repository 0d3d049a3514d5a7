/** Tells the engine where nodes are (`Registration`), and which version takes new calls. */

import { agentMachine, attempt } from 'pawl/engine';
import type { LiveChannel } from './live.js';
import { EVERY_SHARD } from './session-records.js';
import { RECORDS } from './stored-objects.js';

export type NodeAddresses = {
  /** Where the engine takes orders, for example `http://127.0.0.1:9070`. */
  readonly adminUrl: string;
  /** Reaches the shared port of all nodes. */
  readonly sharedUrl: string;
  /** Reaches the own port of this node. */
  readonly ownUrl: string;
};

/** Version of this package, which is released together with Pawl under the same number. */
export const version = '0.1.0';

/** Names this version in addresses. */
export const DEPLOYMENT = `pawl-${version}-machine-${agentMachine.version}`;

/**
 * The address under which the engine knows the services of this version. It makes a deployment of
 * its own of each version, so the engine continues each call where it began, and an update never
 * replaces a deployment.
 */
export const deploymentAddress = (uri: string): string => `${uri.replace(/\/$/, '')}/${DEPLOYMENT}`;

/** The deployment is registered already: the node was started again. */
const CONFLICT = 409;

/**
 * Registers the services of this version at an address. Replaces nothing. `isForced`: calls that
 * begin from now on come here, also if a later version was registered meanwhile.
 */
export const register = async (adminUrl: string, uri: string, isForced = false): Promise<void> => {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: deploymentAddress(uri), force: isForced }),
    signal: AbortSignal.timeout(30_000),
  });
  if (response.ok || response.status === CONFLICT) return;
  throw new Error(
    `the engine did not accept the node at ${uri}: ${response.status} ${await response.text()}`,
  );
};

type Described = {
  readonly deployment_id?: string;
  readonly uri?: string;
  readonly handlers?: readonly { readonly name: string }[];
};

/** What the engine knows of a service or a deployment; null if it does not know it. */
const askAdmin = async (adminUrl: string, path: string): Promise<Described | null> => {
  const response = await fetch(`${adminUrl}/${path}`, { signal: AbortSignal.timeout(30_000) });
  if (response.status === 404) return null;
  if (!response.ok)
    throw new Error(`the engine did not answer: ${response.status} ${await response.text()}`);
  return (await response.json()) as Described; // as the engine writes it
};

/** The address that new calls of sessions go to. */
const sessionsAddress = async (adminUrl: string): Promise<string | undefined> => {
  const sessions = await askAdmin(adminUrl, 'services/Session');
  if (sessions?.deployment_id === undefined) return undefined;
  return (await askAdmin(adminUrl, `deployments/${sessions.deployment_id}`))?.uri;
};

/**
 * If the version in charge puts records by session only, they are sorted by key once more. Called
 * before another version is in charge, so that none is missing in a list. An empty state of
 * `EVERY_SHARD` is one without the mark of `sortOnce`, which the next question for a list calls.
 */
const sortAgain = async (adminUrl: string): Promise<void> => {
  const handlers = (await askAdmin(adminUrl, `services/${RECORDS}`))?.handlers;
  if (handlers === undefined || handlers.some(({ name }) => name === 'sortOnce')) return;
  const response = await fetch(`${adminUrl}/services/${RECORDS}/state`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ object_key: EVERY_SHARD, new_state: {} }),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`the engine did not answer: ${await response.text()}`);
};

/** Registers what any node can do at the address of all nodes, and puts this version in charge. */
export const registerShared = async (adminUrl: string, sharedUrl: string): Promise<void> => {
  await sortAgain(adminUrl);
  await register(adminUrl, sharedUrl);
  const isLatest = (await sessionsAddress(adminUrl)) === deploymentAddress(sharedUrl);
  if (!isLatest) await register(adminUrl, sharedUrl, true);
};

/** Registers a node, and what any node can do when no node of another version answers. */
export class Registration {
  readonly #live: LiveChannel;
  readonly #report: (fault: Error) => void;
  #addresses: NodeAddresses | null = null;
  #shared: Promise<void> | null = null;
  #again: NodeJS.Timeout | undefined;

  constructor(live: LiveChannel, report: (fault: Error) => void) {
    this.#live = live;
    this.#report = report;
  }

  async begin(addresses: NodeAddresses): Promise<void> {
    await register(addresses.adminUrl, addresses.ownUrl);
    this.#addresses = addresses;
    if (!this.#isAgreed) return;
    this.#shared ??= registerShared(addresses.adminUrl, addresses.sharedUrl);
    await this.#shared;
  }

  /** A node has come or gone. */
  async look(): Promise<void> {
    if (!this.#isAgreed) this.#shared = null;
    if (!this.#isAgreed || this.#addresses === null) return;
    const { adminUrl, sharedUrl } = this.#addresses;
    this.#shared ??= registerShared(adminUrl, sharedUrl);
    const shared = this.#shared;
    const registered = await attempt(() => shared);
    if (registered.kind === 'done' || this.#shared !== shared) return; // reported by another look
    this.#report(registered.fault);
    this.#shared = null;
    clearTimeout(this.#again);
    this.#again = setTimeout(() => void this.look(), REGISTER_AGAIN_MS).unref();
  }

  end(): void {
    this.#addresses = null;
  }

  get #isAgreed(): boolean {
    return this.#live.nodes().every(({ deployment }) => deployment === DEPLOYMENT);
  }
}

const REGISTER_AGAIN_MS = 2_000;
