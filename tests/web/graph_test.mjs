// How the page reads model files and lays graphs out, without a browser.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { encode } from './protobuf.mjs';

const { OPTFARM_SOURCE: SOURCE, OPTFARM_WEB_FOLDER: FOLDER } = process.env;
// UNITS: milliseconds of the processor for 5,000 boxes.
const MOST_LAYOUT = 2500;

/** The page's own modules, bundled as the page bundles them. */
async function load() {
  const { build } = await import(pathToFileURL(join(FOLDER, 'node_modules/esbuild/lib/main.js')));
  const outfile = join(mkdtempSync(join(tmpdir(), 'optfarm-graph-')), 'graph.mjs');
  await build({
    stdin: {
      contents: `export * from './models/model_file'; export { readGraphDef } from './models/graphdef';
        export { readOnnx } from './models/onnx'; export { readTflite } from './models/tflite';
        export * from './graph/scopes'; export * from './graph/layered';`,
      resolveDir: join(SOURCE, 'web/src/lib'), loader: 'ts',
    },
    bundle: true, format: 'esm', outfile,
  });
  return import(pathToFileURL(outfile));
}

const page = await load();

function node(name, op, inputs, ...attributes) {
  return { name, op, inputs, type: '', shape: '', attributes };
}

test('a frozen graph is read with its attributes', () => {
  const nodes = page.readNodes(readFileSync(join(SOURCE, 'examples/digits/digits.pb')));
  const conv = nodes.find((one) => one.op === 'Conv2D');
  const attributes = Object.fromEntries(conv.attributes);
  assert.match(attributes.strides, /^\[\d+(, \d+){3}\]$/);
  assert.match(attributes.padding, /^(SAME|VALID)$/);
  assert.equal(conv.type, 'float');
  const constant = nodes.find((one) => one.op === 'Const' && /×/.test(one.shape));
  assert.match(constant.shape, /^\d+(×\d+)*$/);
  const outline = page.outline(readFileSync(join(SOURCE, 'examples/digits/digits.pb')));
  assert.equal(outline.inputs.length, 1);
  assert.match(outline.inputs[0].shape, /32×32×3$/);
});

test('an ONNX model is read', () => {
  const shape = (...sizes) => [2, [[1, [[1, 1], [2, sizes.map((size) => [1, typeof size === 'string' ? [[2, size]] : [[1, size]]]).map((one) => one)]]]]];
  const info = (name, ...sizes) => [[1, name], shape(...sizes)];
  const bytes = Uint8Array.from(encode([[1, 8], [7, [
    [1, [[1, 'x'], [1, 'w'], [2, 'h'], [2, 'h2'], [3, 'first'], [4, 'Conv'],
      [5, [[1, 'strides'], [8, 2], [8, -1]]], [5, [[1, 'auto_pad'], [4, 'SAME_UPPER']]]]],
    [1, [[1, 'h2'], [1, ''], [2, 'y'], [4, 'Relu'], [7, 'com.example']]],
    [5, [[1, 3], [1, 4], [2, 3], [8, 'w']]],
    [11, info('x', 'batch', 7)], [11, info('w', 3, 4)], [12, info('y', 'batch', 9)],
  ]]]));
  assert.equal(page.readGraphDef(bytes), undefined);
  const nodes = page.readNodes(bytes);
  assert.deepEqual(nodes.map(({ name, op, inputs, type, shape: text }) => [name, op, inputs, type, text]), [
    ['x', 'Input', [], 'float', 'batch×7'],
    ['w', 'Const', [], 'int8', '3×4'],
    ['h', 'Conv', ['x', 'w'], '', ''],
    ['y', 'Relu', ['h:1'], 'float', 'batch×9'],
  ]);
  assert.deepEqual(nodes[2].attributes, [['name', 'first'], ['strides', '[2, -1]'], ['auto_pad', 'SAME_UPPER']]);
  assert.deepEqual(nodes[3].attributes, [['domain', 'com.example']]);
  assert.deepEqual(page.outline(bytes).outputs, [{ name: 'y', op: 'Relu' }]);
});

test('cut off and broken files are refused, not believed', () => {
  const bytes = readFileSync(join(SOURCE, 'examples/digits/digits.pb'));
  assert.equal(page.readNodes(bytes.subarray(0, bytes.length - 7)), undefined);
  for (const read of [page.readGraphDef, page.readOnnx, page.readTflite]) {
    assert.equal(read(new Uint8Array(0)), undefined);
    assert.equal(read(Uint8Array.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])), undefined);
  }
  // A flatbuffer whose every offset leads beyond its end, and one that says that
  // its lists have four thousand million entries.
  for (const byte of [0x00, 0x7f, 0xff]) {
    const flat = new Uint8Array(64).fill(byte);
    flat.set([8, 0, 0, 0, ...Buffer.from('TFL3')]);
    assert.equal(page.readTflite(flat), undefined);
  }
});

