// The variants of a tune on one device in one picture: latency against quality
// or size, with intervals. What another beats is faint; what to ship stands out.

import { useEffect, useState } from 'preact/hooks';
import { bytes, micros, num, times } from '../lib/format';
import { to } from '../lib/route';
import { latencyText, MEASURE_TITLES, qualityText, shownQuality, speedupText, type Provisional } from '../lib/tune';
import type { TunedDevice, TunedVariant, TuneMeasure } from '../lib/types';
import { placeLabels, ticks, type Box } from './plot';

export type TuneAxis = 'quality' | 'size';

interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

// UNITS: pixels of the picture. The second is for phones, where letters of the
// first would be too small.
const FRAME: Frame = { width: 620, height: 372, left: 70, right: 604, top: 30, bottom: 322 };
const NARROW: Frame = { width: 390, height: 344, left: 62, right: 380, top: 30, bottom: 294 };
const PHONE = '(max-width: 520px)';
const LEAST_RADIUS = 4.5;
const MOST_RADIUS = 10;
// The least that an axis of quality spans, in its unit.
const LEAST_SPANS: Record<TuneMeasure, number> = { MEASURE_UNSPECIFIED: 1, TOP1_CHANGE: 1, AGREEMENT: 2, SNR: 6 };

interface Point {
  name: string;
  jobId: string;
  latency: number;
  low: number;
  high: number;
  /** On the second axis; its interval is NaN without one. */
  value: number;
  valueLow: number;
  valueHigh: number;
  ratio: number;
  kind: 'ship' | 'front' | 'beaten' | 'missed' | 'new';
  text: string;
}

function describe(variant: TunedVariant, measure: TuneMeasure): string {
  const judged = variant.held_out_quality !== undefined ? 'held out' : 'while searching';
  return `${latencyText(variant)}, ${speedupText(variant)} the speed, ${bytes(num(variant.file_bytes))} (${times(variant.size_ratio)}), ` +
    `${qualityText(shownQuality(variant), measure)} ${judged}`;
}

function pointOf(variant: TunedVariant, device: TunedDevice, axis: TuneAxis, measure: TuneMeasure): Point {
  const ship = variant.name === device.recommended;
  return {
    name: variant.name, jobId: variant.job_id, latency: variant.latency_us, low: variant.latency_low_us, high: variant.latency_high_us,
    value: axis === 'size' ? num(variant.file_bytes) : shownQuality(variant),
    valueLow: axis === 'size' ? NaN : variant.held_out_low ?? NaN, valueHigh: axis === 'size' ? NaN : variant.held_out_high ?? NaN,
    ratio: variant.size_ratio, kind: ship ? 'ship' : !variant.meets_bound ? 'missed' : variant.dominated ? 'beaten' : 'front',
    text: describe(variant, measure),
  };
}

function pointsOf(device: TunedDevice, news: readonly Provisional[], axis: TuneAxis, measure: TuneMeasure): Point[] {
  const known = device.variants.map((variant) => pointOf(variant, device, axis, measure));
  const fresh = news.map((one): Point => ({
    name: one.name, jobId: one.jobId, latency: one.latency, low: one.low, high: one.high,
    value: axis === 'size' ? one.size : one.quality, valueLow: NaN, valueHigh: NaN, ratio: one.ratio, kind: 'new',
    text: `${micros(one.latency)}, ${bytes(one.size)}, ${qualityText(one.quality, measure)}; the search has not learned from it yet`,
  }));
  return [...known, ...fresh].filter((point) => point.latency > 0 && !Number.isNaN(point.value));
}

interface Scale {
  low: number;
  high: number;
  at: (value: number) => number;
}

function scaleOf(low: number, high: number, from: number, until: number): Scale {
  const clamp = (value: number) => Math.min(high, Math.max(low, value));
  return { low, high, at: (value) => from + (until - from) * (clamp(value) - low) / (high - low || 1) };
}

/** Latency: the points and the original; bars that are longer end at the edge. */
function latencyScale(points: readonly Point[], original: number, frame: Frame): Scale {
  const values = [...points.map((point) => point.latency), ...(original > 0 ? [original] : [])];
  const low = Math.min(...values, ...points.map((point) => point.low || Infinity));
  const high = Math.max(...values);
  const room = (high - low) * 0.08 || high * 0.1;
  return scaleOf(Math.max(0, low - room), high + room, frame.left, frame.right);
}

