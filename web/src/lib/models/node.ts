// A model's nodes, whatever file they come from.

export interface Node {
  name: string;
  op: string;
  /** What it reads: "node", "node:1", or "^node" for an order without data. */
  inputs: string[];
  /** Element type and shape of its output, "" where the file does not say. */
  type: string;
  shape: string;
  /** The rest of what the file says about it, in words. */
  attributes: [string, string][];
  /** Answers of the model, where the file names them. */
  output?: boolean;
}

// More nodes than this are no graph that somebody looks at.
export const MAX_NODES = 200_000;

/** The node that an input comes from: "^a" and "a:1" from "a". */
export function sourceOf(input: string): string {
  return input.replace(/^\^|:\d+$/g, '');
}

/** Whether a node holds a value that was fixed when the model was made. */
export function isConstant(node: Node): boolean {
  return node.op === 'Const';
}

/** "1×28×28×1", "?" for what is not known. */
export function shapeText(sizes: readonly (number | string)[]): string {
  if (sizes.length === 0) return 'scalar';
  return sizes.map((size) => (typeof size === 'number' && size < 0 ? '?' : String(size))).join('×');
}

// UNITS: values of a list, and characters of a text, that are shown.
const MOST_VALUES = 12;
const MOST_TEXT = 120;

export function listText(values: readonly (string | number)[]): string {
  const more = values.length > MOST_VALUES ? `, … (${values.length})` : '';
  return values.slice(0, MOST_VALUES).join(', ') + more;
}

export function shortText(text: string): string {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text;
}

/** A float of 32 bits in as many digits as it has. */
export function floatText(value: number): string {
  return String(Number(value.toPrecision(7)));
}
