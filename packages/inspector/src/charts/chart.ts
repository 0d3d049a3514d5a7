/** Charts of machines as laid out by `npm run update`: where boxes and arrows lie. Plain data, drawn by the page. */

/** `onward`: work goes on. `stopped`: a turn ends early. `closed`: the session ends. */
export type ArrowKind = 'onward' | 'stopped' | 'closed';

/** `passed`: the name of a state on the way; else the cause of the arrow. */
export type LabelLine = { readonly text: string; readonly kind: 'cause' | 'passed' };

/** All ways from one state to another of one kind. */
export type ChartArrow = {
  readonly from: string;
  readonly to: string;
  readonly kind: ArrowKind;
  readonly label: readonly LabelLine[];
};

export type ChartBox = {
  readonly name: string;
  /** Lines of words below the name; may be empty. */
  readonly lines: readonly string[];
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
};

export type ChartLine = ChartArrow & {
  readonly points: readonly (readonly [x: number, y: number])[];
  /** The upper left corner of the label; null for an arrow without one. */
  readonly at: readonly [x: number, y: number] | null;
};

export type Chart = {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly ChartBox[];
  readonly lines: readonly ChartLine[];
};

/** `resting`: only the states in which the agent waits. `whole`: every state of the table. The others are projections. */
export type ChartName = 'resting' | 'whole' | 'minimal' | 'minimal-head' | 'loom' | 'sketch' | 'tools';

export const NAME_PIXELS = 14;
export const NOTE_PIXELS = 11.5;
export const LABEL_PIXELS = 11;
export const NOTE_LINE_PIXELS = 15;
export const LABEL_LINE_PIXELS = 14;

const CORNER_PIXELS = 7;
const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** An arrow as the `d` of an SVG path, with rounded corners. */
export const pathOf = (points: ChartLine['points']): string =>
  points
    .map(([x, y], index) => {
      const before = points[index - 1];
      const after = points[index + 1];
      if (before === undefined) return `M${rounded(x)} ${rounded(y)}`;
      if (after === undefined) return `L${rounded(x)} ${rounded(y)}`;
      const towards = ([otherX, otherY]: readonly [number, number]): string => {
        const length = Math.hypot(otherX - x, otherY - y);
        const share = Math.min(CORNER_PIXELS, length / 2) / (length || 1);
        return `${rounded(x + (otherX - x) * share)} ${rounded(y + (otherY - y) * share)}`;
      };
      return `L${towards(before)}Q${rounded(x)} ${rounded(y)} ${towards(after)}`;
    })
    .join('');
