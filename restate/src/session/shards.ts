/** The shards of the list of sessions. */

const SHARDS = 16;
export const allShards: readonly string[] = Array.from({ length: SHARDS }, (_, shard) => String(shard));

export const shardOf = (sessionId: string): string => {
  let sum = 0;
  for (const character of sessionId) sum = (sum * 31 + character.charCodeAt(0)) % 65_521;
  return String(sum % SHARDS);
};
