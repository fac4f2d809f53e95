// Paints a graph's boxes on a canvas: only what is in sight, so that thousands
// of boxes move as one does.

import { BOX_HEIGHT, type Layout } from './layered';
import type { BoxGraph } from './scopes';

// UNITS: pixels of the screen a pixel of the layout. Text is left out below.
const READABLE = 0.42;
// Boxes are dots and edges are straight below.
const COARSE = 0.12;

const FONT = '12px system-ui, sans-serif';
const SMALL_FONT = '10.5px system-ui, sans-serif';
const PADDING = 11;

export interface Camera {
  /** What of the layout is at the upper left corner. */
  x: number;
  y: number;
  zoom: number;
}

/** How a box looks besides its text. */
export interface Look {
  /** A color, or "" for that of the page. */
  fill: string;
  /** The other graph does not have it. */
  own: boolean;
}

export interface Scene {
  graph: BoxGraph;
  layout: Layout;
  widths: readonly number[];
  looks: readonly Look[];
  selected: number;
  /** Boxes that a search found. */
  found: ReadonlySet<number>;
}

/** Colors of the page, as they are now. */
export interface Palette {
  surface: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  found: string;
}

export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  // light-dark() is resolved only where it is used.
  const probe = document.createElement('span');
  element.parentElement?.append(probe);
  const color = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color || style.color;
  };
  const palette = {
    surface: color('raised'), text: color('text'), muted: color('muted'), line: color('line-strong'),
    accent: color('accent'), found: color('unsure'),
  };
  probe.remove();
  return palette;
}

/** UNITS: pixels. The widths that boxes need for their text. */
export function widthsOf(graph: BoxGraph, context: CanvasRenderingContext2D): number[] {
  const known = new Map<string, number>();
  const measure = (font: string, text: string) => {
    const key = font + text;
    let width = known.get(key);
    if (width === undefined) {
      context.font = font;
      width = context.measureText(text).width;
      known.set(key, width);
    }
    return width;
  };
  return graph.boxes.map((box) =>
    Math.ceil(Math.min(260, Math.max(54, 2 * PADDING + Math.max(measure(FONT, box.title), measure(SMALL_FONT, box.note))))));
}

/** The text, cut where it does not fit. */
function fit(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) end -= Math.ceil(end / 12);
  return `${text.slice(0, Math.max(1, end))}…`;
}

function paintEdges(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, size: { width: number; height: number }, palette: Palette): void {
  const { graph, layout } = scene;
  const right = camera.x + size.width / camera.zoom;
  const bottom = camera.y + size.height / camera.zoom;
  const straight = camera.zoom < COARSE;
  const near = new Path2D();
  const all = new Path2D();
  graph.edges.forEach(([from, to], index) => {
    const x1 = layout.x[from]!;
    const y1 = layout.y[from]! + BOX_HEIGHT / 2;
    const x2 = layout.x[to]!;
    const y2 = layout.y[to]! - BOX_HEIGHT / 2;
    const bends = layout.bends[index]!;
    if (Math.max(y1, y2) < camera.y || Math.min(y1, y2) > bottom) return;
    if (bends.length === 0 && (Math.max(x1, x2) < camera.x || Math.min(x1, x2) > right)) return;
    const path = from === scene.selected || to === scene.selected ? near : all;
    path.moveTo(x1, y1);
    let [x, y] = [x1, y1];
    const step = (nextX: number, nextY: number) => {
      const middle = (y + nextY) / 2;
      if (straight || x === nextX) path.lineTo(nextX, nextY);
      else path.bezierCurveTo(x, middle, nextX, middle, nextX, nextY);
      [x, y] = [nextX, nextY];
    };
    for (let at = 0; at < bends.length; at += 2) step(bends[at]!, bends[at + 1]!);
    step(x2, y2);
  });
  context.lineWidth = 1 / Math.max(camera.zoom, 0.5);
  context.strokeStyle = palette.line;
  context.stroke(all);
  context.lineWidth = 2 / Math.max(camera.zoom, 0.5);
  context.strokeStyle = palette.accent;
  context.stroke(near);
}

function paintBox(context: CanvasRenderingContext2D, scene: Scene, index: number, camera: Camera, palette: Palette): void {
  const box = scene.graph.boxes[index]!;
  const look = scene.looks[index]!;
  const width = scene.widths[index]!;
  const left = scene.layout.x[index]! - width / 2;
  const top = scene.layout.y[index]! - BOX_HEIGHT / 2;
  const found = scene.found.has(index);
  context.fillStyle = look.fill || palette.surface;
  if (camera.zoom < COARSE) {
    context.fillStyle = index === scene.selected ? palette.accent : found ? palette.found : look.fill || palette.muted;
    context.fillRect(left, top, width, BOX_HEIGHT);
    return;
  }
  context.beginPath();
  context.roundRect(left, top, width, BOX_HEIGHT, box.node ? 6 : 12);
  context.fill();
  context.strokeStyle = index === scene.selected ? palette.accent : found ? palette.found : look.own ? palette.text : palette.line;
  context.lineWidth = index === scene.selected || found ? 2.6 : look.own ? 1.6 : 1;
  if (look.own) context.setLineDash([5, 3]);
  context.stroke();
  context.setLineDash([]);
  if (!box.node) {
    context.strokeRect(left + 4, top + BOX_HEIGHT - 0.5, width - 8, 2.5);
  }
  if (camera.zoom < READABLE) return;
  context.textAlign = 'center';
  context.font = FONT;
  context.fillStyle = palette.text;
  context.fillText(fit(context, box.title, width - PADDING), scene.layout.x[index]!, top + 16);
  context.font = SMALL_FONT;
  context.fillStyle = palette.muted;
  context.fillText(fit(context, box.note, width - PADDING), scene.layout.x[index]!, top + 30);
}

/** Paints the scene; gives how many boxes were in sight. */
export function paint(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, size: { width: number; height: number }, palette: Palette): number {
  const scale = context.canvas.width / size.width;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  context.setTransform(scale * camera.zoom, 0, 0, scale * camera.zoom, -camera.x * camera.zoom * scale, -camera.y * camera.zoom * scale);
  paintEdges(context, scene, camera, size, palette);
  const right = camera.x + size.width / camera.zoom;
  const bottom = camera.y + size.height / camera.zoom;
  let painted = 0;
  for (let index = 0; index < scene.graph.boxes.length; ++index) {
    const y = scene.layout.y[index]!;
    if (y + BOX_HEIGHT < camera.y || y - BOX_HEIGHT > bottom) continue;
    const x = scene.layout.x[index]!;
    const half = scene.widths[index]! / 2;
    if (x + half < camera.x || x - half > right) continue;
    paintBox(context, scene, index, camera, palette);
    painted += 1;
  }
  return painted;
}

/** The box at a point of the layout; -1 where there is none. */
export function boxAt(scene: Scene, x: number, y: number): number {
  return scene.graph.boxes.findIndex((_, index) =>
    Math.abs(scene.layout.x[index]! - x) <= scene.widths[index]! / 2 && Math.abs(scene.layout.y[index]! - y) <= BOX_HEIGHT / 2);
}
