// Nodes of an ONNX model. A node is called after the first tensor that it makes,
// as the optimized graph calls it. Values of initializers are not read.

import { floatText, listText, MAX_NODES, shapeText, shortText, type Node } from './node';
import { Reader } from './wire';

const TYPES: Record<number, string> = {
  1: 'float', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 8: 'string', 9: 'bool',
  10: 'half', 11: 'double', 12: 'uint32', 13: 'uint64', 16: 'bfloat16', 21: 'uint4', 22: 'int4',
};

interface Tensor {
  name: string;
  type: string;
  shape: string;
}

function typeName(number: number): string {
  return TYPES[number] ?? `type ${number}`;
}

function readShape(reader: Reader): string {
  const sizes: (number | string)[] = [];
  reader.fields((field, wire) => {
    if (field !== 1 || wire !== 2) return false;
    const dimension = reader.part();
    let size: number | string = -1;
    dimension.fields((inner, kind) => {
      if (inner === 1 && kind === 0) size = dimension.signed();
      else if (inner === 2 && kind === 2) size = dimension.text();
      else return false;
      return true;
    });
    sizes.push(size);
    return true;
  });
  return shapeText(sizes);
}

function readTensorType(reader: Reader, tensor: Tensor): void {
  reader.fields((field, wire) => {
    if (field === 1 && wire === 0) tensor.type = typeName(reader.number());
    else if (field === 2 && wire === 2) tensor.shape = readShape(reader.part());
    else return false;
    return true;
  });
}

/** An input, an output, or what is known of a tensor between them. */
function readValueInfo(reader: Reader): Tensor {
  const tensor = { name: '', type: '', shape: '' };
  reader.fields((field, wire) => {
    if (wire !== 2) return false;
    if (field === 1) tensor.name = reader.text();
    else if (field === 2) {
      const type = reader.part();
      type.fields((inner, kind) => {
        if (inner !== 1 || kind !== 2) return false;
        readTensorType(type.part(), tensor);
        return true;
      });
    } else return false;
    return true;
  });
  return tensor;
}

function readInitializer(reader: Reader): Tensor {
  const tensor = { name: '', type: '', shape: '' };
  const sizes: number[] = [];
  reader.fields((field, wire) => {
    if (field === 1) return reader.numbers(wire, sizes);
    if (field === 2 && wire === 0) tensor.type = typeName(reader.number());
    else if (field === 8 && wire === 2) tensor.name = reader.text();
    else return false;
    return true;
  });
  return { ...tensor, shape: shapeText(sizes) };
}

function readAttribute(reader: Reader): [string, string] {
  let name = '';
  let text = '';
  const numbers: number[] = [];
  const strings: string[] = [];
  reader.fields((field, wire) => {
    if (field === 1 && wire === 2) name = reader.text();
    else if (field === 2 && wire === 5) text = floatText(reader.float());
    else if (field === 3 && wire === 0) text = String(reader.signed());
    else if (field === 4 && wire === 2) text = shortText(reader.text());
    else if (field === 5 && wire === 2) {
      const tensor = readInitializer(reader.part());
      text = `${tensor.type} ${tensor.shape}`;
    } else if (field === 6 && wire === 2) {
      text = `a graph of ${readGraph(reader.part()).length} nodes`;
    } else if (field === 7) return reader.floats(wire, numbers);
    else if (field === 8) return reader.numbers(wire, numbers);
    else if (field === 9 && wire === 2) strings.push(shortText(reader.text()));
    else return false;
    return true;
  });
  return [name, text || `[${listText([...numbers, ...strings])}]`];
}

interface RawNode {
  inputs: string[];
  outputs: string[];
  name: string;
  op: string;
  domain: string;
  attributes: [string, string][];
}

function readNode(reader: Reader): RawNode {
  const node: RawNode = { inputs: [], outputs: [], name: '', op: '', domain: '', attributes: [] };
  reader.fields((field, wire) => {
    if (wire !== 2) return false;
    if (field === 1) node.inputs.push(reader.text());
    else if (field === 2) node.outputs.push(reader.text());
    else if (field === 3) node.name = reader.text();
    else if (field === 4) node.op = reader.text();
    else if (field === 5) node.attributes.push(readAttribute(reader.part()));
    else if (field === 7) node.domain = reader.text();
    else return false;
    return true;
  });
  return node;
}

function readGraph(reader: Reader): Node[] {
  const raw: RawNode[] = [];
  const constants: Tensor[] = [];
  const inputs: Tensor[] = [];
  const outputs: Tensor[] = [];
  const known = new Map<string, Tensor>();
  reader.fields((field, wire) => {
    if (wire !== 2) return false;
    if (raw.length + constants.length >= MAX_NODES) throw new RangeError('too many nodes');
    if (field === 1) raw.push(readNode(reader.part()));
    else if (field === 5) constants.push(readInitializer(reader.part()));
    else if (field === 11) inputs.push(readValueInfo(reader.part()));
    else if (field === 12) outputs.push(readValueInfo(reader.part()));
    else if (field === 13) {
      const tensor = readValueInfo(reader.part());
      known.set(tensor.name, tensor);
    } else return false;
    return true;
  });
  for (const tensor of outputs) known.set(tensor.name, tensor);
  const answers = new Set(outputs.map((tensor) => tensor.name));
  const fixed = new Set(constants.map((tensor) => tensor.name));
  const plain = (tensor: Tensor, op: string): Node => ({ ...tensor, op, inputs: [], attributes: [] });
  const nodes = [
    // Old models list initializers among the inputs.
    ...inputs.filter((tensor) => !fixed.has(tensor.name)).map((tensor) => plain(tensor, 'Input')),
    ...constants.map((tensor) => plain(tensor, 'Const')),
  ];
  // The node and the port that a tensor comes from.
  const sources = new Map<string, string>();
  for (const node of raw) node.outputs.forEach((name, port) => sources.set(name, port === 0 ? name : `${node.outputs[0]}:${port}`));
  for (const node of raw) {
    const name = node.outputs[0] || node.name;
    const made = known.get(name);
    nodes.push({
      name, op: node.op,
      inputs: node.inputs.filter((input) => input !== '').map((input) => sources.get(input) ?? input),
      type: made?.type ?? '', shape: made?.shape ?? '',
      attributes: [
        ...(node.name && node.name !== name ? [['name', node.name] as [string, string]] : []),
        ...(node.domain ? [['domain', node.domain] as [string, string]] : []),
        ...node.attributes],
      output: node.outputs.some((output) => answers.has(output)),
    });
  }
  return nodes;
}

/** The nodes of an ONNX model. Undefined for other files. */
export function readOnnx(bytes: Uint8Array): Node[] | undefined {
  let nodes: Node[] = [];
  try {
    const reader = new Reader(bytes);
    let version = 0;
    reader.fields((field, wire) => {
      if (field === 1 && wire === 0) version = reader.number();
      else if (field === 7 && wire === 2 && version > 0) nodes = readGraph(reader.part());
      else return false;
      return true;
    });
  } catch {
    return undefined;
  }
  const sound = nodes.length > 0 && nodes.every((node) => node.name !== '' && node.op !== '');
  return sound ? nodes : undefined;
}
