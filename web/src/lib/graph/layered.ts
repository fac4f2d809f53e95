// Places the boxes of a graph in layers, from what is read to what reads it.
// Long edges get a place in every layer that they cross, so that they go around
// boxes. Takes well under a second for some thousand boxes.

// UNITS: pixels at natural size.
export const BOX_HEIGHT = 38;
const LAYER_STEP = BOX_HEIGHT + 34;
const GAP = 16;
const CROSSING_WIDTH = 4;

// Edges over more layers than this are drawn as they come.
const MOST_SPAN = 60;
const MOST_CROSSINGS = 60_000;
const ORDER_SWEEPS = 8;
const PLACE_SWEEPS = 10;

export interface Layout {
  /** Middles of boxes. */
  x: Float64Array;
  y: Float64Array;
  layer: Int32Array;
  /** Boxes of each layer from left to right. */
  layers: number[][];
  /** Points between the ends of each edge: x, y, x, y, ... */
  bends: number[][];
  width: number;
  height: number;
}

type Edge = readonly [number, number];

/** Edges that would close a circle, by index. */
function backEdges(count: number, edges: readonly Edge[]): Set<number> {
  const out: number[][] = Array.from({ length: count }, () => []);
  edges.forEach(([from], index) => out[from]!.push(index));
  const state = new Uint8Array(count);  // 0: not seen, 1: on the way, 2: done
  const back = new Set<number>();
  const next = new Int32Array(count);
  for (let root = 0; root < count; ++root) {
    if (state[root] !== 0) continue;
    const way = [root];
    state[root] = 1;
    while (way.length > 0) {
      const at = way[way.length - 1]!;
      const index = out[at]![next[at]!++];
      if (index === undefined) {
        state[at] = 2;
        way.pop();
        continue;
      }
      const to = edges[index]![1];
      if (state[to] === 1) back.add(index);
      else if (state[to] === 0) {
        state[to] = 1;
        way.push(to);
      }
    }
  }
  return back;
}

/** The layer of each box: one below the lowest that it reads. */
function layersOf(count: number, edges: readonly Edge[]): Int32Array {
  const layer = new Int32Array(count);
  const waiting = new Int32Array(count);
  const out: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    out[from]!.push(to);
    waiting[to]! += 1;
  }
  const sources = [...waiting.keys()].filter((box) => waiting[box] === 0);
  const ready = [...sources];
  for (let at = 0; at < ready.length; ++at) {
    for (const to of out[ready[at]!]!) {
      layer[to] = Math.max(layer[to]!, layer[ready[at]!]! + 1);
      if (--waiting[to]! === 0) ready.push(to);
    }
  }
  // What reads nothing stands right above its first reader.
  for (const box of sources) {
    if (out[box]!.length > 0) layer[box] = Math.min(...out[box]!.map((to) => layer[to]!)) - 1;
  }
  return layer;
}

/** Boxes and crossings of long edges, layer by layer. */
interface Grid {
  layers: number[][];
  above: number[][];
  below: number[][];
  width: number[];
  /** The crossings of each edge, from its upper end down. */
  crossings: number[][];
}

function makeGrid(widths: readonly number[], edges: readonly Edge[], layer: Int32Array): Grid {
  const grid: Grid = { layers: [], above: [], below: [], width: [], crossings: edges.map(() => []) };
  const add = (at: number, width: number) => {
    const item = grid.width.length;
    grid.width.push(width);
    grid.above.push([]);
    grid.below.push([]);
    (grid.layers[at] ??= []).push(item);
    return item;
  };
  const link = (upper: number, lower: number) => {
    grid.below[upper]!.push(lower);
    grid.above[lower]!.push(upper);
  };
  widths.forEach((width, box) => add(layer[box]!, width));
  let room = MOST_CROSSINGS;
  edges.forEach(([from, to], index) => {
    const [upper, lower] = layer[from]! <= layer[to]! ? [from, to] : [to, from];
    const span = layer[lower]! - layer[upper]!;
    if (span < 1 || span > MOST_SPAN || span > room) return;
    room -= span - 1;
    let last = upper;
    for (let at = layer[upper]! + 1; at < layer[lower]!; ++at) {
      const crossing = add(at, CROSSING_WIDTH);
      grid.crossings[index]!.push(crossing);
      link(last, crossing);
      last = crossing;
    }
    link(last, lower);
  });
  for (let at = 0; at < grid.layers.length; ++at) grid.layers[at] ??= [];
  return grid;
}

