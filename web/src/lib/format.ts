// Numbers, times and names as people read them.

/** A number of the API, where 64-bit ones and infinities are strings. */
export function num(value: string | number | undefined | null): number {
  if (value === undefined || value === null || value === '') return NaN;
  return Number(value);
}

/** Three significant digits. */
export function digits(value: number, significant = 3): string {
  if (Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size >= 10 ** (significant - 1)) return Math.round(value).toLocaleString('en');
  if (size === 0) return '0';
  if (size < 1e-4) return value.toExponential(significant - 1).replace(/-/g, '−');
  const shown = Number(value.toPrecision(significant));
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(shown))));
  return shown.toFixed(Math.min(places, 9)).replace('-', '−');
}

function scaled(value: number, step: number, units: readonly string[]): string {
  if (Number.isNaN(value)) return '–';
  let index = 0;
  // 999.5 would be printed as 1000.
  while (Math.abs(value) >= 0.9995 * step && index + 1 < units.length) {
    value /= step;
    index += 1;
  }
  return `${digits(value)} ${units[index]}`;
}

/** A time of a run, given in microseconds. */
export function micros(us: number): string {
  if (!(us > 0)) return us === 0 ? '0 µs' : '–';
  if (us < 1) return `${digits(us * 1000)} ns`;
  return scaled(us, 1000, ['µs', 'ms', 's']);
}

/** A size of a file or of memory. */
export function bytes(count: number): string {
  return scaled(count, 1000, ['B', 'kB', 'MB', 'GB', 'TB']);
}

/** "1.80×" */
export function times(ratio: number): string {
  if (!Number.isFinite(ratio) || ratio === 0) return '–';
  return `${ratio.toFixed(Math.abs(ratio) < 10 ? 2 : 1)}×`;
}

/** A share between 0 and 1 with the digits that it needs to differ from 100 %. */
export function share(fraction: number): string {
  if (!Number.isFinite(fraction)) return '–';
  const percent = fraction * 100;
  let places = 1;
  while (places < 4 && percent < 100 && percent.toFixed(places).startsWith('100')) places += 1;
  return `${percent.toFixed(places)} %`;
}

/** Percentage points with their sign. */
export function points(change: number): string {
  if (!Number.isFinite(change)) return '–';
  if (Math.abs(change) < 0.05) return '±0.0';
  return `${change > 0 ? '+' : '−'}${Math.abs(change).toFixed(1)}`;
}

export function decibels(db: number): string {
  if (Number.isNaN(db)) return '–';
  return Number.isFinite(db) ? `${db.toFixed(1)} dB` : 'exact';
}

/** "4 min 10 s", given in seconds. */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function when(time: string | undefined): number {
  return time === undefined || time === '' ? NaN : Date.parse(time);
}

/** "3 min ago", "in 2 h". */
export function ago(time: string | undefined, now: number): string {
  const then = when(time);
  if (Number.isNaN(then)) return '–';
  const seconds = (now - then) / 1000;
  const size = Math.abs(seconds);
  let text;
  if (size < 10) return 'now';
  if (size < 60) text = `${Math.floor(size)} s`;
  else if (size < 3600) text = `${Math.floor(size / 60)} min`;
  else if (size < 48 * 3600) text = `${Math.floor(size / 3600)} h`;
  else text = `${Math.floor(size / 86400)} days`;
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}

/** "2026-11-23 14:05:09", in the reader's time zone. */
export function clock(time: string | number | undefined): string {
  const then = typeof time === 'number' ? time : when(time);
  if (Number.isNaN(then)) return '–';
  const date = new Date(then);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** "JOB_STATE" as "job state". */
export function words(constant: string): string {
  return constant.toLowerCase().replace(/_/g, ' ');
}

/** A value for a shell's command line. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
