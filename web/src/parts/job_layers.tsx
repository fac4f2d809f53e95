// A job layer by layer: signal to noise and time side by side, what each
// quantized layer costs alone, distributions, and the samples that changed most.

import { useContext, useEffect, useState } from 'preact/hooks';
import { FilesContext } from '../lib/files';
import { bytes, decibels, digits, micros, num, plural } from '../lib/format';
import type { Job, Measurement, Report } from '../lib/types';
import { Table, type Column } from './table';
import { Card, Empty, Select } from './ui';

// UNITS: decibel. Bars are full here; what is beyond sounds and looks the same.
const FULL_SNR = 60;

function Snr({ db }: { db: number }) {
  if (Number.isNaN(db)) return <>–</>;
  const width = `${Math.round(100 * Math.min(1, Math.max(0.02, db / FULL_SNR)))}%`;
  const tone = db < 10 ? 'bad' : db < 20 ? 'calm' : 'good';
  return (
    <span class="snr">
      <span class={`bar ${tone} wide-only`} aria-hidden="true"><span style={{ width }} /></span>
      {decibels(db)}
    </span>
  );
}

function Pair({ float, optimized, most }: { float: number; optimized: number; most: number }) {
  const width = (us: number) => ({ width: `${us > 0 ? Math.max(1, 100 * us / most) : 0}%` });
  return (
    <div class="pair" aria-hidden="true">
      <span class="track float" style={width(float)} />
      <span class="track optimized" style={width(optimized)} />
    </div>
  );
}

const KEYS = (
  <span class="keys"><span class="key float">float</span><span class="key optimized">optimized</span></span>
);

interface OpRow {
  op: string;
  float: number;
  optimized: number;
  nodes: string;
}

/** Times by op of the two variants in one place. */
function opRows(float: Measurement | undefined, optimized: Measurement | undefined): OpRow[] {
  const rows = new Map<string, OpRow>();
  const row = (op: string) => {
    const known = rows.get(op) ?? { op, float: 0, optimized: 0, nodes: '' };
    rows.set(op, known);
    return known;
  };
  for (const time of float?.op_times ?? []) {
    row(time.op).float = time.total_us;
    row(time.op).nodes = String(time.count);
  }
  for (const time of optimized?.op_times ?? []) {
    const entry = row(time.op);
    entry.optimized = time.total_us;
    entry.nodes = entry.nodes === '' ? `– → ${time.count}` : `${entry.nodes} → ${time.count}`;
  }
  return [...rows.values()].sort((a, b) => Math.max(b.float, b.optimized) - Math.max(a.float, a.optimized));
}

function OpsCard({ job }: { job: Job }) {
  const places = [...new Set(job.measurements.map((one) => `${one.device}, ${plural(one.threads, 'thread')}`))];
  const [chosen, setChosen] = useState('');
  const place = places.includes(chosen) ? chosen : places[0];
  const here = job.measurements.filter((one) => `${one.device}, ${plural(one.threads, 'thread')}` === place);
  const rows = opRows(here.find((one) => one.variant === 'float'), here.find((one) => one.variant !== 'float'));
  if (rows.length === 0) return null;
  const most = Math.max(...rows.flatMap((row) => [row.float, row.optimized]));
  const columns: Column<OpRow>[] = [
    { title: 'Op', show: (row) => <span class="mono">{row.op}</span>, key: (row) => row.op },
    { title: 'Nodes', number: true, wide: true, show: (row) => row.nodes },
    { title: 'Float', number: true, show: (row) => (row.float > 0 ? micros(row.float) : '–'), key: (row) => row.float },
    { title: 'Optimized', number: true, show: (row) => (row.optimized > 0 ? micros(row.optimized) : '–'), key: (row) => row.optimized },
    { title: 'Side by side', width: '34%', show: (row) => <Pair float={row.float} optimized={row.optimized} most={most} /> },
  ];
  return (
    <Card title="Time by op" note={KEYS} flush>
      {places.length > 1 && (
        <div class="filters" style={{ padding: '0 18px' }}>
          <Select label="Measured on" value={place!} options={places} onChange={setChosen} />
        </div>
      )}
      <Table label="Time by op" rows={rows} columns={columns} id={(row) => row.op} />
    </Card>
  );
}

