// What is said about a tune in one place: its goal, what it recommends, what its
// jobs tell before it has learned from them, and the commands that repeat it.

import { decibels, micros, num, plural, points, quoted, span, times, when } from './format';
import type { Sentence, Tone } from './job';
import { hasEnded, type Job, type Report, type Tune, type TunedDevice, type TunedVariant, type TuneMeasure } from './types';

export function isRunning(tune: Tune): boolean {
  return tune.state === 'TUNE_RUNNING';
}

export function modelOfTune(tune: Tune): string {
  return tune.spec?.job?.model?.name || tune.spec?.job?.model?.digest?.sha256.slice(0, 12) || 'model';
}

/** A quality with its unit. */
export function qualityText(value: number, measure: TuneMeasure): string {
  if (Number.isNaN(value)) return '–';
  if (measure === 'TOP1_CHANGE') return points(value);
  if (measure === 'AGREEMENT') return `${value.toFixed(1)} %`;
  return value >= 200 ? 'exact' : decibels(value);
}

export const MEASURE_TITLES: Record<TuneMeasure, string> = {
  MEASURE_UNSPECIFIED: 'Quality',
  TOP1_CHANGE: 'Top-1, points against the original',
  AGREEMENT: 'Same answers as the original',
  SNR: 'Signal to noise',
};

export const MEASURE_WORDS: Record<TuneMeasure, string> = {
  MEASURE_UNSPECIFIED: 'the bound', TOP1_CHANGE: 'points of top-1', AGREEMENT: 'same answers', SNR: 'signal to noise',
};

/** How answers are judged; unspecified until the first jobs have ended. */
export function measureOf(tune: Tune): TuneMeasure {
  const found = tune.report?.measure;
  return found && found !== 'MEASURE_UNSPECIFIED' ? found : tune.spec?.measure ?? 'MEASURE_UNSPECIFIED';
}

const DEFAULT_BOUNDS: Record<TuneMeasure, number> = { MEASURE_UNSPECIFIED: NaN, TOP1_CHANGE: -0.5, AGREEMENT: 98, SNR: 20 };

export function boundOf(tune: Tune, measure = measureOf(tune)): number {
  if (tune.report && tune.report.measure !== 'MEASURE_UNSPECIFIED') return tune.report.bound;
  return tune.spec?.bound ?? DEFAULT_BOUNDS[measure];
}

/** "the fastest with at least −0.5 points of top-1" */
export function goalOf(tune: Tune): string {
  const best = tune.spec?.objective === 'SIZE' ? 'smallest' : 'fastest';
  const measure = measureOf(tune);
  const bound = boundOf(tune, measure);
  if (Number.isNaN(bound)) return `${best} that keeps the usual bound`;
  if (measure === 'SNR') return `${best} with at least ${decibels(bound)}`;
  return `${best} with at least ${qualityText(bound, measure)} ${MEASURE_WORDS[measure]}`;
}

/** What counts: held-out samples where a variant was judged on them. */
export function shownQuality(variant: TunedVariant): number {
  return variant.held_out_quality ?? variant.quality;
}

export function recommendedOf(device: TunedDevice): TunedVariant | undefined {
  const named = device.variants.filter((variant) => variant.name === device.recommended);
  return named.find((variant) => variant.threads === device.recommended_threads) ?? named[0];
}

/** "int8 on pi4 and pixel7, weights8 on pi5" */
function placesText(devices: readonly TunedDevice[]): string {
  const places = new Map<string, string[]>();
  for (const { device, recommended } of devices) {
    if (recommended !== '') places.set(recommended, [...places.get(recommended) ?? [], device]);
  }
  return [...places].map(([name, on]) => `${name} on ${on.join(on.length === 2 ? ' and ' : ', ')}`).join('; ');
}

