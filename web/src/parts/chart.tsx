// Long series over time, drawn by uPlot.

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';

export interface Line {
  label: string;
  /** A custom property of the stylesheet, "--series-1". */
  color: string;
  /** UNITS: seconds since 1970, rising. */
  times: number[];
  values: number[];
  /** The edges of a band behind the values; NaN where there is none. */
  lower: number[];
  upper: number[];
  /** Points that are drawn hollow: they should not be trusted. */
  doubtful: boolean[];
  /** Points that are worse than those before them. */
  marked: boolean[];
}

interface Props {
  label: string;
  lines: Line[];
  format: (value: number) => string;
  onPick: (line: number, point: number) => void;
}

const probe = document.createElement('i');

/** A colour of the stylesheet: the property itself is a light-dark() of two. */
function colorOf(name: string): string {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** All lines on one axis of time; a line without a point at a time has null there. */
function aligned(lines: Line[]): { data: uPlot.AlignedData; index: Map<number, number>[] } {
  const times = [...new Set(lines.flatMap((line) => line.times))].sort((a, b) => a - b);
  const index = lines.map((line) => new Map(line.times.map((time, point) => [time, point])));
  const columns: (number | null)[][] = [];
  lines.forEach((line, number) => {
    const at = index[number]!;
    const column = (values: number[]) => times.map((time) => {
      const point = at.get(time);
      const value = point === undefined ? NaN : values[point]!;
      return Number.isNaN(value) ? null : value;
    });
    columns.push(column(line.values), column(line.upper), column(line.lower));
  });
  return { data: [times, ...columns] as uPlot.AlignedData, index };
}

function drawPoints(lines: Line[], index: Map<number, number>[], colors: string[], bad: string, ground: string) {
  return (plot: uPlot) => {
    const { ctx } = plot;
    const ratio = devicePixelRatio;
    lines.forEach((line, number) => {
      // Thousands of points are a line.
      const few = line.times.length <= 400;
      for (const [time, point] of index[number]!) {
        if (!few && !line.marked[point]) continue;
        const x = plot.valToPos(time, 'x', true);
        const y = plot.valToPos(line.values[point]!, 'y', true);
        if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
        ctx.beginPath();
        ctx.arc(x, y, (line.marked[point] ? 6 : 3.5) * ratio, 0, 2 * Math.PI);
        ctx.fillStyle = line.doubtful[point] ? ground : line.marked[point] ? bad : colors[number]!;
        ctx.strokeStyle = line.marked[point] ? bad : colors[number]!;
        ctx.lineWidth = 1.6 * ratio;
        ctx.fill();
        ctx.stroke();
      }
    });
  };
}

function options(props: Props, width: number, index: Map<number, number>[]): uPlot.Options {
  const colors = props.lines.map((line) => colorOf(line.color));
  const muted = colorOf('--muted');
  const grid = { stroke: colorOf('--line'), width: 1 };
  const font = '12px system-ui, sans-serif';
  return {
    width,
    height: 340,
    legend: { show: false },
    cursor: { points: { size: 9 }, drag: { x: true, y: false } },
    scales: {
      // One moment alone is given an hour to each side.
      x: { range: (_plot, low, high) => (high > low ? [low, high] : [low - 3600, low + 3600]) },
      y: { range: (_plot, low, high) => [Math.max(0, low - (high - low) * 0.15), high + (high - low || high) * 0.12] },
    },
    axes: [
      { stroke: muted, grid, ticks: grid, font },
      { stroke: muted, grid, ticks: grid, font, size: 76, values: (_plot, values) => values.map(props.format) },
    ],
    series: [
      {},
      ...props.lines.flatMap((line, number): uPlot.Series[] => [
        { label: line.label, stroke: colors[number]!, width: 1.8, spanGaps: true, points: { show: false } },
        { stroke: 'transparent', spanGaps: true, points: { show: false } },
        { stroke: 'transparent', spanGaps: true, points: { show: false } },
      ]),
    ],
    bands: props.lines.map((_line, number): uPlot.Band => (
      { series: [3 * number + 2, 3 * number + 3], fill: colors[number]!.replace(/rgb\(([^)]*)\)/, 'rgba($1, 0.12)') })),
    hooks: { draw: [drawPoints(props.lines, index, colors, colorOf('--bad'), colorOf('--surface'))] },
  };
}

/** The point nearest to the cursor, as [line, point]. */
function nearest(plot: uPlot, lines: Line[], index: Map<number, number>[]): [number, number] | undefined {
  const { left, top } = plot.cursor;
  if (left === undefined || top === undefined || left < 0) return undefined;
  let best: [number, number] | undefined;
  let distance = 30 ** 2;
  lines.forEach((line, number) => {
    for (const [time, point] of index[number]!) {
      const dx = plot.valToPos(time, 'x') - left;
      const dy = plot.valToPos(line.values[point]!, 'y') - top;
      if (dx * dx + dy * dy < distance) {
        distance = dx * dx + dy * dy;
        best = [number, point];
      }
    }
  });
  return best;
}

export function Chart(props: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [theme, setTheme] = useState(0);
  const pick = useRef(props.onPick);
  pick.current = props.onPick;
  useEffect(() => {
    const change = () => setTheme((before) => before + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    addEventListener('themechange', change);
    system.addEventListener('change', change);
    return () => {
      removeEventListener('themechange', change);
      system.removeEventListener('change', change);
    };
  }, []);
  useEffect(() => {
    const box = element.current;
    if (!box) return undefined;
    const { data, index } = aligned(props.lines);
    const plot = new uPlot(options(props, box.clientWidth, index), data, box);
    const click = () => {
      const found = nearest(plot, props.lines, index);
      if (found) pick.current(...found);
    };
    plot.over.addEventListener('click', click);
    const resized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 340 }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [props.lines, theme]);
  return <div class="chart" ref={element} role="img" aria-label={props.label} />;
}

/** A line without axes, for lists. */
export function Spark({ values, label }: { values: number[]; label: string }) {
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const step = 116 / Math.max(1, values.length - 1);
  const path = values.map((value, index) =>
    `${index === 0 ? 'M' : 'L'}${(2 + index * step).toFixed(1)} ${(24 - 20 * (value - low) / range).toFixed(1)}`).join('');
  const last = values[values.length - 1] ?? low;
  return (
    <svg class="spark" viewBox="0 0 120 28" role="img" aria-label={label}>
      <path d={path} fill="none" stroke="var(--optimized)" stroke-width="1.5" />
      <circle cx={2 + (values.length - 1) * step} cy={24 - 20 * (last - low) / range} r="2.4" fill="var(--optimized)" />
    </svg>
  );
}
