// A look into a model file: the graph's nodes without the values of constants.
// The worker decides what a file is; this is for people who want to see that they
// picked the right one, and what became of it.

const MAX_NODES = 200_000;

export interface Outline {
  nodes: number;
  ops: Map<string, number>;
  inputs: { name: string; type: string; shape: string }[];
  outputs: { name: string; op: string }[];
}

const TYPES: Record<number, string> = {
  1: 'float', 2: 'double', 3: 'int32', 4: 'uint8', 6: 'int8', 7: 'string', 9: 'int64', 10: 'bool', 19: 'half',
};
// Nodes that nobody reads and that are no answers either.
const NO_OUTPUTS = new Set(['NoOp', 'Assert', 'SaveV2', 'Const', 'Placeholder', 'Assign']);

class Reader {
  at: number;
  constructor(
    private readonly bytes: Uint8Array,
    from = 0,
    readonly end = bytes.length,
  ) {
    this.at = from;
  }

  get more(): boolean {
    return this.at < this.end;
  }

  number(): number {
    let value = 0;
    for (let shift = 0; shift < 10; ++shift) {
      if (this.at >= this.end) throw new RangeError('cut off');
      const byte = this.bytes[this.at++]!;
      value += (byte & 0x7f) * 2 ** (7 * shift);
      if (byte < 0x80) return value;
    }
    throw new RangeError('a number is too long');
  }

  part(): Reader {
    const size = this.number();
    if (size > this.end - this.at) throw new RangeError('cut off');
    const part = new Reader(this.bytes, this.at, this.at + size);
    this.at += size;
    return part;
  }

  text(): string {
    const part = this.part();
    return new TextDecoder().decode(this.bytes.subarray(part.at, part.end));
  }

  skip(wire: number): void {
    if (wire === 0) this.number();
    else if (wire === 1) this.at += 8;
    else if (wire === 2) this.part();
    else if (wire === 5) this.at += 4;
    else throw new RangeError('not a graph');
    if (this.at > this.end) throw new RangeError('cut off');
  }

  /** Calls `take` with each field; what it does not take is skipped. */
  fields(take: (field: number, wire: number) => boolean): void {
    while (this.more) {
      const key = this.number();
      if (!take(Math.floor(key / 8), key % 8)) this.skip(key % 8);
    }
  }
}

export interface Node {
  name: string;
  op: string;
  inputs: string[];
  type: string;
  shape: string;
}

/** "1×28×28×1", "?" for what is not known. */
function shapeOf(reader: Reader): string {
  const sizes: string[] = [];
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
      size = dimension.number();
      return true;
    });
    // Minus one takes all ten bytes.
    sizes.push(size > 2 ** 53 ? '?' : String(size));
    return true;
  });
  if (unknown) return 'any shape';
  return sizes.length === 0 ? 'scalar' : sizes.join('×');
}

function readAttribute(entry: Reader, node: Node): void {
  let key = '';
  entry.fields((field, wire) => {
    if (field === 1 && wire === 2) {
      key = entry.text();
      return true;
    }
    if (field !== 2 || wire !== 2 || (key !== 'dtype' && key !== 'shape')) return false;
    const value = entry.part();
    value.fields((inner, kind) => {
      if (inner === 6 && kind === 0) {
        node.type = TYPES[value.number()] ?? 'other';
        return true;
      }
      if (inner === 7 && kind === 2) {
        node.shape = shapeOf(value.part());
        return true;
      }
      return false;
    });
    return true;
  });
}

function readNode(reader: Reader): Node {
  const node: Node = { name: '', op: '', inputs: [], type: '', shape: '' };
  reader.fields((field, wire) => {
    if (wire !== 2) return false;
    if (field === 1) node.name = reader.text();
    else if (field === 2) node.op = reader.text();
    else if (field === 3) node.inputs.push(reader.text());
    // Values of constants are not read.
    else if (field === 5 && node.op !== 'Const') readAttribute(reader.part(), node);
    else return false;
    return true;
  });
  return node;
}

/** The nodes of a frozen graph. Undefined for other files. */
export function readNodes(bytes: Uint8Array): Node[] | undefined {
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

/** The node that an input comes from: "^a" and "a:1" from "a". */
export function sourceOf(input: string): string {
  return input.replace(/^\^|:\d+$/g, '');
}

/** What a frozen graph is fed and answers. Undefined for other files. */
export function outline(bytes: Uint8Array): Outline | undefined {
  const nodes = readNodes(bytes);
  if (!nodes) return undefined;
  const read = new Set(nodes.flatMap((node) => node.inputs.map(sourceOf)));
  const ops = new Map<string, number>();
  for (const node of nodes) ops.set(node.op, (ops.get(node.op) ?? 0) + 1);
  return {
    nodes: nodes.length,
    ops,
    inputs: nodes
      .filter((node) => /^Placeholder/.test(node.op) && node.op !== 'PlaceholderWithDefault')
      .map(({ name, type, shape }) => ({ name, type, shape })),
    outputs: nodes
      .filter((node) => !read.has(node.name) && !NO_OUTPUTS.has(node.op))
      .map(({ name, op }) => ({ name, op })),
  };
}
