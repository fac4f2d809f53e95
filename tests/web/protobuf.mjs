// Protobuf by hand, for small models that tests make up.

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return bytes;
}

/** Pairs [field, value], where a number is a varint and a list is a message. */
export function encode(fields) {
  return fields.flatMap(([field, value]) => {
    if (typeof value === 'number') return [...varint(field * 8), ...varint(value)];
    const bytes = typeof value === 'string' ? [...Buffer.from(value)] : encode(value);
    return [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
  });
}

/** A node of a GraphDef with the attribute T or dtype, and perhaps a shape. */
export function graphNode(name, op, inputs, shape) {
  const attribute = (key, value) => [5, [[1, key], [2, value]]];
  const attributes = shape
    ? [attribute('dtype', [[6, 1]]), attribute('shape', [[7, shape.map((size) => [2, [[1, size]]])]])]
    : [attribute('T', [[6, 1]])];
  return [1, [[1, name], [2, op], ...inputs.map((input) => [3, input]), ...attributes]];
}