interface LayerRow {
  name: string;
  op: string;
  snr: number;
  error: number;
  range: number;
  float: number;
  optimized: number;
}

function layerRows(job: Job, report: Report): LayerRow[] {
  const timesOf = (float: boolean) => {
    const times = new Map<string, number>();
    const measured = job.measurements.find((one) => (one.variant === 'float') === float);
    for (const node of measured?.slowest_nodes ?? []) times.set(node.node, node.total_us);
    return times;
  };
  const float = timesOf(true);
  const optimized = timesOf(false);
  return report.layers_compared.map((layer) => ({
    name: layer.name, op: layer.op, snr: num(layer.snr_db), error: num(layer.max_abs_error), range: num(layer.max_abs_value),
    float: float.get(layer.name) ?? NaN, optimized: optimized.get(layer.name) ?? NaN,
  }));
}

function LayersCard({ rows }: { rows: LayerRow[] }) {
  const timed = rows.some((row) => !Number.isNaN(row.float));
  const columns: Column<LayerRow>[] = [
    { title: 'Layer', show: (row) => <span class="mono break">{row.name}</span>, key: (row) => row.name },
    { title: 'Op', wide: true, show: (row) => row.op, key: (row) => row.op },
    { title: 'Signal to noise', number: true, show: (row) => <Snr db={row.snr} />, key: (row) => -row.snr },
    { title: 'Largest error', number: true, show: (row) => digits(row.error), key: (row) => row.error },
    { title: 'Range', number: true, wide: true, show: (row) => `±${digits(row.range)}`, key: (row) => row.range },
  ];
  if (timed) {
    columns.push({ title: 'Float', number: true, wide: true, show: (row) => micros(row.float), key: (row) => row.float || 0 });
    columns.push({ title: 'Optimized', number: true, wide: true, show: (row) => micros(row.optimized), key: (row) => row.optimized || 0 });
  }
  return (
    <Card title="Layers" note="Original against result on the same samples, worst first" flush>
      <Table label="Layers" rows={rows} columns={columns} id={(row) => row.name} />
    </Card>
  );
}

type Sensitivity = Report['sensitivity'][number];

function SensitivityCard({ rows }: { rows: Sensitivity[] }) {
  const columns: Column<Sensitivity>[] = [
    { title: 'Layer', show: (row) => <><span class="mono break">{row.name}</span> <span class="muted small">{row.op}</span></>, key: (row) => row.name },
    { title: 'Alone', number: true, show: (row) => <Snr db={num(row.alone_snr_db)} />, key: (row) => -num(row.alone_snr_db) },
    { title: 'In the result', number: true, show: (row) => <Snr db={num(row.cumulative_snr_db)} />, key: (row) => -num(row.cumulative_snr_db) },
    { title: 'Model’s output', number: true, wide: true, show: (row) => <Snr db={num(row.output_snr_db)} />, key: (row) => -num(row.output_snr_db) },
    { title: 'Float costs', number: true, wide: true, show: (row) => `+${bytes(num(row.float_bytes_more))}`, key: (row) => num(row.float_bytes_more) },
    { title: 'Float', number: true, show: (row) => micros(num(row.float_milliseconds) * 1000), key: (row) => num(row.float_milliseconds) },
    { title: 'Result', number: true, show: (row) => micros(num(row.result_milliseconds) * 1000), key: (row) => num(row.result_milliseconds) },
  ];
  return (
    <Card title="Sensitivity" note="Each quantized layer alone, and what going back to float would cost" flush>
      <Table label="Sensitivity" rows={rows} columns={columns} id={(row) => row.name} />
    </Card>
  );
}

type Histogram = Report['histograms'][number];

function HistogramPlot({ histogram }: { histogram: Histogram }) {
  const original = histogram.original.map(num);
  const result = histogram.result.map(num);
  const most = Math.max(1, ...original, ...result);
  const path = (counts: number[]) => counts
    .map((count, index) => `${index === 0 ? 'M' : 'L'}${(240 * index / Math.max(1, counts.length - 1)).toFixed(1)} ${(90 - 84 * Math.sqrt(count / most)).toFixed(1)}`)
    .join('');
  const high = histogram.low + histogram.width * original.length;
  return (
    <figure style={{ margin: 0 }}>
      <figcaption class="small"><span class="mono break">{histogram.name}</span> <span class="muted">{histogram.op}</span></figcaption>
      <svg class="plot" viewBox="0 0 240 110" role="img" aria-label={`Values of ${histogram.name}`}>
        <line class="axis" x1="0" x2="240" y1="91" y2="91" />
        <path d={path(original)} fill="none" stroke="var(--float)" stroke-width="1.6" />
        {result.length > 0 && <path d={path(result)} fill="none" stroke="var(--optimized)" stroke-width="1.6" />}
        <text x="0" y="106">{digits(histogram.low)}</text>
        <text x="240" y="106" text-anchor="end">{digits(high)}</text>
      </svg>
    </figure>
  );
}

