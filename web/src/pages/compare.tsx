// Two jobs side by side: differences of what both measured, with intervals.

import { useState } from 'preact/hooks';
import { get, query } from '../lib/api';
import { bytes, micros, num, plural, times } from '../lib/format';
import { recipeOf, titleOf } from '../lib/job';
import { usePoll } from '../lib/poll';
import { go, setParameters, to, type Route } from '../lib/route';
import type { Comparison, ComparisonRow, Job } from '../lib/types';
import { Table } from '../parts/table';
import { Ago, Card, Empty, Head, Loaded, Pill } from '../parts/ui';

interface Sides {
  comparison: Comparison;
  a: Job;
  b: Job;
}

/** The interval of a ratio on a logarithmic scale, with 1 in the middle. */
function Interval({ row, reach }: { row: ComparisonRow; reach: number }) {
  const at = (ratio: number) => 90 + 84 * Math.max(-1, Math.min(1, Math.log(ratio) / Math.log(reach)));
  const low = row.speedup_low || row.speedup;
  const high = row.speedup_high || row.speedup;
  const tone = !row.significant ? 'var(--calm)' : row.speedup > 1 ? 'var(--good)' : 'var(--bad)';
  return (
    <svg class="plot" viewBox="0 0 180 18" style={{ width: '180px' }} role="img"
      aria-label={`${times(row.speedup)}, between ${times(low)} and ${times(high)}`}>
      <line class="axis" x1="90" x2="90" y1="0" y2="18" />
      <line x1={at(low)} x2={at(high)} y1="9" y2="9" stroke={tone} stroke-width="2.5" />
      <circle cx={at(row.speedup)} cy="9" r="4" fill={tone} />
    </svg>
  );
}

function Outcome({ row }: { row: ComparisonRow }) {
  const noisy = row.a?.measurement?.noisy || row.b?.measurement?.noisy;
  if (row.speedup === 0) return <span class="muted">only in {row.a ? 'A' : 'B'}</span>;
  if (noisy) return <Pill tone="unsure">noisy</Pill>;
  if (!row.significant) return <Pill tone="calm">no difference</Pill>;
  return <Pill tone={row.speedup > 1 ? 'good' : 'bad'}>{row.speedup > 1 ? 'B is faster' : 'B is slower'}</Pill>;
}

function Rows({ comparison }: { comparison: Comparison }) {
  const ratios = comparison.rows.filter((row) => row.speedup > 0)
    .flatMap((row) => [row.speedup_low || row.speedup, row.speedup_high || row.speedup]);
  const reach = Math.max(1.25, ...ratios.map((ratio) => Math.exp(Math.abs(Math.log(ratio)))));
  const ratio = (value: number) => (value > 0 ? times(value) : '–');
  return (
    <Table label="Comparison" rows={comparison.rows} id={(row) => `${row.device} ${row.variant} ${row.threads}`} columns={[
      { title: 'Device', key: (row) => row.device, show: (row) => <><span class="cell-main">{row.device}</span> <span class="small muted nowrap">{plural(row.threads, 'thread')}</span></> },
      { title: 'Variant', key: (row) => row.variant, show: (row) => row.variant },
      { title: 'A', number: true, show: (row) => micros(row.a?.measurement?.median_us ?? NaN), key: (row) => row.a?.measurement?.median_us ?? 0 },
      { title: 'B', number: true, show: (row) => micros(row.b?.measurement?.median_us ?? NaN), key: (row) => row.b?.measurement?.median_us ?? 0 },
      { title: 'Speed-up', number: true, key: (row) => row.speedup, show: (row) => <span class="strong">{ratio(row.speedup)}</span> },
      { title: '95 % interval', wide: true, show: (row) => row.speedup > 0 && <Interval row={row} reach={reach} /> },
      { title: 'Memory', number: true, wide: true, show: (row) => ratio(row.memory_ratio) },
      { title: 'File', number: true, wide: true, show: (row) => row.speedup > 0 ? <span title={`${bytes(num(row.a?.measurement?.file_size_bytes))} and ${bytes(num(row.b?.measurement?.file_size_bytes))}`}>{ratio(row.file_size_ratio)}</span> : '–' },
      { title: 'Outcome', show: (row) => <Outcome row={row} /> },
    ]} />
  );
}

