// Names of a model's classes, where a job's labels have them.

import type { Job } from './types';

// UNITS: bytes of a labels file that is looked into.
const MOST_LABELS = 1_000_000;

/** A class's name by its number; undefined where it has none. */
export type ClassNames = (number: number) => string | undefined;

const unnamed: ClassNames = () => undefined;

type Source = NonNullable<NonNullable<Job['spec']>['calibration']>['sources'][number];

function sourceWith(job: Job, role: Source['role']): Source | undefined {
  return job.spec?.calibration?.sources.find((source) => source.role === role);
}

/** The labels file that may have names; undefined when the job has none. */
export function labelsFileOf(job: Job): { sha256: string; path: string } | undefined {
  const file = sourceWith(job, 'LABELS')?.files[0];
  if (!file?.digest || Number(file.digest.size_bytes) > MOST_LABELS || /\.(npy|npz|tfrecords?|record|gz)$/i.test(file.path)) return undefined;
  return { sha256: file.digest.sha256, path: file.path };
}

/** The folders that the samples lie in; "" for those that lie in none. */
function foldersOf(job: Job): Set<string> {
  return new Set((sourceWith(job, 'SAMPLES')?.files ?? []).map(({ path }) => path.slice(0, Math.max(0, path.indexOf('/')))));
}

/** "3:name" and "name" are the class "name". */
function nameOf(line: string): string {
  return line.replace(/^\s*-?\d+\s*:/, '').trim();
}

function bytewise(a: string, b: string): number {
  const [left, right] = [new TextEncoder().encode(a), new TextEncoder().encode(b)];
  for (let at = 0; at < Math.min(left.length, right.length); ++at) {
    if (left[at] !== right[at]) return left[at]! - right[at]!;
  }
  return left.length - right.length;
}

/**
 * Names from the text of the labels file, one a line in the model's order, or
 * from the samples' folders where there is no file. They are taken as the worker
 * takes them, and only where it measured accuracy with them.
 */
export function classNamesOf(job: Job, labels: string | undefined): ClassNames {
  if (!job.report?.float_accuracy) return unnamed;
  const folders = foldersOf(job);
  if (sourceWith(job, 'LABELS')) {
    const lines = (labels ?? '').split('\n').map((line) => line.trim()).filter((line) => line !== '').map(nameOf);
    if (!lines.some((line) => folders.has(line))) return unnamed;
    const offset = job.spec?.calibration?.labels_offset ?? 0;
    return (number) => lines[number - offset];
  }
  const sorted = [...folders].sort(bytewise);
  // Folders that are numbers are the classes themselves.
  if (folders.has('') || sorted.every((folder) => /^\d+$/.test(folder))) return unnamed;
  return (number) => sorted[number];
}
