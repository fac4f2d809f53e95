// One of a job's two graphs: its drawing, and what is known of the box that is
// looked at.

import { useMemo } from 'preact/hooks';
import { decibels, micros, plural } from '../lib/format';
import { snrOf, timeOf, type NodeFacts } from '../lib/graph/facts';
import type { Look } from '../lib/graph/painter';
import { ScopedGraph, scopesOf, type Box } from '../lib/graph/scopes';
import { sourceOf, type Node } from '../lib/models/node';
import { BoxDetails } from './graph_details';
import { GraphCanvas } from './graph_canvas';

export type Tint = 'kind' | 'time' | 'error';

// UNITS: decibel. At and above the first there is nothing to see; at and below
// the second it is all red.
const CLEAN_SNR = 40;
const LOST_SNR = 5;

/** Colors that can be read under the text of both themes. */
function shade(color: string, amount: number): string {
  if (Number.isNaN(amount)) return '';
  return `rgb(${color} / ${(0.06 + 0.5 * Math.min(1, Math.max(0, amount))).toFixed(3)})`;
}

const RED = '220 60 60';
const BLUE = '40 120 220';
const GREEN = '40 160 90';
const VIOLET = '140 90 200';

function kindColor(op: string): string {
  if (/conv|matmul|gemm|fully_connected|lstm|gru|rnn|attention/i.test(op)) return shade(BLUE, 0.5);
  if (/quant|fake/i.test(op)) return shade(VIOLET, 0.4);
  if (/^(Placeholder|Input|Const|Identity)/.test(op)) return shade(GREEN, 0.35);
  return '';
}

/** Which nodes read each node. */
export function readersOf(nodes: readonly Node[]): Map<string, string[]> {
  const readers = new Map<string, string[]>();
  for (const node of nodes) {
    for (const source of new Set(node.inputs.map(sourceOf))) {
      const list = readers.get(source);
      if (list) list.push(node.name);
      else readers.set(source, [node.name]);
    }
  }
  return readers;
}

interface Props {
  label: string;
  nodes: readonly Node[];
  readers: ReadonlyMap<string, string[]>;
  /** Names that the other graph has. */
  other: ReadonlySet<string>;
  facts: NodeFacts;
  tint: Tint;
  constants: boolean;
  selected: string;
  /** Scopes that are open, in both graphs alike. */
  open: ReadonlySet<string>;
  setOpen: (open: ReadonlySet<string>) => void;
  /** Whether a search found the node. */
  finds: (node: Node) => boolean;
  pick: (name: string) => void;
}

function useLook({ facts, tint, nodes, other }: Props): (box: Box) => Look {
  return useMemo(() => {
    const most = Math.max(0, ...facts.time.values());
    const fill = (box: Box) => {
      if (tint === 'time') return shade(RED, timeOf(box.nodes, facts) / most);
      if (tint === 'error') return shade(RED, (CLEAN_SNR - snrOf(box.nodes, facts)) / (CLEAN_SNR - LOST_SNR));
      return box.node ? kindColor(box.node.op) : '';
    };
    return (box: Box) => ({ fill: fill(box), own: box.nodes.every((node) => !other.has(node.name)) });
  }, [facts, tint, nodes, other]);
}

/** A graph without constants, unless they are wanted or looked at, and with them. */
function useScoped({ nodes, constants, selected }: Props): ScopedGraph {
  const plain = useMemo(() => new ScopedGraph(nodes, false), [nodes]);
  const whole = useMemo(() => new ScopedGraph(nodes, true), [nodes]);
  const hides = useMemo(() => {
    const shown = new Set(plain.nodes);
    return nodes.some((node) => node.name === selected && !shown.has(node));
  }, [plain, selected]);
  return constants || hides ? whole : plain;
}

export function GraphPane(props: Props) {
  const { nodes, facts, pick, selected, open, setOpen } = props;
  const scoped = useScoped(props);
  const graph = useMemo(() => scoped.view(open), [scoped, open]);
  const found = useMemo(() => {
    const set = new Set<number>();
    for (const node of scoped.nodes) if (props.finds(node)) set.add(graph.boxOf.get(node.name)!);
    return set;
  }, [graph, props.finds]);
  const look = useLook(props);
  const box = graph.boxes.find((candidate) => candidate.id === selected);

  const openScope = (which: Box) => {
    const more = new Set([...open, which.id.slice(0, -1)]);
    setOpen(more);
    const inside = scoped.view(more);
    pick(inside.boxes[inside.boxOf.get(which.nodes[0]!.name)!]!.id);
  };
  const closeScope = (scope: string) => {
    setOpen(new Set([...open].filter((other) => other !== scope && !other.startsWith(`${scope}/`))));
    pick(`${scope}/`);
  };
  const describe = (which: Box) => {
    const time = timeOf(which.nodes, facts);
    const snr = snrOf(which.nodes, facts);
    return [`${which.id.replace(/\/$/, '')}, ${which.note}`,
      which.node?.shape, Number.isNaN(time) ? '' : micros(time), Number.isNaN(snr) ? '' : `${decibels(snr)} signal to noise`]
      .filter(Boolean).join(', ');
  };
  return (
    <div class="graph-pane">
      <div class="graph-head">
        <h3>{props.label}</h3>
        <span class="muted small">{plural(nodes.length, 'node')}, {plural(graph.boxes.length, 'box', 'boxes')} drawn</span>
      </div>
      <GraphCanvas label={`${props.label} graph`} graph={graph} look={look} selected={selected} found={found} describe={describe}
        onSelect={(which) => pick(which.id)} onOpen={openScope}
        onClose={(which) => {
          const scope = scopesOf(which.id.replace(/\/$/, '')).filter((one) => scoped.sizes.has(one)).pop();
          if (scope) closeScope(scope);
        }} />
      {box ? (
        <BoxDetails box={box} facts={facts} readers={props.readers} label={`${props.label}: what is selected`} pick={pick}
          scopes={scopesOf(box.id.replace(/\/$/, '')).filter((one) => scoped.sizes.has(one))}
          open={() => openScope(box)} close={closeScope} />
      ) : <p class="muted small">{selected === '' ? 'Select a box to see what it is.' : `${selected.replace(/\/$/, '')} is not in this graph.`}</p>}
    </div>
  );
}
