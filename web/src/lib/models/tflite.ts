// Nodes of a TensorFlow Lite model: the main subgraph's operators, called after
// the first tensor that each makes. Buffers are not read. Every offset is
// checked before it is used.

import { floatText, listText, MAX_NODES, shapeText, type Node } from './node';

const TYPES = [
  'float', 'half', 'int32', 'uint8', 'int64', 'string', 'bool', 'int16', 'complex64', 'int8', 'double', 'complex128',
  'uint64', 'resource', 'variant', 'uint32', 'uint16', 'int4', 'bfloat16', 'int2', 'uint4'];

// By number, from 0.
const OPS = `ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG
SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE
MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL
COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT`.split(/\s+/);

const IDENTIFIER = 0x334c4654;  // "TFL3"

/** A table of a flatbuffer. A DataView refuses what is beyond its end. */
class FlatTable {
  constructor(
    private readonly view: DataView,
    private readonly at: number,
  ) {}

  /** Where the field is; 0 where it is absent. */
  private place(field: number): number {
    const list = this.at - this.view.getInt32(this.at, true);
    const slot = 4 + 2 * field;
    if (slot + 2 > this.view.getUint16(list, true)) return 0;
    const offset = this.view.getUint16(list + slot, true);
    return offset === 0 ? 0 : this.at + offset;
  }

  int32(field: number): number {
    const place = this.place(field);
    return place === 0 ? 0 : this.view.getInt32(place, true);
  }

  int8(field: number): number {
    const place = this.place(field);
    return place === 0 ? 0 : this.view.getInt8(place);
  }

  private follow(place: number): number {
    return place + this.view.getUint32(place, true);
  }

  table(field: number): FlatTable | undefined {
    const place = this.place(field);
    return place === 0 ? undefined : new FlatTable(this.view, this.follow(place));
  }

  /** Where a vector's elements begin, and how many of `size` bytes there are. */
  private vector(field: number, size: number): [number, number] {
    const place = this.place(field);
    if (place === 0) return [0, 0];
    const start = this.follow(place);
    const count = this.view.getUint32(start, true);
    if (count > (this.view.byteLength - start - 4) / size) throw new RangeError('a list is too long');
    return [start + 4, count];
  }

  text(field: number): string {
    const [start, count] = this.vector(field, 1);
    return new TextDecoder().decode(new Uint8Array(this.view.buffer, this.view.byteOffset + start, count));
  }

  ints(field: number): number[] {
    const [start, count] = this.vector(field, 4);
    return Array.from({ length: count }, (_, index) => this.view.getInt32(start + 4 * index, true));
  }

  floats(field: number): number[] {
    const [start, count] = this.vector(field, 4);
    return Array.from({ length: count }, (_, index) => this.view.getFloat32(start + 4 * index, true));
  }

  longs(field: number): number[] {
    const [start, count] = this.vector(field, 8);
    return Array.from({ length: count }, (_, index) => Number(this.view.getBigInt64(start + 8 * index, true)));
  }

  tables(field: number): FlatTable[] {
    const [start, count] = this.vector(field, 4);
    if (count > MAX_NODES) throw new RangeError('too many nodes');
    return Array.from({ length: count }, (_, index) => new FlatTable(this.view, this.follow(start + 4 * index)));
  }
}

interface Tensor {
  name: string;
  type: string;
  shape: string;
  attributes: [string, string][];
}

function readTensor(table: FlatTable, index: number): Tensor {
  const attributes: [string, string][] = [];
  const quantization = table.table(4);
  const scales = quantization?.floats(2) ?? [];
  if (quantization && scales.length > 0) {
    attributes.push(['scale', listText(scales.map(floatText))], ['zero_point', listText(quantization.longs(3))]);
  }
  const signature = table.ints(7);
  const type = table.int8(1);
  return {
    name: table.text(3) || `tensor ${index}`, type: TYPES[type] ?? `type ${type}`,
    shape: shapeText(signature.length > 0 ? signature : table.ints(0)), attributes,
  };
}

function opName(code: FlatTable | undefined): string {
  if (!code) return 'unknown';
  // The old field has one byte; what does not fit is in the new one.
  const number = Math.max(code.int8(0), code.int32(3));
  return OPS[number] === 'CUSTOM' ? code.text(1) || 'CUSTOM' : OPS[number] ?? `op ${number}`;
}

function read(view: DataView): Node[] {
  const model = new FlatTable(view, view.getUint32(0, true));
  const codes = model.tables(1);
  const graph = model.tables(2)[0];
  if (!graph) return [];
  const tensors = graph.tables(0).map(readTensor);
  const operators = graph.tables(3);
  const answers = new Set(graph.ints(2));
  const makers = new Map<number, string>();
  for (const operator of operators) {
    const outputs = operator.ints(2);
    outputs.forEach((tensor, port) => makers.set(tensor, `${tensors[outputs[0]!]?.name}${port > 0 ? `:${port}` : ''}`));
  }
  const nodes: Node[] = [];
  const read = new Set(operators.flatMap((operator) => operator.ints(1)));
  const inputs = new Set(graph.ints(1));
  tensors.forEach((tensor, index) => {
    if (makers.has(index) || !(read.has(index) || inputs.has(index))) return;
    nodes.push({ ...tensor, op: inputs.has(index) ? 'Input' : 'Const', inputs: [] });
  });
  for (const operator of operators) {
    const outputs = operator.ints(2);
    const tensor = tensors[outputs[0] ?? -1];
    if (!tensor) continue;
    nodes.push({
      ...tensor, op: opName(codes[operator.int32(0)]),
      // A number below 0 stands for an input that is left out.
      inputs: operator.ints(1).flatMap((input) => makers.get(input) ?? tensors[input]?.name ?? []),
      output: outputs.some((output) => answers.has(output)),
    });
  }
  return nodes;
}

/** The nodes of a TensorFlow Lite model. Undefined for other files. */
export function readTflite(bytes: Uint8Array): Node[] | undefined {
  try {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (view.getUint32(4, true) !== IDENTIFIER) return undefined;
    const nodes = read(view);
    return nodes.length > 0 ? nodes : undefined;
  } catch {
    return undefined;
  }
}
