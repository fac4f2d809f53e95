// A graph to move around in, by mouse, finger and keyboard.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { layout } from '../lib/graph/layered';
import { boxAt, paint, paletteOf, widthsOf, type Camera, type Look, type Palette, type Scene } from '../lib/graph/painter';
import type { Box, BoxGraph } from '../lib/graph/scopes';

const MOST_ZOOM = 2.5;
const LEAST_ZOOM = 0.001;
// UNITS: pixels. A press that moves less is a click.
const CLICK = 5;

interface Props {
  label: string;
  graph: BoxGraph;
  look: (box: Box) => Look;
  /** Name of the node, or scope with a slash, that is looked at. */
  selected: string;
  found: ReadonlySet<number>;
  /** What the box that is looked at is, for those who hear it. */
  describe: (box: Box) => string;
  onSelect: (box: Box) => void;
  /** A scope is to be opened. */
  onOpen: (box: Box) => void;
  /** The scope around a node is to be closed. */
  onClose: (box: Box) => void;
}

const measuring = document.createElement('canvas').getContext('2d')!;

/** Where the whole layout fits, not larger than life. */
function fitted(scene: Scene, width: number, height: number): Camera {
  const zoom = Math.max(LEAST_ZOOM, Math.min(1, (width - 24) / scene.layout.width, (height - 24) / scene.layout.height));
  return { zoom, x: scene.layout.width / 2 - width / zoom / 2, y: scene.layout.height / 2 - height / zoom / 2 };
}

/** Where a graph is looked at first: all of it, or its upper end. */
function first(scene: Scene, width: number, height: number): Camera {
  const all = fitted(scene, width, height);
  if (all.zoom >= 0.5) return all;
  const zoom = Math.max(all.zoom, Math.min(0.8, (width - 24) / scene.layout.width, 1));
  const readable = Math.max(zoom, 0.45);
  const top = scene.layout.layers[0]?.[0] ?? 0;
  return { zoom: readable, x: scene.layout.x[top]! - width / readable / 2, y: -12 / readable };
}

class Drawing {
  camera: Camera = { x: 0, y: 0, zoom: 1 };
  palette: Palette | undefined;
  size = { width: 1, height: 1 };
  /** Nobody has moved it yet. */
  fresh = true;
  private frame = 0;

  constructor(
    readonly canvas: HTMLCanvasElement,
    public scene: Scene,
  ) {}

  /** Paints with the next frame. */
  ask(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const context = this.canvas.getContext('2d');
      if (!context) return;
      this.palette ??= paletteOf(this.canvas);
      const painted = paint(context, this.scene, this.camera, this.size, this.palette);
      this.canvas.dataset['painted'] = String(painted);
      this.canvas.dataset['zoom'] = this.camera.zoom.toFixed(3);
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  resize(): void {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    this.size = { width: box.width, height: box.height };
    this.canvas.width = Math.round(box.width * devicePixelRatio);
    this.canvas.height = Math.round(box.height * devicePixelRatio);
    if (this.fresh) this.camera = first(this.scene, box.width, box.height);
    this.ask();
  }

  /** The point of the layout that is at a place of the window. */
  point(event: { clientX: number; clientY: number }): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [this.camera.x + (event.clientX - box.left) / this.camera.zoom, this.camera.y + (event.clientY - box.top) / this.camera.zoom];
  }

  zoomBy(factor: number, at?: [number, number]): void {
    const [x, y] = at ?? [this.camera.x + this.size.width / 2 / this.camera.zoom, this.camera.y + this.size.height / 2 / this.camera.zoom];
    const zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.camera.zoom * factor));
    const ratio = this.camera.zoom / zoom;
    this.camera = { zoom, x: x - (x - this.camera.x) * ratio, y: y - (y - this.camera.y) * ratio };
    this.fresh = false;
    this.ask();
  }

  fit(): void {
    this.camera = fitted(this.scene, this.size.width, this.size.height);
    this.fresh = false;
    this.ask();
  }

  move(dx: number, dy: number): void {
    this.camera = { ...this.camera, x: this.camera.x - dx / this.camera.zoom, y: this.camera.y - dy / this.camera.zoom };
    this.fresh = false;
    this.ask();
  }

  /** Moves as little as brings a box into sight, readable. */
  reveal(index: number): void {
    const x = this.scene.layout.x[index]!;
    const y = this.scene.layout.y[index]!;
    if (this.camera.zoom < 0.45) {
      const zoom = 0.8;
      this.camera = { zoom, x: x - this.size.width / zoom / 2, y: y - this.size.height / zoom / 2 };
    }
    const { zoom } = this.camera;
    const edge = 60 / zoom;
    const room = { x: this.size.width / zoom, y: this.size.height / zoom };
    if (x < this.camera.x + edge || x > this.camera.x + room.x - edge) this.camera.x = x - room.x / 2;
    if (y < this.camera.y + edge || y > this.camera.y + room.y - edge) this.camera.y = y - room.y / 2;
    this.fresh = false;
    this.ask();
  }
}

/** Where an arrow key leads from a box: -1 where it leads nowhere. */
function neighbour(scene: Scene, from: number, key: string): number {
  const { edges } = scene.graph;
  const { layers, layer, x } = scene.layout;
  if (from < 0) return layers[0]?.[0] ?? -1;
  const nearest = (boxes: number[]) => boxes.reduce((best, box) =>
    (best < 0 || Math.abs(x[box]! - x[from]!) < Math.abs(x[best]! - x[from]!) ? box : best), -1);
  switch (key) {
    case 'ArrowUp': return nearest(edges.filter(([, to]) => to === from).map(([source]) => source));
    case 'ArrowDown': return nearest(edges.filter(([source]) => source === from).map(([, to]) => to));
    case 'ArrowLeft': return layers[layer[from]!]!.filter((box) => x[box]! < x[from]!).pop() ?? -1;
    case 'ArrowRight': return layers[layer[from]!]!.find((box) => x[box]! > x[from]!) ?? -1;
    case 'Home': return layers[0]?.[0] ?? -1;
    case 'End': return layers[layers.length - 1]?.[0] ?? -1;
    default: return -1;
  }
}