/** One that is far below the bound must not flatten the others. */
function valueScale(points: readonly Point[], axis: TuneAxis, measure: TuneMeasure, bound: number, frame: Frame): Scale {
  const sides = points.flatMap((point) => [point.value, point.valueLow, point.valueHigh]).filter((value) => !Number.isNaN(value));
  let low = Math.min(...sides);
  let high = Math.max(...sides);
  if (axis === 'quality') {
    const least = LEAST_SPANS[measure];
    if (!Number.isNaN(bound)) {
      low = Math.min(low, bound);
      high = Math.max(high, bound);
      low = Math.max(low, bound - 3 * Math.max(high - bound, least));
    }
    const more = Math.max(0, least - (high - low)) / 2;
    low -= more;
    high += more;
  }
  const room = (high - low) * 0.1 || high * 0.1 || 1;
  return scaleOf(axis === 'size' ? Math.max(0, low - room) : low - room, high + room, frame.bottom, frame.top);
}

function Rules({ x, y, axis, measure, frame }: { x: Scale; y: Scale; axis: TuneAxis; measure: TuneMeasure; frame: Frame }) {
  const format = (value: number) => (axis === 'size' ? bytes(value) : qualityText(value, measure));
  return (
    <>
      {ticks(x.low, x.high, frame === NARROW ? 3 : 5).map((value) => (
        <g key={`x${value}`}><line class="rule" x1={x.at(value)} x2={x.at(value)} y1={frame.top} y2={frame.bottom} />
          <text x={x.at(value)} y={frame.bottom + 18} text-anchor="middle">{micros(value)}</text></g>
      ))}
      {ticks(y.low, y.high).map((value) => (
        <g key={`y${value}`}><line class="rule" x1={frame.left} x2={frame.right} y1={y.at(value)} y2={y.at(value)} />
          <text x={frame.left - 8} y={y.at(value) + 4} text-anchor="end">{format(value)}</text></g>
      ))}
      <line class="axis" x1={frame.left} x2={frame.right} y1={frame.bottom} y2={frame.bottom} />
      <line class="axis" x1={frame.left} x2={frame.left} y1={frame.top} y2={frame.bottom} />
      <text x={frame.right} y={frame.height - 8} text-anchor="end">median latency, left is better</text>
      <text x={8} y={14}>{axis === 'size' ? 'File size, down is better' : `${MEASURE_TITLES[measure]}, up is better`}</text>
    </>
  );
}

const LOOK: Record<Point['kind'], { color: string; fill: string; opacity: number }> = {
  ship: { color: 'var(--good)', fill: 'var(--good)', opacity: 1 },
  front: { color: 'var(--optimized)', fill: 'var(--optimized)', opacity: 1 },
  beaten: { color: 'var(--float)', fill: 'var(--float)', opacity: 0.34 },
  missed: { color: 'var(--bad)', fill: 'var(--surface)', opacity: 0.75 },
  new: { color: 'var(--busy)', fill: 'var(--surface)', opacity: 1 },
};

function radiusOf(point: Point): number {
  const radius = Math.min(MOST_RADIUS, Math.max(LEAST_RADIUS, MOST_RADIUS * Math.sqrt(point.ratio || 0.25)));
  return point.kind === 'ship' ? radius + 2 : radius;
}

function Mark({ point, x, y, pointAt }: { point: Point; x: Scale; y: Scale; pointAt: (point: Point | undefined) => void }) {
  const look = LOOK[point.kind];
  const [cx, cy, r] = [x.at(point.latency), y.at(point.value), radiusOf(point)];
  const below = point.value < y.low;
  return (
    <a href={to('jobs', point.jobId)} aria-label={`${point.name}: ${point.text}${point.kind === 'ship' ? ', recommended' : ''}`}
      onMouseEnter={() => pointAt(point)} onFocus={() => pointAt(point)} onMouseLeave={() => pointAt(undefined)} onBlur={() => pointAt(undefined)}>
      <g stroke={look.color} fill={look.fill} opacity={look.opacity} stroke-width="1.6">
        {point.low > 0 && <path d={`M${x.at(point.low)} ${cy}H${x.at(point.high)}m0 -3.5v7M${x.at(point.low)} ${cy - 3.5}v7`} fill="none" />}
        {!Number.isNaN(point.valueLow) && (
          <path d={`M${cx} ${y.at(point.valueLow)}V${y.at(point.valueHigh)}m-3.5 0h7M${cx - 3.5} ${y.at(point.valueLow)}h7`} fill="none" opacity="0.45" />
        )}
        {point.kind === 'ship' && <circle cx={cx} cy={cy} r={r + 5} fill="none" opacity="0.5" />}
        {below ? <path d={`M${cx - r} ${cy - r}h${2 * r}l${-r} ${1.4 * r}z`} />
          : <circle cx={cx} cy={cy} r={r} stroke-width="2" stroke-dasharray={point.kind === 'new' ? '3 3' : undefined} />}
      </g>
    </a>
  );
}

