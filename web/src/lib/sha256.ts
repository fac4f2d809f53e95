// SHA-256 piece by piece. The browser's own is missing on pages without TLS
// and wants all bytes at once.

const K = new Uint32Array(64);
const START = new Uint32Array(8);

/** The first 32 bits of the fractional part. */
function fraction(value: number): number {
  return ((value - Math.floor(value)) * 2 ** 32) >>> 0;
}

for (let candidate = 2, found = 0; found < 64; ++candidate) {
  let prime = true;
  for (let divisor = 2; divisor * divisor <= candidate; ++divisor) {
    if (candidate % divisor === 0) prime = false;
  }
  if (!prime) continue;
  K[found] = fraction(Math.cbrt(candidate));
  if (found < 8) START[found] = fraction(Math.sqrt(candidate));
  found += 1;
}

class Sha256 {
  private readonly state = Uint32Array.from(START);
  private readonly words = new Uint32Array(64);
  private readonly block = new Uint8Array(64);
  private held = 0;
  private total = 0;

  update(bytes: Uint8Array): void {
    this.total += bytes.length;
    let at = 0;
    while (at < bytes.length) {
      const taken = Math.min(64 - this.held, bytes.length - at);
      this.block.set(bytes.subarray(at, at + taken), this.held);
      this.held += taken;
      at += taken;
      if (this.held === 64) {
        this.mix(this.block, 0);
        this.held = 0;
      }
      // Whole blocks need no copy.
      while (this.held === 0 && bytes.length - at >= 64) {
        this.mix(bytes, at);
        at += 64;
      }
    }
  }

  finish(): string {
    const bits = this.total * 8;
    this.update(Uint8Array.of(0x80));
    while (this.held !== 56) this.update(Uint8Array.of(0));
    const length = new DataView(new ArrayBuffer(8));
    length.setUint32(0, Math.floor(bits / 2 ** 32));
    length.setUint32(4, bits >>> 0);
    this.update(new Uint8Array(length.buffer));
    return Array.from(this.state, (word) => word.toString(16).padStart(8, '0')).join('');
  }

  private mix(bytes: Uint8Array, at: number): void {
    const w = this.words;
    for (let i = 0; i < 16; ++i) {
      const from = at + 4 * i;
      w[i] = (bytes[from]! << 24) | (bytes[from + 1]! << 16) | (bytes[from + 2]! << 8) | bytes[from + 3]!;
    }
    for (let i = 16; i < 64; ++i) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    const s = this.state;
    let a = s[0]!, b = s[1]!, c = s[2]!, d = s[3]!, e = s[4]!, f = s[5]!, g = s[6]!, h = s[7]!;
    for (let i = 0; i < 64; ++i) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    s[0]! += a; s[1]! += b; s[2]! += c; s[3]! += d;
    s[4]! += e; s[5]! += f; s[6]! += g; s[7]! += h;
  }
}

/** The digest of a file as 64 hexadecimal digits. */
export async function sha256(file: Blob, tell: (done: number) => void, signal: AbortSignal): Promise<string> {
  const digest = new Sha256();
  // Small enough that the page stays fluid in between.
  const piece = 4 << 20;
  for (let at = 0; at < file.size; at += piece) {
    signal.throwIfAborted();
    digest.update(new Uint8Array(await file.slice(at, at + piece).arrayBuffer()));
    tell(Math.min(file.size, at + piece));
  }
  return digest.finish();
}