function useDrag(drawing: { current: Drawing | undefined }, pick: (index: number, twice: boolean) => void) {
  const press = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  return {
    onPointerDown: (event: PointerEvent & { currentTarget: HTMLCanvasElement }) => {
      press.current = { x: event.clientX, y: event.clientY, moved: false };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = press.current;
      if (!from) return;
      const dx = event.clientX - from.x;
      const dy = event.clientY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < CLICK) return;
      press.current = { x: event.clientX, y: event.clientY, moved: true };
      drawing.current?.move(dx, dy);
    },
    onPointerUp: (event: PointerEvent) => {
      const from = press.current;
      press.current = undefined;
      const now = drawing.current;
      if (!from || from.moved || !now) return;
      pick(boxAt(now.scene, ...now.point(event)), false);
    },
    onPointerCancel: () => { press.current = undefined; },
    onDblClick: (event: MouseEvent) => {
      const now = drawing.current;
      if (now) pick(boxAt(now.scene, ...now.point(event)), true);
    },
  };
}

export function GraphCanvas(props: Props) {
  const { graph } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useRef<Drawing | undefined>(undefined);
  const placed = useMemo(() => {
    const start = performance.now();
    const widths = widthsOf(graph, measuring);
    const made = layout(widths, graph.edges);
    return { widths, layout: made, milliseconds: performance.now() - start };
  }, [graph]);
  const selected = graph.boxes.findIndex((box) => box.id === props.selected);
  const scene: Scene = {
    graph, layout: placed.layout, widths: placed.widths, looks: graph.boxes.map(props.look), selected, found: props.found,
  };
  const [help] = useState(() => `graph-keys-${Math.random().toString(36).slice(2)}`);

  useLayoutEffect(() => {
    const element = canvas.current!;
    const made = new Drawing(element, scene);
    drawing.current = made;
    const watch = new ResizeObserver(() => made.resize());
    watch.observe(element);
    const theme = () => { made.palette = undefined; made.ask(); };
    addEventListener('themechange', theme);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', theme);
    // A wheel turns the page until the graph has the focus.
    const wheel = (event: WheelEvent) => {
      if (document.activeElement !== element && !event.ctrlKey) return;
      event.preventDefault();
      made.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), made.point(event));
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => {
      made.stop();
      watch.disconnect();
      removeEventListener('themechange', theme);
      dark.removeEventListener('change', theme);
      element.removeEventListener('wheel', wheel);
    };
  }, []);
  useLayoutEffect(() => {
    const now = drawing.current!;
    const other = now.scene.graph !== graph;
    // What was looked at stays where it was on the screen.
    const anchor = other ? now.scene.graph.boxes[now.scene.selected] : undefined;
    const before = anchor ? [now.scene.layout.x[now.scene.selected]!, now.scene.layout.y[now.scene.selected]!] : undefined;
    const after = anchor?.nodes[0] ? graph.boxOf.get(anchor.nodes[0].name) : undefined;
    now.scene = scene;
    if (other && before && after !== undefined) {
      now.camera.x += placed.layout.x[after]! - before[0]!;
      now.camera.y += placed.layout.y[after]! - before[1]!;
    } else if (other && now.fresh) now.camera = first(scene, now.size.width, now.size.height);
    now.ask();
  });
  useEffect(() => {
    if (selected >= 0) drawing.current?.reveal(selected);
  }, [props.selected, graph]);

  const pick = (index: number, twice: boolean) => {
    const box = graph.boxes[index];
    if (!box) return;
    if (twice && !box.node) props.onOpen(box);
    else props.onSelect(box);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const box = graph.boxes[selected];
    const now = drawing.current!;
    const next = neighbour(scene, selected, event.key);
    if (/^(Arrow|Home|End)/.test(event.key)) {
      if (next >= 0) props.onSelect(graph.boxes[next]!);
    } else if (event.key === '+' || event.key === '=') now.zoomBy(1.25);
    else if (event.key === '-') now.zoomBy(0.8);
    else if (event.key === '0') now.fit();
    else if ((event.key === 'Enter' || event.key === ' ') && box && !box.node) props.onOpen(box);
    else if (event.key === 'Backspace' && box) props.onClose(box);
    else return;
    event.preventDefault();
  };
  const box = graph.boxes[selected];
  return (
    <div class="graph-view">
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={props.label} aria-describedby={help} onKeyDown={onKey}
        data-boxes={graph.boxes.length} data-layout-ms={Math.round(placed.milliseconds)} data-selected={props.selected}
        {...useDrag(drawing, pick)} />
      <div class="graph-zoom">
        <button type="button" aria-label={`${props.label}: closer`} onClick={() => drawing.current?.zoomBy(1.4)}>+</button>
        <button type="button" aria-label={`${props.label}: farther`} onClick={() => drawing.current?.zoomBy(1 / 1.4)}>−</button>
        <button type="button" aria-label={`${props.label}: all of it`} onClick={() => drawing.current?.fit()}>All</button>
      </div>
      <p id={help} class="hidden-text">Arrow keys lead to what is read and what reads it, Enter opens a scope, Backspace closes it, plus and minus zoom, 0 shows all.</p>
      <p class="hidden-text" role="status">{box ? props.describe(box) : ''}</p>
    </div>
  );
}