/** The tune in one sentence. */
export function tuneSentence(tune: Tune): Sentence {
  const devices = tune.report?.devices ?? [];
  const found = devices.filter((device) => device.recommended !== '');
  if (tune.state === 'TUNE_FAILED') return { tone: 'bad', headline: 'Failed', reason: tune.failure };
  if (tune.state === 'TUNE_CANCELLED') return { tone: 'calm', headline: 'Cancelled', reason: tune.failure };
  const soFar = found.length > 0 ? `best so far: ${placesText(devices)}` : '';
  if (isRunning(tune)) {
    return { tone: 'busy', headline: 'Searching', reason: [tune.progress, soFar].filter((text) => text !== '').join('; ') };
  }
  if (found.length === 0) return { tone: 'bad', headline: 'Nothing keeps the bound', reason: `on ${devices.map((one) => one.device).join(', ')}` };
  const missing = devices.filter((device) => device.recommended === '').map((device) => device.device);
  if (missing.length > 0) {
    return { tone: 'unsure', headline: 'Ship it on some devices', reason: `${placesText(devices)}; nothing keeps the bound on ${missing.join(', ')}` };
  }
  const names = new Set(found.map((device) => device.recommended));
  if (names.size > 1) return { tone: 'good', headline: 'Ship one for each device', reason: placesText(devices) };
  return { tone: 'good', headline: `Ship ${[...names][0]}`, reason: `on ${devices.map((one) => one.device).join(', ')}` };
}

export function toneOfVariant(variant: TunedVariant, device: TunedDevice): Tone {
  if (variant.name === device.recommended) return 'good';
  if (!variant.meets_bound) return 'bad';
  return variant.dominated ? 'calm' : 'busy';
}

/** "2.50× (2.43 to 2.57)" */
export function speedupText(variant: TunedVariant): string {
  const side = (value: number) => value.toFixed(2);
  return variant.speedup_low > 0
    ? `${times(variant.speedup)} (${side(variant.speedup_low)} to ${side(variant.speedup_high)})` : times(variant.speedup);
}

export function latencyText(variant: TunedVariant): string {
  return variant.latency_low_us > 0
    ? `${micros(variant.latency_us)} (${micros(variant.latency_low_us)} to ${micros(variant.latency_high_us)})` : micros(variant.latency_us);
}

/** UNITS: share of the budget that has gone; NaN without a budget. */
export function budgetShare(tune: Tune, now: number): number {
  const budget = budgetSeconds(tune);
  const end = isRunning(tune) ? now : when(tune.end_time);
  return (end - when(tune.create_time)) / 1000 / budget;
}

export function budgetSeconds(tune: Tune): number {
  const text = tune.spec?.budget;
  return typeof text === 'string' ? Number(text.replace(/s$/, '')) : NaN;
}

/** A point that a job has measured, and that the search has not learned from yet. */
export interface Provisional {
  name: string;
  jobId: string;
  latency: number;
  low: number;
  high: number;
  size: number;
  ratio: number;
  quality: number;
}

export function measureOfReport(report: Report): TuneMeasure {
  if (report.paired_accuracy) return 'TOP1_CHANGE';
  return report.outputs_compared.some((output) => output.top1_agreement >= 0) ? 'AGREEMENT' : 'SNR';
}

function qualityOfReport(report: Report, measure: TuneMeasure): number {
  if (measure === 'TOP1_CHANGE') return report.paired_accuracy?.change ?? NaN;
  const least = (values: number[]) => (values.length > 0 ? Math.min(...values) : NaN);
  if (measure === 'AGREEMENT') {
    return 100 * least(report.outputs_compared.map((output) => output.top1_agreement).filter((share) => share >= 0));
  }
  return least(report.outputs_compared.map((output) => Math.max(-200, Math.min(200, num(output.snr_db)))));
}

/** A recipe of a tune without the mark that its jobs bear. */
export function variantOfJob(job: Job): string {
  return (job.spec?.recipe?.name ?? '').replace(/^tune-/, '') || 'candidate';
}

export function provisionalOf(job: Job, device: string, measure: TuneMeasure): Provisional | undefined {
  const verdict = job.verdicts.find((one) => one.device === device && one.answer !== 'BASELINE');
  const float = job.measurements.find((one) => one.device === device && one.variant === 'float');
  if (!verdict || !float || !job.report || !(verdict.speedup > 0)) return undefined;
  const at = (speedup: number) => (speedup > 0 ? float.median_us / speedup : NaN);
  return {
    name: variantOfJob(job), jobId: job.job_id, latency: at(verdict.speedup), low: at(verdict.speedup_high), high: at(verdict.speedup_low),
    size: num(verdict.file_size_bytes), ratio: verdict.size_ratio, quality: qualityOfReport(job.report, measure),
  };
}

