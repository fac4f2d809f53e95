// The files of other formats that a job wrote: whether each says the same as the
// graph, and what stands in the way of those that could not be written.

import { blobAddress } from '../lib/api';
import { bytes, digits, num } from '../lib/format';
import type { Tone } from '../lib/job';
import type { ExportedModel, Job } from '../lib/types';
import { Card, Pill } from './ui';

// UNITS: fraction of an output's largest magnitude; the worker warns above it.
const LARGE_DIFFERENCE = 0.1;
// What rounding in another order of additions makes.
const SMALL_DIFFERENCE = 1e-3;
const MOST_PROBLEMS = 6;

const FORMATS: Record<string, string> = { PB: 'TensorFlow', ONNX: 'ONNX', TFLITE: 'TensorFlow Lite' };

/** What reading the file back and running it told. */
export function verdictOf(made: ExportedModel): { tone: Tone; text: string } {
  if (made.artifact === '') return { tone: 'bad', text: 'cannot be written' };
  if (made.relative_difference === undefined) return { tone: 'unsure', text: 'not compared' };
  // Infinity comes as a string.
  const difference = num(made.relative_difference);
  if (difference === 0) return { tone: 'good', text: 'same answers' };
  const text = `answers differ by ${digits(100 * difference, 2)} %`;
  if (!(difference <= LARGE_DIFFERENCE)) return { tone: 'bad', text };
  return difference <= SMALL_DIFFERENCE ? { tone: 'good', text: 'same answers' } : { tone: 'unsure', text };
}

function Exported({ made, job }: { made: ExportedModel; job: Job }) {
  const verdict = verdictOf(made);
  const artifact = job.artifacts.find((one) => one.name === made.artifact);
  const problems = made.problems.slice(0, MOST_PROBLEMS);
  return (
    <li>
      <div class="export-head">
        <b>{FORMATS[made.format] ?? made.format}</b>
        <Pill tone={verdict.tone}>{verdict.text}</Pill>
        {made.artifact !== '' && (
          <span class="muted small">{made.artifact}, {bytes(num(made.size_bytes))}</span>
        )}
        {artifact?.digest && (
          <a class="button" download={made.artifact} href={blobAddress(artifact.digest.sha256)}>Download {made.artifact}</a>
        )}
      </div>
      {made.summary && <p class="small muted break">{made.summary}</p>}
      {problems.length > 0 && (
        <ul class="warnings small">
          {problems.map((problem) => <li key={problem} class="break">{problem}</li>)}
          {made.problems.length > problems.length && <li>and {made.problems.length - problems.length} more</li>}
        </ul>
      )}
    </li>
  );
}

export function ExportsCard({ job }: { job: Job }) {
  const exports = job.report?.exports ?? [];
  if (exports.length === 0) return null;
  return (
    <Card title="Other formats" note="Each file was read back and run beside the graph, on random inputs">
      <ul class="exports">{exports.map((made) => <Exported key={made.format} made={made} job={job} />)}</ul>
    </Card>
  );
}