test('real models of other formats are read', (context) => {
  const folder = join(process.env.OPTFARM_TEST_DATA || join(SOURCE, '../shared'), 'interchange/models');
  if (!existsSync(folder)) return context.skip('there is no test data');
  for (const [kind, read] of [['onnx', page.readOnnx], ['tflite', page.readTflite]]) {
    const files = readdirSync(join(folder, kind), { recursive: true }).filter((file) => file.endsWith(`.${kind}`));
    assert.ok(files.length > 0);
    for (const file of files) {
      const bytes = readFileSync(join(folder, kind, file));
      const nodes = page.readNodes(bytes);
      assert.ok(nodes, file);
      assert.equal(nodes.length, read(bytes)?.length, file);
      const names = new Set(nodes.map((one) => one.name));
      const lost = nodes.flatMap((one) => one.inputs).filter((input) => !names.has(input) && !names.has(input.replace(/:\d+$/, '')));
      assert.deepEqual(lost.slice(0, 3), [], file);
      assert.ok(page.outline(bytes).outputs.length > 0, file);
    }
    console.log(`# ${files.length} ${kind} models`);
  }
  return undefined;
});

test('closed scopes are one box each, and edges lead between boxes', () => {
  const nodes = [
    node('in', 'Placeholder', []), node('a/r', 'Identity', ['a/n']), node('a/n', 'Neg', ['a/w']),
    node('a/w', 'Const', []), node('a/conv', 'Conv2D', ['in', 'a/r']),
    node('a/b/relu', 'Relu', ['a/conv']), node('a/b/pool', 'MaxPool', ['a/b/relu:0', '^in']), node('out', 'Identity', ['a/b/pool']),
  ];
  const graph = new page.ScopedGraph(nodes, false);
  const closed = graph.view(new Set());
  assert.deepEqual(closed.boxes.map((box) => [box.id, box.note]), [['in', 'Placeholder'], ['a/', '3 nodes'], ['out', 'Identity']]);
  assert.deepEqual(closed.edges, [[0, 1], [1, 2]]);
  const half = graph.view(new Set(['a']));
  assert.deepEqual(half.boxes.map((box) => box.id), ['in', 'a/conv', 'a/b/', 'out']);
  const open = graph.view(graph.allOpen());
  assert.deepEqual(open.boxes.map((box) => box.id), ['in', 'a/conv', 'a/b/relu', 'a/b/pool', 'out']);
  assert.equal(new page.ScopedGraph(nodes, true).view(graph.allOpen()).boxes.length, 8);
  assert.deepEqual([...graph.firstOpen()].sort(), ['a', 'a/b']);
  assert.deepEqual([...graph.firstOpen(3)], []);
});

/** That no two boxes of a layer touch and that what is read stands above. */
function check({ x, y, layers }, widths, edges, back = 0) {
  for (const boxes of layers) {
    boxes.slice(1).forEach((box, index) => {
      const distance = x[box] - x[boxes[index]];
      assert.ok(distance >= (widths[box] + widths[boxes[index]]) / 2 + 1, `${boxes[index]} and ${box} are ${distance} apart`);
    });
  }
  const upwards = edges.filter(([from, to]) => y[from] >= y[to]).length;
  assert.equal(upwards, back);
}

test('what is read stands above what reads it, and nothing overlaps', () => {
  const edges = [[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [4, 3]];
  const widths = [80, 120, 60, 90, 70];
  const made = page.layout(widths, edges);
  check(made, widths, edges);
  assert.equal(made.bends[4].length, 2, 'the long edge goes around the middle layer');
  assert.equal(made.layer[4], made.layer[3] - 1, 'a source stands right above its reader');
  // A loop: one edge leads back up.
  const loop = [[0, 1], [1, 2], [2, 0]];
  check(page.layout([50, 50, 50], loop), [50, 50, 50], loop, 1);
  assert.equal(page.layout([], []).width, 0);
});

test('5,000 boxes are placed at once', () => {
  const widths = [];
  const edges = [];
  let random = 1;
  const next = (most) => {
    random = (random * 48271) % 2147483647;
    return random % most;
  };
  for (let box = 0; box < 5000; ++box) {
    widths.push(60 + next(150));
    // Blocks with branches, as nets have them, and a few long ways around.
    if (box > 0) edges.push([Math.max(0, box - 1 - next(4)), box]);
    if (box > 8 && box % 5 === 0) edges.push([box - 5 - next(3), box]);
    if (box > 100 && box % 97 === 0) edges.push([box - 20 - next(80), box]);
  }
  const start = process.cpuUsage();
  const made = page.layout(widths, edges);
  const took = process.cpuUsage(start).user / 1000;
  console.log(`# layout of 5,000 boxes: ${Math.round(took)} ms`);
  check(made, widths, edges);
  assert.ok(took < MOST_LAYOUT);
});
