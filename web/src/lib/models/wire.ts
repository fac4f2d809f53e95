// Reads protobuf's wire format, field by field, without a schema. Every size is
// checked before it is used.

export class Reader {
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

  get size(): number {
    return this.end - this.at;
  }

  /** A varint. Above 2^53 digits are lost; those of negative numbers are. */
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

  /** A varint that may be negative, as int64 is written. */
  signed(): number {
    const from = this.at;
    const value = this.number();
    if (value < 2 ** 53) return value;
    this.at = from;
    let bits = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++]!;
      bits |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return Number(BigInt.asIntN(64, bits));
  }

  float(): number {
    if (this.at + 4 > this.end) throw new RangeError('cut off');
    const value = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 4).getFloat32(0, true);
    this.at += 4;
    return value;
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

  /** Repeated numbers, packed or one by one. */
  numbers(wire: number, into: number[]): boolean {
    if (wire === 0) into.push(this.signed());
    else if (wire === 2) for (const part = this.part(); part.more;) into.push(part.signed());
    else return false;
    return true;
  }

  floats(wire: number, into: number[]): boolean {
    if (wire === 5) into.push(this.float());
    else if (wire === 2) for (const part = this.part(); part.more;) into.push(part.float());
    else return false;
    return true;
  }

  skip(wire: number): void {
    if (wire === 0) this.number();
    else if (wire === 1) this.at += 8;
    else if (wire === 2) this.part();
    else if (wire === 5) this.at += 4;
    else throw new RangeError('not a message');
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