/** The SHA-256 of a sample that is a picture and that the job's data have. */
function pictureOf(job: Job, path: string): string | undefined {
  if (!/\.(jpe?g|png)$/i.test(path)) return undefined;
  const files = job.spec?.calibration?.sources.flatMap((source) => source.files) ?? [];
  return files.find((one) => one.path === path)?.digest?.sha256;
}

function Picture({ job, path }: { job: Job; path: string }) {
  const [address, setAddress] = useState('');
  const sha = pictureOf(job, path);
  const read = useContext(FilesContext);
  useEffect(() => {
    if (!sha) return undefined;
    const stop = new AbortController();
    let made = '';
    read(sha, stop.signal).then((bytes) => {
      made = URL.createObjectURL(new Blob([bytes], { type: /png$/i.test(path) ? 'image/png' : 'image/jpeg' }));
      setAddress(made);
    }, () => undefined);
    return () => {
      stop.abort();
      URL.revokeObjectURL(made);
    };
  }, [sha]);
  return address ? <img class="picture" src={address} alt={path} /> : null;
}

/** `name`: empty where the class has none. */
function ClassText({ number, name }: { number: string | number; name: string }) {
  if (num(number) < 0) return <>–</>;
  return name ? <>{name} <span class="muted small">{number}</span></> : <>{number}</>;
}

function SamplesCard({ job, report }: { job: Job; report: Report }) {
  const pictures = report.worst_samples.some((sample) => /\.(jpe?g|png)$/i.test(sample.sample));
  const columns: Column<Report['worst_samples'][number]>[] = [
    { title: 'Sample', show: (sample) => <span class="break">{sample.sample}</span> },
    { title: 'Signal to noise', number: true, show: (sample) => <Snr db={num(sample.snr_db)} /> },
    { title: 'Float says', number: true, show: (sample) => <ClassText number={sample.float_class} name={sample.float_class_name} /> },
    {
      title: 'Optimized says', number: true, show: (sample) => (
        <span class={sample.float_class === sample.optimized_class ? '' : 'strong'}>
          <ClassText number={sample.optimized_class} name={sample.optimized_class_name} />
        </span>
      ),
    },
    { title: 'Right', number: true, show: (sample) => <ClassText number={sample.label} name={sample.label_name} /> },
  ];
  if (pictures) columns.unshift({ title: 'Picture', width: '76px', show: (sample) => <Picture job={job} path={sample.sample} /> });
  return (
    <Card title="Samples that changed most" note="The worst first" flush>
      <Table label="Samples that changed most" rows={report.worst_samples} columns={columns} id={(sample) => sample.sample} />
    </Card>
  );
}

export function LayersPart({ job, report }: { job: Job; report: Report }) {
  const layers = layerRows(job, report);
  const nothing = layers.length === 0 && report.sensitivity.length === 0 && report.worst_samples.length === 0 &&
    !job.measurements.some((one) => one.op_times.length > 0);
  if (nothing) {
    return (
      <Empty icon="models" title="Nothing by layer">
        The recipe did not ask for it: set <code>verification.per_layer</code>, or measure on a device.
      </Empty>
    );
  }
  return (
    <>
      <OpsCard job={job} />
      {layers.length > 0 && <LayersCard rows={layers} />}
      {report.sensitivity.length > 0 && <SensitivityCard rows={report.sensitivity} />}
      {report.histograms.length > 0 && (
        <Card title="Distributions" note={KEYS}>
          <div class="histograms">{report.histograms.map((one) => <HistogramPlot key={one.name} histogram={one} />)}</div>
        </Card>
      )}
      {report.worst_samples.length > 0 && <SamplesCard job={job} report={report} />}
    </>
  );
}
