// The graph before and after: drawn side by side, and as lists of ops and of
// nodes. Read from the model files.

import { useMemo, useState } from 'preact/hooks';
import { ApiError, blob } from '../lib/api';
import { bytes, decibels, micros, num, plural, span } from '../lib/format';
import { factsOf, type NodeFacts, type Side } from '../lib/graph/facts';
import { ScopedGraph, scopesOf } from '../lib/graph/scopes';
import { readNodes } from '../lib/models/model_file';
import { sourceOf, type Node } from '../lib/models/node';
import { usePoll } from '../lib/poll';
import { setParameters, type Route } from '../lib/route';
import type { Job, Report } from '../lib/types';
import { GraphPane, readersOf, type Tint } from './graph_pane';
import { Table } from './table';
import { Card, Empty, Loaded, Search, Select, Switch } from './ui';

// UNITS: bytes of both files together; a tab of a browser should survive them.
const MOST_BYTES = 600e6;

interface Graphs {
  before: Node[] | undefined;
  after: Node[] | undefined;
}

async function load(sha256: string, signal: AbortSignal): Promise<Node[] | undefined> {
  return readNodes(new Uint8Array(await (await blob(sha256, signal)).arrayBuffer()));
}

/** A short list of nodes, each a way to itself. */
function Names({ names, pick }: { names: readonly string[]; pick: (name: string) => void }) {
  return (
    <>
      {names.slice(0, 3).map((name) => (
        <button key={name} type="button" class="plain mono" title={name} onClick={() => pick(sourceOf(name))}>{name}</button>
      ))}
      {names.length > 3 && <span class="muted small">{names.length - 3} more</span>}
    </>
  );
}

function OpCounts({ before, after }: { before: readonly Node[]; after: readonly Node[] }) {
  const rows = useMemo(() => {
    const counts = new Map<string, [number, number]>();
    const add = (nodes: readonly Node[], side: 0 | 1) => {
      for (const node of nodes) {
        const count = counts.get(node.op) ?? [0, 0];
        count[side] += 1;
        counts.set(node.op, count);
      }
    };
    add(before, 0);
    add(after, 1);
    return [...counts].map(([op, [old, now]]) => ({ op, old, now })).sort((a, b) => Math.max(b.old, b.now) - Math.max(a.old, a.now));
  }, [before, after]);
  return (
    <Card title="Nodes by op" note={`${plural(before.length, 'node')} before, ${after.length.toLocaleString('en')} after`} flush>
      <Table label="Nodes by op" rows={rows} id={(row) => row.op} columns={[
        { title: 'Op', key: (row) => row.op, show: (row) => <span class="mono">{row.op}</span> },
        { title: 'Before', number: true, key: (row) => row.old, show: (row) => row.old || '–' },
        { title: 'After', number: true, key: (row) => row.now, show: (row) => row.now || '–' },
        { title: 'Change', number: true, key: (row) => row.now - row.old, show: (row) => {
          const change = row.now - row.old;
          return change === 0 ? <span class="muted">0</span> : <span class="strong">{change > 0 ? `+${change}` : `−${-change}`}</span>;
        } },
      ]} />
    </Card>
  );
}

function NodesCard({ nodes, readers, facts, finds, side, pick, setSide }: {
  nodes: readonly Node[];
  readers: ReadonlyMap<string, string[]>;
  facts: NodeFacts;
  finds: ((node: Node) => boolean) | undefined;
  side: Side;
  pick: (name: string) => void;
  setSide: (side: Side) => void;
}) {
  const shown = useMemo(() => (finds ? nodes.filter(finds) : nodes), [nodes, finds]);
  return (
    <Card title="Nodes" note={plural(shown.length, 'node')} flush>
      <div class="filters" style={{ padding: '0 18px' }}>
        <Switch label="Nodes of which graph" value={side} onChange={setSide}
          options={[{ value: 'before', label: 'Original' }, { value: 'after', label: 'Optimized' }]} />
      </div>
      {shown.length === 0 ? <Empty icon="models" title="No node fits" /> : (
        <Table label="Nodes" className="nodes" rows={shown} rowHeight={45} id={(node) => node.name} columns={[
          { title: 'Node', key: (node) => node.name, show: (node) => <Names names={[node.name]} pick={pick} /> },
          { title: 'Op', width: '190px', key: (node) => node.op, show: (node) => node.op },
          { title: 'Reads', width: '26%', wide: true, show: (node) => <Names names={node.inputs} pick={pick} /> },
          { title: 'Read by', width: '20%', wide: true, show: (node) => <Names names={readers.get(node.name) ?? []} pick={pick} /> },
          { title: 'Signal to noise', number: true, wide: true, width: '120px', key: (node) => -(facts.snr.get(node.name) ?? -1e9), show: (node) => decibels(facts.snr.get(node.name) ?? NaN) },
          { title: 'Time', number: true, width: '90px', key: (node) => facts.time.get(node.name) ?? 0, show: (node) => micros(facts.time.get(node.name) ?? NaN) },
        ]} />
      )}
    </Card>
  );
}

