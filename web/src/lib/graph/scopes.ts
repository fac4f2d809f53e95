// A graph as boxes: nodes of scopes that are open, and one box for each scope
// that is closed. Scopes are what stands before the slashes of names.

import { isConstant, sourceOf, type Node } from '../models/node';

// UNITS: boxes. A graph is opened so far at first.
const FIRST_BOXES = 60;
// A file whose nodes stand the wrong way around shows some constants.
const MOST_ROUNDS = 20;

export interface Box {
  /** The node's name; the scope's with a slash at its end. */
  id: string;
  title: string;
  /** What stands below the title: the op, or how many nodes are inside. */
  note: string;
  /** Undefined for a scope. */
  node?: Node;
  /** Those inside, or the node itself. */
  nodes: Node[];
}

export interface BoxGraph {
  boxes: Box[];
  /** Pairs of indices into `boxes`, each pair once. */
  edges: [number, number][];
  /** The box of each node that is shown, by name. */
  boxOf: Map<string, number>;
}

/** "a/b/c" is in "a" and "a/b". */
export function scopesOf(name: string): string[] {
  const scopes: string[] = [];
  for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) scopes.push(name.slice(0, at));
  return scopes;
}

/** Nodes that are what they are before the model is fed: constants, and what is made of them alone. */
function fixedNodes(nodes: readonly Node[]): Set<string> {
  const fixed = new Set(nodes.filter(isConstant).map((node) => node.name));
  // Files need not have nodes in order; each round finds what the last one missed.
  for (let round = 0, before = -1; round < MOST_ROUNDS && before !== fixed.size; ++round) {
    before = fixed.size;
    for (const node of nodes) {
      if (!node.output && node.inputs.length > 0 && node.inputs.every((input) => fixed.has(sourceOf(input)))) fixed.add(node.name);
    }
  }
  return fixed;
}

export class ScopedGraph {
  readonly nodes: readonly Node[];
  /** How many nodes are in each scope that has more than one. */
  readonly sizes = new Map<string, number>();

  constructor(nodes: readonly Node[], constants: boolean) {
    const fixed = constants ? new Set<string>() : fixedNodes(nodes);
    const shown = nodes.filter((node) => !fixed.has(node.name));
    // A graph of constants alone is shown all the same.
    this.nodes = shown.length > 0 ? shown : nodes;
    for (const node of this.nodes) {
      for (const scope of scopesOf(node.name)) this.sizes.set(scope, (this.sizes.get(scope) ?? 0) + 1);
    }
    for (const [scope, size] of this.sizes) if (size < 2) this.sizes.delete(scope);
  }

  /** The outermost closed scope around a node; "" when all are open. */
  private closedAround(name: string, open: ReadonlySet<string>): string {
    return scopesOf(name).find((scope) => this.sizes.has(scope) && !open.has(scope)) ?? '';
  }

  view(open: ReadonlySet<string>): BoxGraph {
    const boxes: Box[] = [];
    const boxOf = new Map<string, number>();
    const byScope = new Map<string, number>();
    for (const node of this.nodes) {
      const scope = this.closedAround(node.name, open);
      let index = scope === '' ? undefined : byScope.get(scope);
      if (index === undefined) {
        index = boxes.length;
        const place = scope || node.name;
        boxes.push({
          id: scope === '' ? node.name : `${scope}/`,
          title: place.slice(place.lastIndexOf('/') + 1) || place,
          note: scope === '' ? node.op : `${this.sizes.get(scope)} nodes`,
          ...(scope === '' ? { node } : {}),
          nodes: [],
        });
        if (scope !== '') byScope.set(scope, index);
      }
      boxes[index]!.nodes.push(node);
      boxOf.set(node.name, index);
    }
    return { boxes, edges: this.edges(boxes.length, boxOf), boxOf };
  }

  private edges(count: number, boxOf: ReadonlyMap<string, number>): [number, number][] {
    const known = new Set<number>();
    const edges: [number, number][] = [];
    for (const node of this.nodes) {
      const to = boxOf.get(node.name)!;
      for (const input of node.inputs) {
        const from = boxOf.get(sourceOf(input));
        if (from === undefined || from === to || known.has(from * count + to)) continue;
        known.add(from * count + to);
        edges.push([from, to]);
      }
    }
    return edges;
  }

  /** Scopes that are open at first: the largest, while there is room. */
  firstOpen(most = FIRST_BOXES): Set<string> {
    const open = new Set<string>();
    for (;;) {
      const { boxes } = this.view(open);
      const closed = boxes.filter((box) => !box.node).sort((a, b) => b.nodes.length - a.nodes.length);
      const fits = closed.find((box) => {
        const scope = box.id.slice(0, -1);
        const inside = new Set(box.nodes.map((node) => this.closedAround(node.name, new Set([...open, scope])) || node.name));
        return boxes.length - 1 + inside.size <= most || boxes.length === 1;
      });
      if (!fits) return open;
      open.add(fits.id.slice(0, -1));
    }
  }

  allOpen(): Set<string> {
    return new Set(this.sizes.keys());
  }
}
