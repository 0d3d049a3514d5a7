import type { ChangeSummary, FileLeft } from '@pawl/agent/machine/event';

export type RewindRequest = {
  readonly at: number;
  readonly files?: boolean;
  readonly conversation?: boolean;
  readonly refs?: boolean;
  readonly force?: boolean;
};
export type RewindPoint = {
  readonly seq: number;
  readonly kind: 'turn' | 'calls';
  readonly at: number;
  readonly title: string;
  readonly text?: string;
  readonly changes: ChangeSummary | null;
};
export type RewindPlan = {
  readonly messages: number;
  readonly changes: ChangeSummary;
  readonly left: readonly FileLeft[];
};
export type RewindReport = RewindPlan & { readonly to: number; readonly text: string };
export type RewindSession = {
  timeline(): Promise<readonly RewindPoint[]>;
  planRewind(request: RewindRequest): Promise<RewindPlan>;
  rewind(request: RewindRequest): Promise<RewindReport>;
  redo(): Promise<RewindReport>;
  undoCompaction(): Promise<RewindReport>;
  checkpoint(by: 'user', fromMs: number, toMs: number): Promise<void>;
};
