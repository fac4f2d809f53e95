// What is known about one node, or about all nodes of a scope.

import { decibels, digits, micros, plural } from '../lib/format';
import { snrOf, timeOf, type NodeFacts } from '../lib/graph/facts';
import type { Box } from '../lib/graph/scopes';
import { sourceOf, type Node } from '../lib/models/node';

// UNITS: names of a list that are shown at first.
const MOST_NAMES = 24;

function Names({ title, names, pick }: { title: string; names: readonly string[]; pick: (name: string) => void }) {
  if (names.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <div class="names">
        {names.slice(0, MOST_NAMES).map((name) => (
          <button key={name} type="button" class="plain mono" onClick={() => pick(sourceOf(name))}>{name}</button>
        ))}
        {names.length > MOST_NAMES && <span class="muted small">{names.length - MOST_NAMES} more</span>}
      </div>
    </div>
  );
}

function Facts({ box, facts }: { box: Box; facts: NodeFacts }) {
  const name = box.node?.name ?? '';
  const range = facts.range.get(name);
  const error = facts.error.get(name);
  const snr = snrOf(box.nodes, facts);
  const time = timeOf(box.nodes, facts);
  const rows: [string, string][] = [];
  if (box.node?.type) rows.push(['Type', box.node.type]);
  if (box.node?.shape) rows.push(['Shape', box.node.shape]);
  if (range) rows.push(['Range seen', `${digits(range[0])} to ${digits(range[1])}`]);
  if (!Number.isNaN(snr)) rows.push([box.node ? 'Signal to noise' : 'Worst signal to noise', decibels(snr)]);
  if (error !== undefined) rows.push(['Largest error', digits(error)]);
  if (!Number.isNaN(time)) rows.push(['Time', micros(time)]);
  return (
    <dl class="facts-row">
      {rows.map(([title, text]) => <div key={title}><dt>{title}</dt><dd class="break">{text}</dd></div>)}
    </dl>
  );
}

function OpsInside({ nodes }: { nodes: readonly Node[] }) {
  const counts = new Map<string, number>();
  for (const node of nodes) counts.set(node.op, (counts.get(node.op) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return (
    <div>
      <h3>Ops inside</h3>
      <p class="small">{sorted.slice(0, MOST_NAMES).map(([op, count]) => `${count} ${op}`).join(', ')}</p>
    </div>
  );
}

export function BoxDetails(props: {
  box: Box;
  facts: NodeFacts;
  readers: ReadonlyMap<string, string[]>;
  label: string;
  /** Those around it, the outermost first. */
  scopes: readonly string[];
  pick: (name: string) => void;
  open: () => void;
  close: (scope: string) => void;
}) {
  const { box, facts, readers, label, pick, open, close } = props;
  const place = box.id.replace(/\/$/, '');
  return (
    <section class="details" aria-label={label}>
      <h3 class="mono break">{place}</h3>
      <p class="muted">{box.node ? box.node.op : plural(box.nodes.length, 'node')}</p>
      <Facts box={box} facts={facts} />
      {box.node ? (
        <>
          <Names title="Reads" names={box.node.inputs} pick={pick} />
          <Names title="Read by" names={readers.get(box.node.name) ?? []} pick={pick} />
          {box.node.attributes.length > 0 && (
            <table class="attributes">
              <caption>Attributes</caption>
              <tbody>
                {box.node.attributes.map(([key, text]) => (
                  <tr key={key}><th scope="row">{key}</th><td class="mono break">{text}</td></tr>
                ))}
              </tbody>
            </table>
          )}
        </>
      ) : <OpsInside nodes={box.nodes} />}
      <div class="names">
        {!box.node && <button type="button" onClick={open}>Open</button>}
        {props.scopes.map((scope) => (
          <button key={scope} type="button" class="plain" onClick={() => close(scope)}>Close {scope}</button>
        ))}
      </div>
    </section>
  );
}
