// Whether a job came out better or worse than another one of its kind.

import { times } from './format';
import type { Tone } from './job';
import type { Comparison, Job } from './types';

// UNITS: points of top-1. Less is chance on a few hundred samples.
const LEAST_POINTS = 0.5;
// Files that differ by less have the same size for everybody.
const LEAST_RATIO = 0.01;

export interface Change {
  tone: Tone;
  /** Goes on with "the one before": "Better than". */
  headline: string;
  reason: string;
}

interface Part {
  better: boolean;
  text: string;
}

function speedParts(comparison: Comparison | undefined): Part[] {
  return (comparison?.rows ?? [])
    .filter((row) => row.variant !== 'float' && row.speedup > 0 && row.significant &&
      !row.a?.measurement?.noisy && !row.b?.measurement?.noisy)
    .map((row) => ({
      better: row.speedup > 1,
      text: `${times(row.speedup > 1 ? row.speedup : 1 / row.speedup)} ${row.speedup > 1 ? 'faster' : 'slower'} on ${row.device}`,
    }));
}

function top1Of(job: Job): number {
  const accuracy = job.report?.optimized_accuracy;
  return accuracy && Number(accuracy.samples) > 0 ? accuracy.top1 : NaN;
}

function accuracyPart(before: Job, after: Job): Part[] {
  const points = top1Of(after) - top1Of(before);
  if (!(Math.abs(points) >= LEAST_POINTS)) return [];
  return [{ better: points > 0, text: `${Math.abs(points).toFixed(1)} points of top-1 ${points > 0 ? 'gained' : 'lost'}` }];
}

function sizePart(before: Job, after: Job): Part[] {
  const ratio = Number(after.report?.size_after?.file_bytes) / Number(before.report?.size_after?.file_bytes);
  if (!(Math.abs(ratio - 1) >= LEAST_RATIO) || !Number.isFinite(ratio)) return [];
  return [{ better: ratio < 1, text: `${times(ratio)} the size` }];
}

/** What `after` is next to `before`; undefined where both failed. */
export function changeOf(before: Job, after: Job, comparison: Comparison | undefined): Change | undefined {
  const failed = (job: Job) => job.state === 'FAILED';
  if (failed(after) && failed(before)) return undefined;
  if (failed(after)) return { tone: 'bad', headline: 'Worse than', reason: 'that one passed' };
  if (failed(before)) return { tone: 'good', headline: 'Better than', reason: 'that one failed' };
  const parts = [...speedParts(comparison), ...accuracyPart(before, after), ...sizePart(before, after)];
  const better = parts.some((part) => part.better);
  const worse = parts.some((part) => !part.better);
  const reason = parts.slice(0, 3).map((part) => part.text).join(', ');
  if (better && worse) return { tone: 'unsure', headline: 'Better and worse than', reason };
  if (better) return { tone: 'good', headline: 'Better than', reason };
  if (worse) return { tone: 'bad', headline: 'Worse than', reason };
  return { tone: 'calm', headline: 'No clear difference from', reason: '' };
}