function orderOnce(grid: Grid, place: Float64Array, key: Float64Array, down: boolean): void {
  const count = grid.layers.length;
  const links = down ? grid.above : grid.below;
  for (let step = 1; step < count; ++step) {
    const items = grid.layers[down ? step : count - 1 - step]!;
    for (let index = 0; index < items.length; ++index) {
      const beside = links[items[index]!]!;
      let sum = 0;
      for (const other of beside) sum += place[other]!;
      key[items[index]!] = beside.length > 0 ? sum / beside.length : index / items.length;
    }
    items.sort((a, b) => key[a]! - key[b]!);
    items.forEach((item, index) => { place[item] = (index + 0.5) / items.length; });
  }
}

/** Turns each layer around until few edges cross. */
function order(grid: Grid): void {
  // UNITS: fraction of the layer's width.
  const place = new Float64Array(grid.width.length);
  for (const items of grid.layers) items.forEach((item, index) => { place[item] = (index + 0.5) / items.length; });
  const key = new Float64Array(grid.width.length);
  for (let sweep = 0; sweep < ORDER_SWEEPS; ++sweep) orderOnce(grid, place, key, sweep % 2 === 0);
}

/**
 * Positions as close as can be to those wished for (least squares) that keep
 * their order and their distances.
 */
function spread(wished: readonly number[], weights: readonly number[], distance: readonly number[]): number[] {
  // Groups that stand as close as they may, each at the mean of its wishes.
  const groups: { mean: number; weight: number; size: number }[] = [];
  let offset = 0;
  const offsets = wished.map((_, index) => {
    offset += index === 0 ? 0 : distance[index - 1]!;
    return offset;
  });
  wished.forEach((wish, index) => {
    let group = { mean: wish - offsets[index]!, weight: weights[index]!, size: 1 };
    for (let last = groups[groups.length - 1]; last && last.mean > group.mean; last = groups[groups.length - 1]) {
      const weight = last.weight + group.weight;
      group = { mean: (last.mean * last.weight + group.mean * group.weight) / weight, weight, size: last.size + group.size };
      groups.pop();
    }
    groups.push(group);
  });
  const places: number[] = [];
  for (const group of groups) for (let i = 0; i < group.size; ++i) places.push(group.mean + offsets[places.length]!);
  return places;
}

/** Brings everything near to what it is linked with. */
function place(grid: Grid): Float64Array {
  const x = new Float64Array(grid.width.length);
  for (const items of grid.layers) {
    let at = 0;
    for (const item of items) {
      x[item] = at + grid.width[item]! / 2;
      at += grid.width[item]! + GAP;
    }
    for (const item of items) x[item]! -= at / 2;
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS; ++sweep) {
    const down = sweep % 2 === 0;
    for (let step = 0; step < grid.layers.length; ++step) {
      const items = grid.layers[down ? step : grid.layers.length - 1 - step]!;
      const wished = items.map((item) => {
        const beside = (down ? grid.above : grid.below)[item]!;
        const both = beside.length > 0 ? beside : (down ? grid.below : grid.above)[item]!;
        return both.length === 0 ? x[item]! : both.reduce((sum, other) => sum + x[other]!, 0) / both.length;
      });
      const weights = items.map((item) => 1 + Math.max(grid.above[item]!.length, grid.below[item]!.length));
      const distance = items.slice(1).map((item, index) => (grid.width[items[index]!]! + grid.width[item]!) / 2 + GAP);
      spread(wished, weights, distance).forEach((position, index) => { x[items[index]!] = position; });
    }
  }
  return x;
}

/** `widths`: of the boxes, in pixels. `edges`: from what is read to its reader. */
export function layout(widths: readonly number[], edges: readonly Edge[]): Layout {
  const count = widths.length;
  const back = backEdges(count, edges);
  const layer = layersOf(count, edges.filter((_, index) => !back.has(index)));
  const grid = makeGrid(widths, edges, layer);
  order(grid);
  const x = place(grid);
  let left = Infinity;
  let right = -Infinity;
  for (let item = 0; item < x.length; ++item) {
    left = Math.min(left, x[item]! - grid.width[item]! / 2);
    right = Math.max(right, x[item]! + grid.width[item]! / 2);
  }
  for (let item = 0; item < x.length; ++item) x[item]! -= left;
  const middle = (at: number) => at * LAYER_STEP + BOX_HEIGHT / 2;
  const bends = grid.crossings.map((items, index) => {
    const down = layer[edges[index]![0]]! <= layer[edges[index]![1]]!;
    const first = Math.min(layer[edges[index]![0]]!, layer[edges[index]![1]]!) + 1;
    const points = items.map((item, step) => [x[item]!, middle(first + step)]);
    return (down ? points : points.reverse()).flat();
  });
  return {
    x: x.slice(0, count), y: Float64Array.from(layer, middle), layer, bends,
    layers: grid.layers.map((items) => items.filter((item) => item < count)),
    width: Math.max(0, right - left), height: Math.max(0, (grid.layers.length - 1) * LAYER_STEP + BOX_HEIGHT),
  };
}
