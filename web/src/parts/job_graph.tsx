// The graph before and after: nodes by op side by side, and every node with what
// it reads, what reads it, its error and its time. Read from the model files.

import { useMemo } from 'preact/hooks';
import { ApiError, blob } from '../lib/api';
import { bytes, decibels, micros, num, plural } from '../lib/format';
import { readNodes, sourceOf, type Node } from '../lib/graphdef';
import { usePoll } from '../lib/poll';
import { setParameters, type Route } from '../lib/route';
import type { Job } from '../lib/types';
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

/** Scopes with their counts of nodes, the outermost part of names. */
function scopesOf(nodes: readonly Node[]): { value: string; label: string }[] {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const slash = node.name.indexOf('/');
    if (slash > 0) counts.set(node.name.slice(0, slash), (counts.get(node.name.slice(0, slash)) ?? 0) + 1);
  }
  return [{ value: '', label: 'All scopes' }, ...[...counts].map(([scope, count]) => ({ value: scope, label: `${scope} (${count})` }))];
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

/** A short list of nodes, each a way to itself. */
function Names({ names, pick }: { names: readonly string[]; pick: (name: string) => void }) {
  return (
    <>
      {names.slice(0, 3).map((name) => (
        <button key={name} type="button" class="plain mono" onClick={() => pick(sourceOf(name))}>{name}</button>
      ))}
      {names.length > 3 && <span class="muted small">{names.length - 3} more</span>}
    </>
  );
}

function NodesCard({ nodes, job, route, side }: { nodes: readonly Node[]; job: Job; route: Route; side: Side }) {
  const text = (route.parameters.get('node') ?? '').toLowerCase();
  const scope = route.parameters.get('scope') ?? '';
  const readers = useMemo(() => {
    const all = new Map<string, string[]>();
    for (const node of nodes) {
      for (const input of node.inputs) {
        const source = sourceOf(input);
        all.set(source, [...all.get(source) ?? [], node.name]);
      }
    }
    return all;
  }, [nodes]);
  const snr = new Map((job.report?.layers_compared ?? []).map((layer) => [layer.name, num(layer.snr_db)]));
  const measured = job.measurements.find((one) => (one.variant === 'float') === (side === 'before'));
  const time = new Map((measured?.slowest_nodes ?? []).map((node) => [node.node, node.total_us]));
  const shown = useMemo(() => nodes.filter((node) =>
    (scope === '' || node.name.startsWith(`${scope}/`)) &&
    (text === '' || node.name.toLowerCase().includes(text) || node.op.toLowerCase() === text)), [nodes, scope, text]);
  const pick = (name: string) => setParameters(route, { node: name, scope: '' });
  return (
    <>
      <div class="filters">
        <Search main label="Node or op" value={route.parameters.get('node') ?? ''} onChange={(value) => setParameters(route, { node: value })} />
        <Select label="Scope" value={scope} options={scopesOf(nodes)} onChange={(value) => setParameters(route, { scope: value })} />
      </div>
      {shown.length === 0 ? <Empty icon="models" title="No node fits" /> : (
        <Card title="Nodes" note={plural(shown.length, 'node')} flush>
          <Table label="Nodes" className="nodes" rows={shown} rowHeight={45} id={(node) => node.name} columns={[
            { title: 'Node', key: (node) => node.name, show: (node) => <span class="mono" title={node.name}>{node.name}</span> },
            { title: 'Op', width: '190px', key: (node) => node.op, show: (node) => node.op },
            { title: 'Reads', width: '26%', wide: true, show: (node) => <Names names={node.inputs} pick={pick} /> },
            { title: 'Read by', width: '20%', wide: true, show: (node) => <Names names={readers.get(node.name) ?? []} pick={pick} /> },
            { title: 'Signal to noise', number: true, wide: true, width: '120px', key: (node) => -(snr.get(node.name) ?? -1e9), show: (node) => decibels(snr.get(node.name) ?? NaN) },
            { title: 'Time', number: true, width: '90px', key: (node) => time.get(node.name) ?? 0, show: (node) => micros(time.get(node.name) ?? NaN) },
          ]} />
        </Card>
      )}
    </>
  );
}

type Side = 'before' | 'after';

export function GraphPart({ job, optimized, route }: { job: Job; optimized: string; route: Route }) {
  const model = job.spec?.model?.digest;
  const size = num(model?.size_bytes) + num(job.report?.size_after?.file_bytes);
  const graphs = usePoll(async (signal): Promise<Graphs> => {
    if (size > MOST_BYTES) throw new ApiError(400, 'OUT_OF_RANGE', `the files have ${bytes(size)}, too much for a browser; optctl graph summarize reads them`);
    const [before, after] = await Promise.all([load(model?.sha256 ?? '', signal), load(optimized, signal)]);
    return { before, after };
  }, 0, [model?.sha256, optimized]);
  const side = (route.parameters.get('side') ?? 'after') as Side;
  return (
    <Loaded data={graphs.data} error={graphs.error} retry={graphs.refresh}>
      {({ before, after }) => {
        const nodes = side === 'before' ? before : after;
        if (!before || !after || !nodes) {
          return <Empty icon="models" title="This browser cannot read the graph">It reads frozen TensorFlow graphs.</Empty>;
        }
        return (
          <>
            <div class="filters">
              <Switch label="Which graph" value={side} onChange={(value) => setParameters(route, { side: value })}
                options={[{ value: 'after', label: 'Optimized', count: after.length }, { value: 'before', label: 'Original', count: before.length }]} />
            </div>
            <OpCounts before={before} after={after} />
            <NodesCard nodes={nodes} job={job} route={route} side={side} />
          </>
        );
      }}
    </Loaded>
  );
}
