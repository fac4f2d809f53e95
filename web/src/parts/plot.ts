// What pictures with two axes share: round numbers, and names beside points.

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Label {
  text: string;
  x: number;
  y: number;
  anchor: 'start' | 'middle' | 'end';
}

// UNITS: pixels of a picture, for letters of plots.
const LETTER_WIDTH = 6.4;
const LETTER_HEIGHT = 12;
const GAP = 4;

/** About `count` round numbers between low and high. */
export function ticks(low: number, high: number, count = 5): number[] {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw) ?? raw;
  const first = Math.ceil(low / step) * step;
  // Sums of steps are not round: 0.30000000000000004.
  const round = (value: number) => Number(value.toPrecision(12)) || 0;
  return Array.from({ length: 12 }, (_, index) => round(first + index * step)).filter((value) => value <= high + step * 1e-9);
}

function meet(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/**
 * A place for each text beside its point, or none where it would cover another
 * one, or what is in `taken`. The first have the first choice.
 */
export function placeLabels(
  wanted: readonly { text: string; x: number; y: number; radius: number }[],
  taken: readonly Box[],
  frame: Box,
): (Label | undefined)[] {
  const covered = [...taken];
  return wanted.map(({ text, x, y, radius }) => {
    const width = text.length * LETTER_WIDTH;
    const side = radius + GAP;
    // Above and below first: intervals run to both sides.
    const places: [Label['anchor'], number, number, number][] = [
      ['middle', x, y - side - 2, x - width / 2],
      ['middle', x, y + side + 9, x - width / 2],
      ['start', x + side - 2, y - radius - 3, x + side - 2],
      ['end', x - side + 2, y - radius - 3, x - side + 2 - width],
      ['start', x + side - 2, y + radius + 12, x + side - 2],
      ['end', x - side + 2, y + radius + 12, x - side + 2 - width],
      ['middle', x, y - side - 17, x - width / 2],
      ['middle', x, y + side + 24, x - width / 2],
      ['start', x + side, y + 4, x + side],
      ['end', x - side, y + 4, x - side - width],
    ];
    for (const [anchor, at, base, left] of places) {
      const box = { left, right: left + width, top: base - LETTER_HEIGHT + 2, bottom: base + 3 };
      const fits = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
      if (!fits || covered.some((other) => meet(box, other))) continue;
      covered.push(box);
      return { text, x: at, y: base, anchor };
    }
    return undefined;
  });
}