function Side({ name, job }: { name: string; job: Job }) {
  return (
    <Card>
      <p class="small muted">{name}</p>
      <h2><a href={to('jobs', job.job_id)}>{titleOf(job)}</a></h2>
      <p class="small muted">{recipeOf(job)}, <Ago time={job.create_time} />, <span class="mono">{job.job_id}</span></p>
      <p class="small mono muted break">{job.spec?.model?.digest?.sha256.slice(0, 24)}…</p>
    </Card>
  );
}

function Picker({ route }: { route: Route }) {
  const jobs = usePoll((signal) => get<{ jobs: Job[] }>('/v1/jobs?page_size=200', signal), 15_000, []);
  const [a, setA] = useState(route.parameters.get('a') ?? '');
  const [b, setB] = useState(route.parameters.get('b') ?? '');
  const options = (jobs.data?.jobs ?? []).filter((job) => (job.spec?.benchmark?.devices.length ?? 0) > 0);
  const pick = (label: string, value: string, set: (value: string) => void) => (
    <label class="field grow">
      {label}
      <input list="jobs-to-compare" value={value} placeholder="a job’s id" required data-main={label === 'A, before' ? '' : undefined}
        onInput={(event) => set(event.currentTarget.value.trim())} />
    </label>
  );
  return (
    <form class="filters" onSubmit={(event) => {
      event.preventDefault();
      go(to('compare', '', { a, b }));
    }}>
      {pick('A, before', a, setA)}
      {pick('B, after', b, setB)}
      <button class="primary" type="submit" disabled={a === '' || b === ''}>Compare</button>
      <button type="button" disabled={a === '' || b === ''} onClick={() => {
        setA(b);
        setB(a);
        setParameters(route, { a: b, b: a });
      }}>Swap</button>
      <datalist id="jobs-to-compare">
        {options.map((job) => <option key={job.job_id} value={job.job_id}>{titleOf(job)}, {job.create_time}</option>)}
      </datalist>
    </form>
  );
}

function Verdict({ comparison }: { comparison: Comparison }) {
  if (comparison.pairs === 0) {
    return <p class="notice calm">The two jobs share no device, variant and thread count with quiet measurements.</p>;
  }
  const { mean_speedup: mean, mean_speedup_low: low, mean_speedup_high: high } = comparison;
  const sure = low > 1 || (high > 0 && high < 1);
  const tone = !sure ? 'calm' : mean > 1 ? 'good' : 'bad';
  const words = !sure ? 'No clear difference' : mean > 1 ? 'B is faster' : 'B is slower';
  return (
    <section class={`verdict ${tone}`} aria-label="Verdict">
      <span />
      <div>
        <h2>{words}</h2>
        <p>Mean over {plural(comparison.pairs, 'quiet pair')}{high > 0 && `; 95 % interval ${times(low)} to ${times(high)}`}</p>
      </div>
      <div class="facts"><span class="fact"><b>{times(mean)}</b><span>speed-up of B</span></span></div>
    </section>
  );
}

export function ComparePage({ route }: { route: Route }) {
  const a = route.parameters.get('a') ?? '';
  const b = route.parameters.get('b') ?? '';
  const both = a !== '' && b !== '';
  const sides = usePoll(async (signal): Promise<Sides | undefined> => {
    if (!both) return undefined;
    const job = (id: string) => get<Job>(`/v1/jobs/${encodeURIComponent(id)}`, signal);
    const [one, other, comparison] = await Promise.all([
      job(a), job(b), get<Comparison>(`/v1/results:compare${query({ 'a.job_id': a, 'b.job_id': b })}`, signal)]);
    return { a: one, b: other, comparison };
  }, 0, [a, b]);
  return (
    <>
      <Head title="Compare" />
      <Picker key={`${a} ${b}`} route={route} />
      {!both ? (
        <Empty icon="compare" title="Choose two jobs">
          {a === '' && b === '' ? 'The page puts what both measured side by side.' : 'One is chosen; the other is missing.'}
        </Empty>
      ) : (
        <Loaded data={sides.data} error={sides.error} retry={sides.refresh}>
          {(data) => data && (
            <>
              <div class="grid two"><Side name="A, before" job={data.a} /><Side name="B, after" job={data.b} /></div>
              <Verdict comparison={data.comparison} />
              {data.comparison.rows.length === 0
                ? <Empty icon="compare" title="Neither job has measurements" />
                : <Card title="Differences" note="Medians; above 1× B is better for speed, below 1× for memory and file" flush><Rows comparison={data.comparison} /></Card>}
            </>
          )}
        </Loaded>
      )}
    </>
  );
}