/** What each transform did, in order; a step leads to the nodes of its ops. */
function StepsCard({ report, find }: { report: Report; find: (op: string) => void }) {
  const steps = report.transforms.filter((step) => step.changed);
  if (steps.length === 0) return null;
  return (
    <Card title="Step by step" note={`${steps.length} of ${report.transforms.length} transforms changed the graph`}>
      <ol class="steps">
        {steps.map((step, index) => (
          <li key={index}>
            <span class="mono">{step.name}</span>{' '}
            <span class="muted small">{num(step.nodes_before)} → {plural(num(step.nodes_after), 'node')}, {span(step.seconds)}</span>
            <div class="small">
              {step.op_changes.map((change, at) => (
                <span key={at} class="step-change">
                  {num(change.nodes)}{' '}
                  {change.from && <button type="button" class="plain mono" onClick={() => find(change.from)}>{change.from}</button>}
                  {change.from && change.to ? ' became ' : change.from ? ' went' : ''}
                  {change.to && <button type="button" class="plain mono" onClick={() => find(change.to)}>{change.to}</button>}
                  {!change.from && ' came'}
                </span>
              ))}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  );
}

/** "both", or one graph alone. */
type Shown = 'both' | Side;

function useFinds(text: string): ((node: Node) => boolean) | undefined {
  return useMemo(() => {
    const wanted = text.toLowerCase();
    return wanted === '' ? undefined : (node: Node) => node.name.toLowerCase().includes(wanted) || node.op.toLowerCase() === wanted;
  }, [text]);
}

const nothing = () => false;

/** How both graphs are looked at: what is selected, and which scopes are open. */
function useLookAt(before: readonly Node[], after: readonly Node[], route: Route) {
  const selected = route.parameters.get('at') ?? '';
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set([
    ...new ScopedGraph(before, false).firstOpen(), ...new ScopedGraph(after, false).firstOpen(), ...scopesOf(selected.replace(/\/$/, ''))]));
  const pick = (name: string) => {
    const more = scopesOf(name.replace(/\/$/, ''));
    setOpen((now) => (more.every((scope) => now.has(scope)) ? now : new Set([...now, ...more])));
    setParameters(route, { at: name });
  };
  return { selected, open, setOpen, pick };
}

/** A graph with what is looked up in it again and again. */
function useOneGraph(job: Job, nodes: readonly Node[], side: Side) {
  return useMemo(() => ({
    nodes, names: new Set(nodes.map((node) => node.name)), readers: readersOf(nodes), facts: factsOf(job, side),
  }), [nodes, job, side]);
}

function GraphsView({ job, before, after, route }: { job: Job; before: Node[]; after: Node[]; route: Route }) {
  const text = route.parameters.get('node') ?? '';
  const shown = (route.parameters.get('graphs') ?? 'both') as Shown;
  const side = (route.parameters.get('side') ?? 'after') as Side;
  const [tint, setTint] = useState<Tint>('kind');
  const [constants, setConstants] = useState(false);
  const { selected, open, setOpen, pick } = useLookAt(before, after, route);
  const finds = useFinds(text);
  const left = useOneGraph(job, before, 'before');
  const right = useOneGraph(job, after, 'after');
  const common = { tint, constants, selected, open, setOpen, finds: finds ?? nothing, pick };
  const all = () => setOpen(new Set([...new ScopedGraph(before, true).allOpen(), ...new ScopedGraph(after, true).allOpen()]));
  const list = side === 'before' ? left : right;
  return (
    <>
      <div class="filters">
        <Search main label="Node or op" value={text} onChange={(value) => setParameters(route, { node: value })} />
        <Switch label="Which graph" value={shown} onChange={(value) => setParameters(route, { graphs: value })}
          options={[{ value: 'both', label: 'Both' }, { value: 'before', label: 'Original' }, { value: 'after', label: 'Optimized' }]} />
        <Select label="Color by" value={tint} onChange={(value) => setTint(value as Tint)} options={[
          { value: 'kind', label: 'Kind of op' }, { value: 'time', label: 'Time' }, { value: 'error', label: 'Signal to noise' }]} />
        <label class="check"><input type="checkbox" checked={constants} onChange={(event) => setConstants(event.currentTarget.checked)} />Constants</label>
        <button type="button" onClick={all}>Open all</button>
        <button type="button" onClick={() => { setOpen(new Set()); setParameters(route, { at: '' }); }}>Close all</button>
      </div>
      <Card title="Graph" note="Dashed: only in this graph. Double: a scope, opened by a double click">
        <div class={`graphs ${shown === 'both' ? 'two' : ''}`}>
          {shown !== 'after' && <GraphPane label="Original" nodes={before} readers={left.readers} facts={left.facts} other={right.names} {...common} />}
          {shown !== 'before' && <GraphPane label="Optimized" nodes={after} readers={right.readers} facts={right.facts} other={left.names} {...common} />}
        </div>
      </Card>
      {job.report && <StepsCard report={job.report} find={(op) => setParameters(route, { node: op })} />}
      <OpCounts before={before} after={after} />
      <NodesCard nodes={list.nodes} readers={list.readers} facts={list.facts} finds={finds} side={side} pick={pick}
        setSide={(value) => setParameters(route, { side: value })} />
    </>
  );
}

export function GraphPart({ job, optimized, route }: { job: Job; optimized: string; route: Route }) {
  const model = job.spec?.model?.digest;
  const size = num(model?.size_bytes) + num(job.report?.size_after?.file_bytes);
  const graphs = usePoll(async (signal): Promise<Graphs> => {
    if (size > MOST_BYTES) throw new ApiError(400, 'OUT_OF_RANGE', `the files have ${bytes(size)}, too much for a browser; optctl graph summarize reads them`);
    const [before, after] = await Promise.all([load(model?.sha256 ?? '', signal), load(optimized, signal)]);
    return { before, after };
  }, 0, [model?.sha256, optimized]);
  return (
    <Loaded data={graphs.data} error={graphs.error} retry={graphs.refresh}>
      {({ before, after }) => (before && after ? <GraphsView job={job} before={before} after={after} route={route} /> : (
        <Empty icon="models" title="This browser cannot read the graph">It reads frozen TensorFlow graphs, ONNX and TensorFlow Lite models.</Empty>
      ))}
    </Loaded>
  );
}
