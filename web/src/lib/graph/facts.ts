// What a job says about the nodes of its graphs, by name.

import { num } from '../format';
import { sourceOf, type Node } from '../models/node';
import type { Job } from '../types';

export interface NodeFacts {
  /** UNITS: decibel. */
  snr: Map<string, number>;
  error: Map<string, number>;
  range: Map<string, [number, number]>;
  /** UNITS: microseconds a run, of the slowest nodes. */
  time: Map<string, number>;
}

export type Side = 'before' | 'after';

export function factsOf(job: Job, side: Side): NodeFacts {
  const facts: NodeFacts = { snr: new Map(), error: new Map(), range: new Map(), time: new Map() };
  for (const layer of [...job.report?.outputs_compared ?? [], ...job.report?.layers_compared ?? []]) {
    facts.snr.set(sourceOf(layer.name), num(layer.snr_db));
    facts.error.set(sourceOf(layer.name), num(layer.max_abs_error));
  }
  for (const seen of job.report?.calibration?.observed ?? []) facts.range.set(sourceOf(seen.node), [num(seen.min), num(seen.max)]);
  const measured = job.measurements.find((one) => (one.variant === 'float') === (side === 'before') && one.slowest_nodes.length > 0);
  for (const node of measured?.slowest_nodes ?? []) facts.time.set(node.node, node.total_us);
  return facts;
}

/** UNITS: microseconds of all that is known; NaN when nothing is. */
export function timeOf(nodes: readonly Node[], facts: NodeFacts): number {
  const known = nodes.flatMap((node) => facts.time.get(node.name) ?? []);
  return known.length === 0 ? NaN : known.reduce((sum, time) => sum + time, 0);
}

/** UNITS: decibel of the worst; NaN when none was compared. */
export function snrOf(nodes: readonly Node[], facts: NodeFacts): number {
  const known = nodes.flatMap((node) => facts.snr.get(node.name) ?? []).filter((snr) => !Number.isNaN(snr));
  return known.length === 0 ? NaN : Math.min(...known);
}
