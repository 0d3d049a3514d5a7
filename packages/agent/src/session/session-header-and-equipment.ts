import type { Settings } from '../machine/settings.js';
import type { Prices } from '../machine/values/usage.js';
import type { Clock } from '../ports/clock.js';
import type { Blobs, FrozenPrompt, Header, StartedBy } from '../ports/journal.js';
import type { ToolDeclaration } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session-input-output.js';
import type { Tool } from '../ports/tool.js';
import type { Equipment, SessionDependencies } from './dependency-types.js';
import { NO_REDACTOR, redactJobs } from './tools/redaction.js';

/** The parts from which each runtime makes its sessions. */

const declare = ({ name, description, inputSchema }: Tool): ToolDeclaration => ({
  name,
  description,
  inputSchema,
});

/** The fixed part of every request of the session. */
export const freezePrompt = (instructions: string, tools: readonly Tool[]): FrozenPrompt => ({
  instructions,
  tools: JSON.stringify(tools.map(declare)),
});

type BegunSession = {
  readonly sessionId: string;
  readonly createdAt: number;
  readonly settings: Settings;
  readonly startedBy: StartedBy | undefined;
  readonly machine: string;
  readonly prices: Prices | null;
};

/** Stores the prompt, then makes the header that names it: no header is ever durable without what it names. */
export const beginHeader = async (
  { sessionId, createdAt, settings, startedBy, machine, prices }: BegunSession,
  frozen: FrozenPrompt,
  blobs: Blobs,
): Promise<Header> => {
  const [instructions, tools] = await Promise.all([blobs.put(frozen.instructions), blobs.put(frozen.tools)]);
  return {
    version: 1,
    sessionId,
    createdAt,
    workspace: settings.workspace,
    parent: null,
    ...(startedBy === undefined ? {} : { startedBy }),
    machine,
    settings,
    instructions,
    tools,
    prices,
  };
};

/** The dependencies of a session in the form that its performers use. */
export const gatherEquipment = (
  needs: SessionDependencies,
  { instructions, tools }: FrozenPrompt,
  world: {
    readonly clock: Clock;
    random(): number;
    readonly stoppingPolicy: StoppingPolicy | null;
  },
): Equipment => {
  const redactor = needs.redactor ?? NO_REDACTOR;
  return {
    ...needs,
    ...world,
    redactor,
    jobs: redactJobs(redactor, needs.jobs),
    tools: new Map(needs.tools.map((tool) => [tool.name, tool])),
    instructions,
    declarations: JSON.parse(tools) as readonly ToolDeclaration[], // found by its hash, so it is what freezePrompt wrote
  };
};