/** Names beside the points: what matters first, others where there is room. */
function Names({ points, x, y, frame }: { points: readonly Point[]; x: Scale; y: Scale; frame: Frame }) {
  const order: Point['kind'][] = ['ship', 'front', 'new', 'missed', 'beaten'];
  const sorted = [...points].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  const taken = sorted.flatMap((point): Box[] => {
    const r = radiusOf(point);
    const [cx, cy] = [x.at(point.latency), y.at(point.value)];
    const dot = { left: cx - r, right: cx + r, top: cy - r, bottom: cy + r };
    return point.low > 0 ? [dot, { left: x.at(point.low), right: x.at(point.high), top: cy - 2, bottom: cy + 2 }] : [dot];
  });
  const labels = placeLabels(sorted.map((point) => ({
    text: point.kind === 'ship' ? `ship ${point.name}` : point.name, x: x.at(point.latency), y: y.at(point.value), radius: radiusOf(point) + (point.kind === 'ship' ? 5 : 0),
  })), taken, { left: 4, right: frame.width - 4, top: frame.top - 8, bottom: frame.bottom });
  return (
    <>
      {sorted.map((point, index) => {
        const label = labels[index];
        return label && (
          <text key={point.jobId + point.name} x={label.x} y={label.y} text-anchor={label.anchor} class={`name ${point.kind}`}>{label.text}</text>
        );
      })}
    </>
  );
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(PHONE).matches);
  useEffect(() => {
    const query = matchMedia(PHONE);
    const change = () => setNarrow(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  return narrow;
}

export function TunePlot({ device, news, axis, measure, bound }: {
  device: TunedDevice;
  news: readonly Provisional[];
  axis: TuneAxis;
  measure: TuneMeasure;
  bound: number;
}) {
  const [pointed, setPointed] = useState<Point>();
  const frame = useNarrow() ? NARROW : FRAME;
  const points = pointsOf(device, news, axis, measure);
  if (points.length === 0) return <p class="muted" style={{ padding: '30px 0' }}>Nothing is measured here yet.</p>;
  const x = latencyScale(points, device.float_us, frame);
  const y = valueScale(points, axis, measure, bound, frame);
  const told = pointed ?? points.find((point) => point.kind === 'ship') ?? points[0]!;
  const hasBound = axis === 'quality' && !Number.isNaN(bound);
  const original = x.at(device.float_us);
  const late = original > frame.right - 24;
  const front = points.filter((point) => point.kind === 'ship' || point.kind === 'front').sort((a, b) => a.latency - b.latency);
  return (
    <figure class="tune-plot">
      <svg class="plot" viewBox={`0 0 ${frame.width} ${frame.height}`} role="group" aria-label={`Variants on ${device.device}`}>
        {hasBound && <rect class="forbidden" x={frame.left} width={frame.right - frame.left} y={y.at(bound)} height={frame.bottom - y.at(bound)} />}
        <Rules x={x} y={y} axis={axis} measure={measure} frame={frame} />
        {hasBound && (
          <>
            <line class="bound" x1={frame.left} x2={frame.right} y1={y.at(bound)} y2={y.at(bound)} />
            <text class="bound" x={frame.left + 6} y={frame.bottom - 7}>bound {qualityText(bound, measure)}</text>
          </>
        )}
        {device.float_us > 0 && (
          <>
            <line class="original" x1={original} x2={original} y1={frame.top} y2={frame.bottom} />
            <text x={late ? frame.right : original} y={frame.top - 5} text-anchor={late ? 'end' : 'middle'}>original</text>
          </>
        )}
        <polyline fill="none" stroke="var(--optimized)" stroke-width="1.3" stroke-dasharray="4 4" opacity="0.55"
          points={front.map((point) => `${x.at(point.latency)},${y.at(point.value)}`).join(' ')} />
        {[...points].reverse().map((point) => <Mark key={point.jobId + point.name} point={point} x={x} y={y} pointAt={setPointed} />)}
        <Names points={points} x={x} y={y} frame={frame} />
      </svg>
      <figcaption><b>{told.name}</b> {told.text}</figcaption>
    </figure>
  );
}

export function TuneKeys({ live }: { live: boolean }) {
  return (
    <p class="keys">
      <span class="key ship">to ship</span><span class="key optimized">worth having</span><span class="key beaten">another is better</span>
      <span class="key missed">misses the bound</span>{live && <span class="key new">just measured</span>}
      <span class="small muted">Bars: 95 % intervals. Larger points: larger files. A point opens its job.</span>
    </p>
  );
}
