/** The rules of ATIF 1.7, as Harbor checks them when it reads a trajectory. */

type Fields = Readonly<Record<string, unknown>>;

/** Reports a fault of a value at a place of the document. */
type Check = (value: unknown, place: string, faults: string[]) => void;

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const text: Check = (value, place, faults) => {
  if (typeof value !== 'string') faults.push(`${place} is no text`);
};

const nonEmpty: Check = (value, place, faults) => {
  if (typeof value !== 'string' || value === '') faults.push(`${place} is no text, or empty`);
};

const count: Check = (value, place, faults) => {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    faults.push(`${place} is no count`);
};

const amount: Check = (value, place, faults) => {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
    faults.push(`${place} is no amount`);
};

const flag: Check = (value, place, faults) => {
  if (typeof value !== 'boolean') faults.push(`${place} is no boolean`);
};

const object: Check = (value, place, faults) => {
  if (!isRecord(value)) faults.push(`${place} is no object`);
};

const isoTime: Check = (value, place, faults) => {
  const isTime =
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value));
  if (!isTime) faults.push(`${place} is no time of ISO 8601`);
};

const oneOf =
  (...values: readonly unknown[]): Check =>
  (value, place, faults) => {
    if (!values.includes(value)) faults.push(`${place} is none of ${values.join(', ')}`);
  };

const list =
  (item: Check): Check =>
  (value, place, faults) => {
    if (!Array.isArray(value)) faults.push(`${place} is no list`);
    else for (const [index, one] of value.entries()) item(one, `${place}[${index}]`, faults);
  };

/** An object with these fields and no others; a name that ends in `?` may be missing. */
const record = (fields: Readonly<Record<string, Check>>): Check => {
  const checks = new Map(
    Object.entries(fields).map(([name, check]) => [name.replace('?', ''), check]),
  );
  return (value, place, faults) => {
    if (!isRecord(value)) {
      faults.push(`${place} is no object`);
      return;
    }
    for (const name of Object.keys(value)) {
      const check = checks.get(name);
      if (check === undefined) faults.push(`${place}.${name} is unknown`);
      else check(value[name], `${place}.${name}`, faults);
    }
    for (const name of Object.keys(fields))
      if (!name.endsWith('?') && !(name in value)) faults.push(`${place}.${name} is missing`);
  };
};

const textPart = record({ type: oneOf('text'), text });
const imagePart = record({
  type: oneOf('image'),
  source: record({
    media_type: oneOf('image/jpeg', 'image/png', 'image/gif', 'image/webp'),
    path: nonEmpty,
  }),
});
const part: Check = (value, place, faults) =>
  (isRecord(value) && value.type === 'image' ? imagePart : textPart)(value, place, faults);

const content: Check = (value, place, faults) => {
  if (typeof value !== 'string') list(part)(value, place, faults);
};

const metrics = record({
  'prompt_tokens?': count,
  'completion_tokens?': count,
  'cached_tokens?': count,
  'cost_usd?': amount,
  'extra?': object,
});

const toolCall = record({
  tool_call_id: nonEmpty,
  function_name: nonEmpty,
  arguments: object,
  'extra?': object,
});

const trajectoryReference = record({
  'trajectory_id?': nonEmpty,
  'trajectory_path?': nonEmpty,
  'session_id?': nonEmpty,
});

const result = record({
  'source_call_id?': nonEmpty,
  'content?': content,
  'subagent_trajectory_ref?': list(trajectoryReference),
  'extra?': object,
});

const step = record({
  step_id: count,
  'timestamp?': isoTime,
  source: oneOf('system', 'user', 'agent'),
  message: content,
  'model_name?': nonEmpty,
  'reasoning_effort?': (value, place, faults) => {
    if (typeof value !== 'number') nonEmpty(value, place, faults);
  },
  'reasoning_content?': text,
  'tool_calls?': list(toolCall),
  'metrics?': metrics,
  'observation?': record({ results: list(result) }),
  'is_copied_context?': flag,
  'llm_call_count?': count,
  'extra?': object,
});

