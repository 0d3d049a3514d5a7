import { deepJson } from '@pawl/agent/journal/read/hash-state';
import type { Event } from '@pawl/agent/machine/event';
import type { Json, JsonObject } from '@pawl/agent/machine/message';

/**
 * Events without what differs between any two runs: times, usage, random delays, provider metadata, commit hashes, the path
 * of the workspace, and call ids, which are numbered in order. A model's tool input is compared in full, whatever its fields
 * are called.
 */

const IGNORED: ReadonlySet<string> = new Set([
  ...['at', 'firstPieceAt', 'stoppedAt', 'jitter', 'usage', 'metadata'],
]);
/** The parts of a commit that depend on its time and its author, and the folders of its repository. */
const IGNORED_IN_COMMIT: ReadonlySet<string> = new Set(['commit', 'before', 'claim', 'gitFolder']);
/** Fields whose own fields have names that a model or a user chose. */
const FREE: ReadonlySet<string> = new Set(['input', 'patch']);
/** Older journals hold tool input of any depth; deeper parts are compared as text. */
const DEPTH_MAX = 100;

const DURATIONS =
  /(?<![\w.])(?:duration_ms:? \d+(?:\.\d+)?|(?:\d+h ?)?(?:\d+m(?:in)? ?)?\d+(?:\.\d+)?\s?(?:ns|\u00b5s|us|ms|s|secs?|seconds?)\b)/gu;

/** A command's output without the durations in it. */
export const withoutDurations = (output: string): string => output.replace(DURATIONS, '⟨duration⟩');

/** Whether a field is left out of the comparison. */
const isIgnored = (owner: object, name: string): boolean =>
  IGNORED.has(name) ||
  ('kind' in owner && owner.kind === 'commit' && IGNORED_IN_COMMIT.has(name)) ||
  ('subject' in owner && name === 'hash');

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Makes the events of one session comparable, in their order. */
export class ComparableEvents {
  readonly #workspace: RegExp | null;
  readonly #numbers = new Map<string, string>();
  readonly #commands = new Set<string>();

  /** `workspace`: its path, if the sessions have different ones; otherwise null. */
  constructor(workspace: string | null) {
    this.#workspace =
      workspace === null || workspace.length < 2
        ? null
        : new RegExp(`(?<![\\w.-])${escaped(workspace)}(?![\\w-]|\\.\\w)`, 'g');
  }

  next(event: Event): JsonObject {
    if (event.type === 'LlmCompleted')
      for (const { callId, traits } of event.calls)
        if (traits.effect === 'opaque') this.#commands.add(callId);
    return this.#object(event, 0);
  }

  /** Whether the event is output of a command, in which durations don't count. */
  isCommandOutput(event: Event): boolean {
    return (
      (event.type === 'ToolCompleted' || event.type === 'ToolProgress') && this.#commands.has(event.callId)
    );
  }

  text(text: string): string {
    return this.#workspace === null ? text : text.replace(this.#workspace, '⟨workspace⟩');
  }

  #value(value: unknown, depth: number, isFree: boolean): Json {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number' || typeof value === 'boolean') return value;
    if (typeof value !== 'object' || value === null) return null;
    if (depth > DEPTH_MAX) return this.text(deepJson(value));
    if (Array.isArray(value)) return value.map((item: unknown) => this.#value(item, depth + 1, isFree));
    return this.#object(value, depth + 1, isFree);
  }

  #object(owner: object, depth: number, isFree = false): JsonObject {
    const fields: [string, Json][] = [];
    for (const [name, value] of Object.entries(owner)) {
      if (value === undefined || (!isFree && isIgnored(owner, name))) continue;
      if (!isFree && name === 'callId') fields.push([name, this.#number(String(value))]);
      else
        fields.push([isFree ? this.text(name) : name, this.#value(value, depth, isFree || FREE.has(name))]);
    }
    return Object.fromEntries(fields); // also a field named __proto__ becomes a field
  }

  #number(callId: string): string {
    const number = this.#numbers.get(callId) ?? `call ${this.#numbers.size + 1}`;
    this.#numbers.set(callId, number);
    return number;
  }
}
