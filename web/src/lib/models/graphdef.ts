// Nodes of a frozen TensorFlow graph. Values of constants are not read.

import { floatText, listText, MAX_NODES, shapeText, shortText, type Node } from './node';
import { Reader } from './wire';

const TYPES: Record<number, string> = {
  1: 'float', 2: 'double', 3: 'int32', 4: 'uint8', 5: 'int16', 6: 'int8', 7: 'string', 8: 'complex64', 9: 'int64',
  10: 'bool', 11: 'qint8', 12: 'quint8', 13: 'qint32', 14: 'bfloat16', 15: 'qint16', 16: 'quint16', 17: 'uint16',
  19: 'half', 20: 'resource', 22: 'uint32', 23: 'uint64',
};

function typeName(number: number): string {
  return TYPES[number] ?? `type ${number}`;
}

function readShape(reader: Reader): string {
  const sizes: number[] = [];
  let unknown = false;
  reader.fields((field, wire) => {
    if (field === 3 && wire === 0) {
      unknown = reader.number() !== 0;
      return true;
    }
    if (field !== 2 || wire !== 2) return false;
    const dimension = reader.part();
    let size = 0;
    dimension.fields((inner, kind) => {
      if (inner !== 1 || kind !== 0) return false;
      size = dimension.signed();
      return true;
    });
    sizes.push(size);
    return true;
  });
  return unknown ? 'any shape' : shapeText(sizes);
}

/** A tensor's type and shape. */
function readTensor(reader: Reader): { type: string; shape: string } {
  const tensor = { type: '', shape: 'scalar' };
  reader.fields((field, wire) => {
    if (field === 1 && wire === 0) tensor.type = typeName(reader.number());
    else if (field === 2 && wire === 2) tensor.shape = readShape(reader.part());
    else return false;
    return true;
  });
  return tensor;
}

function readList(reader: Reader): string {
  const values: (string | number)[] = [];
  const numbers: number[] = [];
  const types: number[] = [];
  reader.fields((field, wire) => {
    if (field === 2 && wire === 2) values.push(shortText(reader.text()));
    else if (field === 3) return reader.numbers(wire, numbers);
    else if (field === 4) return reader.floats(wire, numbers);
    else if (field === 5) return reader.numbers(wire, numbers);
    else if (field === 6) return reader.numbers(wire, types);
    else if (field === 7 && wire === 2) values.push(readShape(reader.part()));
    else return false;
    return true;
  });
  return `[${listText([...values, ...numbers, ...types.map(typeName)])}]`;
}

interface Value {
  text: string;
  type?: string;
  shape?: string;
}

function readValue(reader: Reader): Value {
  const value: Value = { text: '' };
  reader.fields((field, wire) => {
    if (field === 1 && wire === 2) value.text = readList(reader.part());
    else if (field === 2 && wire === 2) value.text = shortText(reader.text());
    else if (field === 3 && wire === 0) value.text = String(reader.signed());
    else if (field === 4 && wire === 5) value.text = floatText(reader.float());
    else if (field === 5 && wire === 0) value.text = reader.number() ? 'true' : 'false';
    else if (field === 6 && wire === 0) value.text = value.type = typeName(reader.number());
    else if (field === 7 && wire === 2) value.text = value.shape = readShape(reader.part());
    else if (field === 8 && wire === 2) {
      const tensor = readTensor(reader.part());
      value.text = `${tensor.type} ${tensor.shape}`;
      value.shape = tensor.shape;
    } else return false;
    return true;
  });
  return value;
}

function readAttribute(entry: Reader, node: Node): void {
  let key = '';
  let value: Value = { text: '' };
  entry.fields((field, wire) => {
    if (wire !== 2) return false;
    if (field === 1) key = entry.text();
    else if (field === 2) value = readValue(entry.part());
    else return false;
    return true;
  });
  if (key === 'dtype' || key === 'T') node.type = value.type ?? node.type;
  if (key === 'shape' || key === 'value') node.shape = value.shape ?? node.shape;
  if (key === '_output_shapes') node.shape = node.shape || value.text.slice(1, -1);
  node.attributes.push([key, value.text]);
}

function readNode(reader: Reader): Node {
  const node: Node = { name: '', op: '', inputs: [], type: '', shape: '', attributes: [] };
  reader.fields((field, wire) => {
    if (wire !== 2) return false;
    if (field === 1) node.name = reader.text();
    else if (field === 2) node.op = reader.text();
    else if (field === 3) node.inputs.push(reader.text());
    else if (field === 4) {
      const device = reader.text();
      if (device) node.attributes.push(['device', device]);
    } else if (field === 5) readAttribute(reader.part(), node);
    else return false;
    return true;
  });
  node.attributes.sort(([a], [b]) => (a < b ? -1 : 1));
  return node;
}

/** The nodes of a frozen graph. Undefined for other files. */
export function readGraphDef(bytes: Uint8Array): Node[] | undefined {
  const nodes: Node[] = [];
  try {
    const reader = new Reader(bytes);
    reader.fields((field, wire) => {
      if (field !== 1 || wire !== 2) return false;
      if (nodes.length >= MAX_NODES) throw new RangeError('too many nodes');
      nodes.push(readNode(reader.part()));
      return true;
    });
  } catch {
    return undefined;
  }
  const sound = nodes.length > 0 && nodes.every((node) => node.name !== '' && node.op !== '');
  return sound ? nodes : undefined;
}
