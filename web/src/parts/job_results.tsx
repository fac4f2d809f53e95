// What a job measured: float against optimized, device by device, and gates.

import type { ComponentChildren } from 'preact';
import { bytes, digits, micros, num, plural, points, share, times } from '../lib/format';
import { toneOfAnswer } from '../lib/job';
import type { Job, Measurement, Verdict } from '../lib/types';
import { Card, Pill } from './ui';

interface Row {
  variant: string;
  device: string;
  threads: number;
  size: number;
  measured: Measurement | undefined;
  verdict: Verdict | undefined;
}

/** One row for each verdict, and for each measurement that has none yet. */
function rowsOf(job: Job): Row[] {
  const rows: Row[] = job.verdicts.map((verdict) => {
    const measured = job.measurements.find((one) =>
      one.variant === verdict.variant && one.device === verdict.device && one.threads === verdict.threads);
    return {
      variant: verdict.variant, device: verdict.device, threads: verdict.threads,
      size: num(verdict.file_size_bytes) || num(measured?.file_size_bytes), measured, verdict,
    };
  });
  for (const measured of job.measurements) {
    if (rows.some((row) => row.measured === measured)) continue;
    rows.push({
      variant: measured.variant, device: measured.device, threads: measured.threads,
      size: num(measured.file_size_bytes), measured, verdict: undefined,
    });
  }
  return rows;
}

function accuracyOf(job: Job, variant: string): ComponentChildren {
  const accuracy = variant === 'float' ? job.report?.float_accuracy : job.report?.optimized_accuracy;
  if (!accuracy) return '–';
  return `${accuracy.top1.toFixed(1)} %`;
}

/** Times of one place as bars of one scale, with their spread. */
function LatencyCell({ row, longest }: { row: Row; longest: number }) {
  const measured = row.measured;
  if (!measured) return <span class="muted">not measured</span>;
  const width = `${Math.max(2, 100 * measured.median_us / longest)}%`;
  return (
    <div class="pair">
      <span class="nowrap">
        {micros(measured.median_us)}{' '}
        <span class="small muted" title="Median absolute deviation of the runs">
          ± {digits(100 * measured.mad_us / measured.median_us, 2)} %
        </span>
        {measured.noisy && <span class="tag unsure" title={measured.noise_reasons.join('\n')}>noisy</span>}
      </span>
      <span class={`track ${row.variant === 'float' ? 'float' : 'optimized'}`} style={{ width }} />
    </div>
  );
}

function ResultRow({ row, job, longest, first }: { row: Row; job: Job; longest: number; first: boolean }) {
  const measured = row.measured;
  const baseline = row.verdict?.answer === 'BASELINE' || row.variant === 'float';
  return (
    <tr class={first ? 'variant-first' : ''}>
      <td class="cell-main">{row.variant}</td>
      <td class="number">{bytes(row.size)}</td>
      <td><LatencyCell row={row} longest={longest} /></td>
      <td class="number">{measured ? micros(measured.p90_us) : '–'}</td>
      <td class="number">{measured ? micros(measured.first_us) : '–'}</td>
      <td class="number">{measured && num(measured.peak_memory_bytes) > 0 ? bytes(num(measured.peak_memory_bytes)) : '–'}</td>
      <td class="number strong">{baseline ? <span class="muted">1.00×</span> : times(row.verdict?.speedup ?? NaN)}</td>
      <td class="number">{accuracyOf(job, row.variant)}</td>
      <td>
        {row.verdict && !baseline && (
          <div class="lines cell-text">
            {row.verdict.answer !== 'ANSWER_UNSPECIFIED' && (
              <span><Pill tone={toneOfAnswer(row.verdict.answer)}>{row.verdict.answer.toLowerCase()}</Pill></span>
            )}
            <span class="small muted">{row.verdict.text.replace(/^(yes|no|unclear): /, '')}</span>
          </div>
        )}
        {baseline && <span class="muted">baseline</span>}
      </td>
    </tr>
  );
}

export function ResultsCard({ job }: { job: Job }) {
  const rows = rowsOf(job);
  const places = [...new Set(rows.map((row) => `${row.device}\n${row.threads}`))];
  const paired = job.report?.paired_accuracy;
  const note = paired && paired.samples !== '0'
    ? `Top-1 on ${plural(num(paired.samples), 'labelled sample')}: ${points(paired.change)} points (95 %: ${points(paired.change_low)} to ${points(paired.change_high)})`
    : 'Medians of the runs on each device';
  return (
    <Card title="Float against optimized" note={note} flush>
      <div class="scroll" tabIndex={0} role="region" aria-label="Float against optimized">
        <table>
          <thead>
            <tr>
              <th scope="col">Variant</th><th scope="col" class="number">File</th><th scope="col">Median latency</th>
              <th scope="col" class="number">p90</th><th scope="col" class="number">First run</th>
              <th scope="col" class="number">Memory</th><th scope="col" class="number">Speed-up</th>
              <th scope="col" class="number">Top-1</th><th scope="col">Ship it?</th>
            </tr>
          </thead>
          {places.map((place) => {
            const [device, threads] = place.split('\n');
            const those = rows.filter((row) => `${row.device}\n${row.threads}` === place);
            const longest = Math.max(...those.map((row) => row.measured?.median_us ?? 0));
            const check = those.map((row) => row.measured?.numeric_check).find((one) => one && !one.passed);
            return (
              <tbody key={place}>
                <tr class="group">
                  <th colSpan={9} scope="rowgroup">
                    {device ? <>{device} <span class="muted">· {plural(Number(threads), 'thread')}</span></> : 'Not measured on a device'}
                    {check && <span class="tag bad"> {check.message}</span>}
                  </th>
                </tr>
                {those.map((row, index) => (
                  <ResultRow key={row.variant} row={row} job={job} longest={longest} first={index + 1 < those.length} />
                ))}
              </tbody>
            );
          })}
        </table>
      </div>
    </Card>
  );
}

/** Values of a gate in the unit of its bound. */
function gateNumber(name: string, value: number): string {
  if (name.startsWith('min_top1_agreement')) return share(value);
  if (name.startsWith('min_snr_db')) return `${digits(value)} dB`;
  if (name.startsWith('min_speedup') || name.startsWith('max_size_ratio')) return times(value);
  if (name.includes('accuracy_drop')) return `${value.toFixed(2)} points`;
  return digits(value, 4);
}

export function GatesCard({ job }: { job: Job }) {
  const failed = job.gates.filter((gate) => !gate.passed).length;
  return (
    <Card title="Gates" note={failed === 0 ? 'all passed' : `${failed} of ${job.gates.length} missed`} flush>
      <div class="scroll" tabIndex={0} role="region" aria-label="Gates">
        <table>
          <thead><tr><th scope="col">Gate</th><th scope="col" class="number">Value</th><th scope="col" class="number">Bound</th><th scope="col">Outcome</th></tr></thead>
          <tbody>
            {job.gates.map((gate) => (
              <tr key={gate.name}>
                <td class="cell-name"><span class="mono break">{gate.name}</span>{!gate.passed && <div class="small">{gate.message}</div>}</td>
                <td class="number">{gateNumber(gate.name, num(gate.value))}</td>
                <td class="number">{gate.name.startsWith('max') ? '≤ ' : '≥ '}{gateNumber(gate.name, num(gate.bound))}</td>
                <td><Pill tone={gate.passed ? 'good' : 'bad'}>{gate.passed ? 'passed' : 'missed'}</Pill></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
