// A table whose columns sort, and whose rows are made as one scrolls to them:
// a hundred thousand rows cost as much as forty.

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

export interface Column<Row> {
  title: string;
  /** Right-aligned. */
  number?: boolean;
  /** Left out on a phone. */
  wide?: boolean;
  /** UNITS: pixels or percent; for tables whose layout is fixed. */
  width?: string;
  show: (row: Row) => ComponentChildren;
  /** What to sort by; a column without does not sort. */
  key?: (row: Row) => string | number;
}

interface Props<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  id: (row: Row) => string;
  /** UNITS: pixels. Rows have this height, and only those in sight are made. */
  rowHeight?: number;
  /** More rows are wanted. */
  onEnd?: (() => void) | undefined;
  className?: string;
  rowClass?: (row: Row) => string;
}

const SPARE = 12;

/** The rows in sight: [first, end). */
function useWindow(count: number, height: number | undefined) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    if (height === undefined) return undefined;
    const measure = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - SPARE);
      // A table that begins far below the window has no row in sight.
      const end = Math.max(first, Math.ceil((window.innerHeight - top) / height)) + SPARE;
      setRange((before) => (before[0] === first && before[1] === end ? before : [first, end]));
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [count, height]);
  if (height === undefined) return { body, first: 0, end: count };
  return { body, first: Math.min(range[0], count), end: Math.min(range[1], count) };
}

export function Table<Row>(props: Props<Row>) {
  const { columns, rows, rowHeight } = props;
  const [order, setOrder] = useState<{ column: number; down: boolean }>();
  const sorted = useMemo(() => {
    const key = order && columns[order.column]?.key;
    if (!key) return rows;
    const keyed = rows.map((row) => ({ row, value: key(row) }));
    keyed.sort((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : 0));
    if (order.down) keyed.reverse();
    return keyed.map(({ row }) => row);
  }, [rows, order, columns.length]);
  const { body, first, end } = useWindow(sorted.length, rowHeight);
  const { onEnd } = props;
  useEffect(() => {
    if (onEnd && end >= sorted.length - SPARE) onEnd();
  }, [end, sorted.length, onEnd]);
  const sort = (column: number) =>
    setOrder((before) => (before?.column !== column ? { column, down: columns[column]!.number === true }
      : before.down === (columns[column]!.number === true) ? { column, down: !before.down } : undefined));
  const cellClass = (column: Column<Row>) =>
    [column.number ? 'number' : '', column.wide ? 'wide-only' : ''].join(' ').trim();
  return (
    <div class={`scroll ${props.className ?? ''}`} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={rowHeight ? sorted.length + 1 : undefined}>
        <thead>
          <tr>
            {columns.map((column, index) => {
              const down = order?.column === index ? order.down : undefined;
              return (
                <th key={column.title} scope="col" class={cellClass(column)} style={{ width: column.width }}
                  aria-sort={down === undefined ? undefined : down ? 'descending' : 'ascending'}>
                  {column.key
                    ? <button type="button" onClick={() => sort(index)}>
                        {column.title}{down === undefined ? '' : down ? ' ↓' : ' ↑'}
                      </button>
                    : column.title}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody ref={body}>
          {first > 0 && <tr aria-hidden="true" style={{ height: `${first * rowHeight!}px` }} />}
          {sorted.slice(first, end).map((row, index) => (
            <tr key={props.id(row)} class={props.rowClass?.(row)} aria-rowindex={rowHeight ? first + index + 2 : undefined}>
              {columns.map((column) => (
                <td key={column.title} class={cellClass(column)}>{column.show(row)}</td>
              ))}
            </tr>
          ))}
          {end < sorted.length && <tr aria-hidden="true" style={{ height: `${(sorted.length - end) * rowHeight!}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