/** Jobs that tell something before the search has learned from them. */
export function newsOf(tune: Tune, jobs: readonly Job[]): string[] {
  const known = new Set((tune.report?.devices ?? []).flatMap((device) => device.variants.map((variant) => variant.job_id)));
  return jobs
    .filter((job) => hasEnded(job) && !known.has(job.job_id) && (job.spec?.benchmark?.devices.length ?? 0) > 0)
    .map((job) => job.job_id);
}

function dataFlags(tune: Tune): string[] {
  const flags: string[] = [];
  for (const source of tune.spec?.job?.calibration?.sources ?? []) {
    if (source.role === 'LABELS') flags.push('--labels=FILE');
    else flags.push(source.input === '' ? '--calibration=FOLDER' : `--calibration=${quoted(source.input)}=FILE.npy`);
    const scale = source as { mean?: number; std?: number };
    if (scale.mean !== undefined) flags.push(`--input_mean=${scale.mean}`);
    if (scale.std !== undefined) flags.push(`--input_std=${scale.std}`);
  }
  return flags;
}

function goalFlags(tune: Tune): string[] {
  const spec = tune.spec;
  const flags: string[] = [];
  if (!spec) return flags;
  const bounds: Partial<Record<TuneMeasure, string>> = { TOP1_CHANGE: 'min_top1', AGREEMENT: 'min_agreement', SNR: 'min_snr' };
  const name = bounds[spec.measure];
  if (name && spec.bound !== undefined) flags.push(`--${name}=${spec.bound}`);
  flags.push(`--objective=${spec.objective === 'SIZE' ? 'size' : 'latency'}`);
  if (!Number.isNaN(budgetSeconds(tune))) flags.push(`--budget=${budgetSeconds(tune)}s`);
  const threads = spec.thread_counts.length > 0 ? spec.thread_counts : [spec.threads || 1];
  if (threads.length > 1 || threads[0] !== 1) flags.push(`--threads=${threads.join(',')}`);
  if (spec.cpus.length > 0) flags.push(`--cpus=${spec.cpus.join(',')}`);
  if (spec.max_measured > 0) flags.push(`--max_measured=${spec.max_measured}`);
  if (spec.calibration_samples > 0) flags.push(`--calibration_samples=${spec.calibration_samples}`);
  if (num(spec.seed) > 1) flags.push(`--seed=${spec.seed}`);
  if (spec.one_for_all) flags.push('--one_for_all');
  if (spec.fresh) flags.push('--fresh');
  return flags;
}

/** The commands that tune again, and that fetch what was found. */
export function commandsOfTune(tune: Tune): { title: string; command: string }[] {
  const job = tune.spec?.job;
  const ends = [
    ...(job?.inputs.length ? [`--inputs=${quoted(job.inputs.map((input) => input.name).join(','))}`] : []),
    ...(job?.outputs.length ? [`--outputs=${quoted(job.outputs.join(','))}`] : []),
  ];
  const devices = (tune.spec?.devices ?? []).map((device) => `--device=${quoted(device)}`);
  return [
    { title: 'Tune again; what is measured already is not measured twice',
      command: ['optctl tune', quoted(modelOfTune(tune)), ...dataFlags(tune), ...ends, ...devices, ...goalFlags(tune), '--out_dir=tuned'].join(' ') },
    { title: 'Fetch what was found: models, their recipes, pictures and numbers',
      command: `optctl tunes show ${quoted(tune.tune_id)} --out_dir=tuned` },
  ];
}

/** "9 of 77 variants measured, devices busy for 36 s" */
export function effortText(tune: Tune): string {
  const report = tune.report;
  if (!report || report.measured === 0) return '';
  return `${report.measured} of ${plural(report.considered, 'variant')} measured, devices busy for ${span(report.device_seconds)}`;
}
