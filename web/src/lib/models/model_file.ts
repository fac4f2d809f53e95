// A look into a model file. The worker decides what a file is; this is for
// people who want to see that they picked the right one, and what became of it.

import { readGraphDef } from './graphdef';
import { sourceOf, type Node } from './node';
import { readOnnx } from './onnx';
import { readTflite } from './tflite';

export interface Outline {
  nodes: number;
  ops: Map<string, number>;
  inputs: { name: string; type: string; shape: string }[];
  outputs: { name: string; op: string }[];
}

// Nodes that nobody reads and that are no answers either.
const NO_OUTPUTS = new Set(['NoOp', 'Assert', 'SaveV2', 'Const', 'Input', 'Placeholder', 'Assign']);

/**
 * The nodes of a frozen TensorFlow graph, an ONNX or a TensorFlow Lite model.
 * Undefined for other files.
 */
export function readNodes(bytes: Uint8Array): Node[] | undefined {
  return readTflite(bytes) ?? readGraphDef(bytes) ?? readOnnx(bytes);
}

/** What a model is fed and answers. Undefined for files that are none. */
export function outline(bytes: Uint8Array): Outline | undefined {
  const nodes = readNodes(bytes);
  if (!nodes) return undefined;
  const read = new Set(nodes.flatMap((node) => node.inputs.map(sourceOf)));
  const ops = new Map<string, number>();
  for (const node of nodes) ops.set(node.op, (ops.get(node.op) ?? 0) + 1);
  const named = nodes.some((node) => node.output);
  return {
    nodes: nodes.length,
    ops,
    inputs: nodes
      .filter((node) => node.op === 'Input' || (/^Placeholder/.test(node.op) && node.op !== 'PlaceholderWithDefault'))
      .map(({ name, type, shape }) => ({ name, type, shape })),
    outputs: nodes
      .filter((node) => (named ? node.output : !read.has(node.name) && !NO_OUTPUTS.has(node.op)))
      .map(({ name, op }) => ({ name, op })),
  };
}
