// All variants of a model in one picture: latency against size or accuracy on a
// device, and those that no other beats in both.

import { useMemo } from 'preact/hooks';
import { get, query } from '../lib/api';
import { bytes, digits, micros, num, plural } from '../lib/format';
import { modelOf, recipeOf } from '../lib/job';
import { usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import type { Job } from '../lib/types';
import { ticks } from '../parts/plot';
import { Table } from '../parts/table';
import { Card, Empty, Head, Loaded, Search, Select, Switch } from '../parts/ui';

const MOST_JOBS = 40;

type Axis = 'size' | 'top1' | 'agreement';

interface Variant {
  job: Job;
  name: string;
  place: string;
  latency: number;
  size: number;
  /** UNITS: percent; NaN without labels. */
  top1: number;
  /** UNITS: percent of samples with the original's answer. */
  agreement: number;
  noisy: boolean;
}

function variantsOf(jobs: readonly Job[]): Variant[] {
  const variants = jobs.flatMap((job) => job.measurements.map((measured): Variant => {
    const float = measured.variant === 'float';
    const verdict = job.verdicts.find((one) => one.variant === measured.variant && one.device === measured.device && one.threads === measured.threads);
    const accuracy = float ? job.report?.float_accuracy : job.report?.optimized_accuracy;
    return {
      job, name: float ? 'float' : recipeOf(job), place: `${measured.device}, ${plural(measured.threads, 'thread')}`,
      latency: measured.median_us, size: num(measured.file_size_bytes), top1: accuracy?.top1 ?? NaN,
      agreement: float ? 100 : 100 * (verdict?.agreement ?? NaN), noisy: measured.noisy,
    };
  }));
  // The newest of each: an older run says nothing more.
  const newest = new Map<string, Variant>();
  for (const variant of variants) {
    const key = `${variant.place}|${variant.name}|${variant.size}`;
    if (!newest.has(key)) newest.set(key, variant);
  }
  return [...newest.values()];
}

const AXES: Record<Axis, { label: string; of: (variant: Variant) => number; format: (value: number) => string; lowBest: boolean }> = {
  size: { label: 'File size', of: (variant) => variant.size, format: bytes, lowBest: true },
  top1: { label: 'Top-1', of: (variant) => variant.top1, format: (value) => `${digits(value)} %`, lowBest: false },
  agreement: { label: 'Same answers', of: (variant) => variant.agreement, format: (value) => `${digits(value, 4)} %`, lowBest: false },
};

/** Those that no other is faster and better than. */
function frontOf(variants: Variant[], axis: Axis): Variant[] {
  const { of, lowBest } = AXES[axis];
  const worth = (variant: Variant) => (lowBest ? -of(variant) : of(variant));
  return variants
    .filter((one) => !variants.some((other) => other !== one && other.latency <= one.latency && worth(other) >= worth(one) &&
      (other.latency < one.latency || worth(other) > worth(one))))
    .sort((a, b) => a.latency - b.latency);
}

function Scatter({ variants, front, axis }: { variants: Variant[]; front: Variant[]; axis: Axis }) {
  const { of, format, label, lowBest } = AXES[axis];
  const edges = (values: number[], floor: number): [number, number] => {
    const low = Math.min(...values);
    const high = Math.max(...values);
    const pad = (high - low) * 0.14 || high * 0.1 || 1;
    return [Math.max(floor, low - pad), high + pad];
  };
  const [left, right] = edges(variants.map((one) => one.latency), 0);
  const [bottom, top] = edges(variants.map(of), 0);
  const x = (value: number) => 76 + 604 * (value - left) / (right - left);
  const y = (value: number) => 316 - 296 * (value - bottom) / (top - bottom);
  return (
    <svg class="plot large" viewBox="0 0 700 370" role="group" aria-label={`Median latency against ${label.toLowerCase()}`}>
      {ticks(left, right).map((value) => (
        <g key={value}><line class="rule" x1={x(value)} x2={x(value)} y1="20" y2="316" />
          <text x={x(value)} y="334" text-anchor="middle">{micros(value)}</text></g>
      ))}
      {ticks(bottom, top).map((value) => (
        <g key={value}><line class="rule" x1="76" x2="680" y1={y(value)} y2={y(value)} />
          <text x="68" y={y(value) + 4} text-anchor="end">{format(value)}</text></g>
      ))}
      <line class="axis" x1="76" x2="680" y1="316" y2="316" />
      <line class="axis" x1="76" x2="76" y1="20" y2="316" />
      <text x="680" y="358" text-anchor="end">median latency, left is better</text>
      <text x="76" y="12">{label}, {lowBest ? 'down' : 'up'} is better</text>
      <polyline fill="none" stroke="var(--good)" stroke-width="1.5" stroke-dasharray="5 4"
        points={front.map((one) => `${x(one.latency)},${y(of(one))}`).join(' ')} />
      {variants.map((one) => {
        const best = front.includes(one);
        const before = x(one.latency) > 560;
        return (
          <a key={`${one.job.job_id} ${one.name}`} href={to('jobs', one.job.job_id)}
            aria-label={`${one.name}: ${micros(one.latency)}, ${format(of(one))}${best ? ', on the front' : ''}`}>
            <circle cx={x(one.latency)} cy={y(of(one))} r="6.5" stroke={best ? 'var(--good)' : 'var(--float)'} stroke-width="2"
              fill={one.noisy ? 'var(--surface)' : best ? 'var(--good)' : 'var(--float)'} />
            <text x={x(one.latency) + (before ? -12 : 12)} y={y(of(one)) + 4} text-anchor={before ? 'end' : 'start'}
              style={{ fill: 'var(--text)', fontWeight: 550 }}>{one.name}</text>
          </a>
        );
      })}
    </svg>
  );
}

function Picture({ variants, route }: { variants: Variant[]; route: Route }) {
  const places = [...new Set(variants.map((variant) => variant.place))].sort();
  const asked = route.parameters.get('place') ?? '';
  const place = places.includes(asked) ? asked : places[0]!;
  const axis = (route.parameters.get('axis') ?? 'size') as Axis;
  const here = variants.filter((variant) => variant.place === place);
  const shown = here.filter((variant) => !Number.isNaN(AXES[axis].of(variant)));
  const front = frontOf(shown, axis);
  return (
    <>
      <div class="filters">
        <Select label="Measured on" value={place} options={places} onChange={(value) => setParameters(route, { place: value })} />
        <Switch label="Second axis" value={axis} onChange={(value) => setParameters(route, { axis: value })}
          options={(Object.keys(AXES) as Axis[]).map((value) => ({ value, label: AXES[value].label }))} />
      </div>
      <Card title="Trade-offs" note="Green: no other variant is better in both. Hollow: noisy. A point opens its job.">
        {shown.length > 0 ? <Scatter variants={shown} front={front} axis={axis} />
          : <Empty icon="pareto" title={`No variant has ${AXES[axis].label.toLowerCase()} here`}>It needs labels with the samples.</Empty>}
      </Card>
      <Card title="Variants" flush>
        <Table label="Variants" rows={here} id={(one) => `${one.job.job_id} ${one.name}`} columns={[
          { title: 'Variant', key: (one) => one.name, show: (one) => <a class="cell-main" href={to('jobs', one.job.job_id)}>{one.name}</a> },
          { title: 'Median', number: true, key: (one) => one.latency, show: (one) => <>{micros(one.latency)}{one.noisy && <span class="tag unsure">noisy</span>}</> },
          { title: 'File', number: true, key: (one) => one.size, show: (one) => bytes(one.size) },
          { title: 'Top-1', number: true, key: (one) => one.top1 || 0, show: (one) => AXES.top1.format(one.top1) },
          { title: 'Same answers', number: true, wide: true, key: (one) => one.agreement || 0, show: (one) => AXES.agreement.format(one.agreement) },
          { title: 'On the front', show: (one) => (front.includes(one) ? 'yes' : '') },
        ]} />
      </Card>
    </>
  );
}

export function ParetoPage({ route }: { route: Route }) {
  const asked = route.parameters.get('model') ?? '';
  const list = usePoll((signal) => get<{ jobs: Job[] }>(`/v1/jobs${query({ filter: 'state=SUCCEEDED', page_size: 1000 })}`, signal), 30_000, []);
  const measured = (list.data?.jobs ?? []).filter((job) => (job.spec?.benchmark?.devices.length ?? 0) > 0);
  const names = [...new Set(measured.map(modelOf))];
  const model = asked || names[0] || '';
  const ids = measured.filter((job) => modelOf(job) === model).slice(0, MOST_JOBS).map((job) => job.job_id);
  const jobs = usePoll((signal) => Promise.all(ids.map((id) => get<Job>(`/v1/jobs/${id}`, signal))), 0, [ids.join(' ')]);
  const variants = useMemo(() => variantsOf(jobs.data ?? []), [jobs.data]);
  return (
    <>
      <Head title="Pareto" />
      <Loaded data={list.data} error={list.error} retry={list.refresh}>
        {() => names.length === 0 ? (
          <Empty icon="pareto" title="No model has been measured yet">Variants appear here when a job with a device has succeeded.</Empty>
        ) : (
          <>
            <div class="filters">
              <Search main label="Model" value={model} options={names} onChange={(value) => setParameters(route, { model: value, place: '' })} />
            </div>
            <Loaded data={jobs.data} error={jobs.error} retry={jobs.refresh}>
              {() => variants.length === 0 ? <Empty icon="pareto" title={`No measurements of ${model}`} /> : <Picture variants={variants} route={route} />}
            </Loaded>
          </>
        )}
      </Loaded>
    </>
  );
}