const toolDefinition = record({
  type: oneOf('function'),
  function: record({ name: nonEmpty, 'description?': text, 'parameters?': object }),
});

const trajectory = record({
  schema_version: oneOf('ATIF-v1.7'),
  session_id: nonEmpty,
  'trajectory_id?': nonEmpty,
  agent: record({
    name: nonEmpty,
    version: nonEmpty,
    'model_name?': nonEmpty,
    'tool_definitions?': list(toolDefinition),
    'extra?': object,
  }),
  steps: list(step),
  'notes?': text,
  'final_metrics?': record({
    'total_prompt_tokens?': count,
    'total_completion_tokens?': count,
    'total_cached_tokens?': count,
    'total_cost_usd?': amount,
    'total_steps?': count,
    'extra?': object,
  }),
  'continued_trajectory_ref?': nonEmpty,
  'subagent_trajectories?': list(object),
  'extra?': object,
});

const records = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

const AGENT_FIELDS = [
  'model_name',
  'reasoning_effort',
  'reasoning_content',
  'tool_calls',
  'metrics',
] as const;

const stepRules = (one: Fields, index: number, embedded: ReadonlySet<unknown>): string[] => {
  const place = `steps[${index}]`;
  const faults: string[] = [];
  if (one.step_id !== index + 1) faults.push(`${place}.step_id is not ${index + 1}`);
  for (const name of AGENT_FIELDS)
    if (one.source !== 'agent' && name in one)
      faults.push(`${place}.${name} is only for steps of the agent`);
  if (one.llm_call_count === 0 && ('metrics' in one || 'reasoning_content' in one))
    faults.push(`${place} has no model call, but what only a call gives`);
  const calls = records(one.tool_calls).map((call) => call.tool_call_id);
  if (new Set(calls).size !== calls.length) faults.push(`${place} has a call twice`);
  const results = isRecord(one.observation) ? records(one.observation.results) : [];
  for (const { source_call_id: callId, subagent_trajectory_ref: references } of results) {
    if (callId !== undefined && !calls.includes(callId))
      faults.push(`${place} has a result of ${callId}, which is no call of it`);
    for (const { trajectory_id: id, trajectory_path: path } of records(references)) {
      if (id === undefined && path === undefined)
        faults.push(`${place} refers to a trajectory without id and path`);
      if (id !== undefined && path === undefined && !embedded.has(id))
        faults.push(`${place} refers to ${id}, which is not embedded`);
    }
  }
  const { metrics: used } = one;
  if (isRecord(used) && Number(used.cached_tokens ?? 0) > Number(used.prompt_tokens ?? 0))
    faults.push(`${place}.metrics has more cached tokens than prompt tokens`);
  return faults;
};

/** Everything that is wrong with a document; empty for a trajectory that Harbor takes. */
export const trajectoryFaults = (value: unknown): readonly string[] => {
  const faults: string[] = [];
  trajectory(value, 'trajectory', faults);
  if (!isRecord(value)) return faults;
  const steps = records(value.steps);
  if (steps.length === 0) faults.push('trajectory has no step');
  const embedded = records(value.subagent_trajectories);
  const ids = embedded.map((one) => one.trajectory_id);
  if (ids.includes(undefined)) faults.push('an embedded trajectory has no trajectory_id');
  if (new Set(ids).size !== ids.length) faults.push('two embedded trajectories have one id');
  for (const [index, one] of steps.entries()) faults.push(...stepRules(one, index, new Set(ids)));
  const { final_metrics: totals } = value;
  if (isRecord(totals) && totals.total_steps !== undefined && totals.total_steps !== steps.length)
    faults.push('total_steps is not the number of steps');
  for (const one of embedded)
    faults.push(...trajectoryFaults(one).map((fault) => `${String(one.trajectory_id)}: ${fault}`));
  return faults;
};
