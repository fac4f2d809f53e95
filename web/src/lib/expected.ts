// What a series' past lets one expect of its next point.

// UNITS: points. The server judges regressions by as many.
const WINDOW = 19;
const LEAST = 4;
// Of scaled median deviations, to both sides: a point that nothing has changed
// lies outside in one of some hundred cases.
const REACH = 3;
// A change of less is nothing to look at.
const LEAST_SHARE = 0.03;

function median(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const rising = (a: number, b: number) => a - b;

/** For each point a band around the median of those before it; NaN for the first few. */
export function expectedOf(values: readonly number[]): { lower: number[]; upper: number[] } {
  const lower: number[] = [];
  const upper: number[] = [];
  values.forEach((_value, index) => {
    const past = values.slice(Math.max(0, index - WINDOW), index);
    if (past.length < LEAST) {
      lower.push(NaN);
      upper.push(NaN);
      return;
    }
    const middle = median(past.sort(rising));
    const deviation = 1.4826 * median(past.map((value) => Math.abs(value - middle)).sort(rising));
    const reach = Math.max(REACH * deviation, LEAST_SHARE * Math.abs(middle));
    lower.push(middle - reach);
    upper.push(middle + reach);
  });
  return { lower, upper };
}
