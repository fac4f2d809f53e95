// Pictures of the pages in light and dark, compared with kept ones. The page is
// given answers that were recorded from a real farm and a clock that stands
// still, so that nothing but the page itself changes a picture.
//
// usage: node --test pictures_test.mjs, with the variables of page_test.mjs;
//        OPTFARM_UPDATE_PICTURES=1 records the answers and the pictures anew

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { Farm, eventually, PATIENCE } from './farm.mjs';
import { encode, graphNode } from './protobuf.mjs';

const { OPTFARM_BIN: BIN, OPTFARM_SOURCE: SOURCE, OPTFARM_CHROMIUM: CHROMIUM, OPTFARM_UPDATE_PICTURES: UPDATE } = process.env;
const FOLDER = join(SOURCE, 'tests/web/pictures');
const ANSWERS = join(FOLDER, 'answers.json.gz');
const MODEL = join(SOURCE, 'examples/digits/digits.pb');
const SAMPLES = join(SOURCE, 'examples/digits/images');
const VIEW = { width: 1000, height: 750 };
const KEPT = { width: 400, height: 300 };
// Pictures are compared as this many cells, each the mean of what is in it:
// letters of another font have other edges and the same cells.
const CELLS = { width: 40, height: 30 };
// UNITS: steps of 255, of one colour. The pages that are most alike, devices and
// models, are 56 and 3.5 apart.
const MOST_OF_A_CELL = 40;
const MOST_IN_THE_MEAN = 1.5;
// UNITS: bytes. Graphs are not kept.
const MOST_BLOB = 5000;

let farm;
let browser;
let kept;
// The page of a report around its data, as the programs write it.
let frame;

/** A graph of four blocks without weights, small enough to be kept. */
function writeGraph(file) {
  const nodes = [graphNode('image', 'Placeholder', [], [1, 8, 8, 4])];
  let last = 'image';
  for (const block of ['stem', 'left', 'right', 'head']) {
    const first = last;
    for (const op of ['Relu', 'Tanh', 'Sigmoid']) {
      nodes.push(graphNode(`${block}/${op.toLowerCase()}`, op, [last]));
      last = `${block}/${op.toLowerCase()}`;
    }
    nodes.push(graphNode(`${block}/add`, 'Add', [first, last]));
    last = `${block}/add`;
  }
  writeFileSync(file, Uint8Array.from(encode(nodes)));
}

/** Jobs whose answers are worth a picture. */
async function makeJobs() {
  await farm.startAgent('bench-1');
  await farm.startWorker();
  const submitModel = async (model, ...flags) => {
    const { code, errors } = await farm.optctl('submit', model, '--threads=1', ...flags);
    assert.ok([0, 1, 6].includes(code), errors);
    return (await farm.call('GET', '/v1/jobs?page_size=1')).jobs[0].job_id;
  };
  const submit = (...flags) => submitModel(MODEL, ...flags);
  const samples = [`--calibration=${SAMPLES}`, '--input_mean=127.5', '--input_std=127.5', '--device=bench-1', '--cool_down=1s', '--wait'];
  const graph = join(farm.folder, 'blocks.pb');
  writeGraph(graph);
  const drawn = await submitModel(graph, '--recipe=fp32', '--device=none', '--wait');
  const ids = [];
  for (let count = 0; count < 8; ++count) ids.push(await submit('--recipe=int8', '--tag=nightly', '--no_cache', ...samples));
  await submit('--recipe=fp32', '--name=cleaned up', ...samples);
  await submit('--recipe=weights8', '--name=for the app', '--device=none', '--wait');
  ids.push(await submit('--recipe=int8', '--tag=nightly', '--no_cache', ...samples));
  const { code, errors } = await farm.optctl('tune', MODEL, ...samples.slice(0, 4));
  assert.ok([0, 6].includes(code), errors);
  return { first: ids[ids.length - 2], last: ids[ids.length - 1], drawn, tune: (await farm.call('GET', '/v1/tunes')).tunes[0].tune_id };
}

async function reportFrame() {
  const file = join(farm.folder, 'report.html');
  const { errors } = await farm.optctl('run', MODEL, '--recipe=fp32', `--calibration=${SAMPLES}`, '--input_mean=127.5', '--input_std=127.5',
    '--measure=false', `--out_report=${file}`);
  assert.ok(existsSync(file), errors);
  const text = readFileSync(file, 'utf8');
  const mark = '<script type="application/json" id="data">';
  const begin = text.indexOf(mark) + mark.length;
  return { head: text.slice(0, begin), tail: text.slice(text.indexOf('</script>', begin)) };
}

/** The report of a kept job, with those of its files that are kept. */
function reportOf(id) {
  const blobs = Object.entries(kept.answers).filter(([key]) => key.startsWith('GET /v1/blobs/'));
  const files = Object.fromEntries(blobs.map(([key, { blob }]) => [key.split('/').pop(), blob]));
  const job = JSON.parse(kept.answers[`GET /v1/jobs/${id}`].json);
  return frame.head + JSON.stringify({ job, files }).replaceAll('<', '\\u003c') + frame.tail;
}

before(async () => {
  farm = new Farm(BIN, '');
  await farm.startServer();
  if (UPDATE) {
    mkdirSync(FOLDER, { recursive: true });
    const jobs = await makeJobs();
    kept = { time: Date.now(), jobs, answers: {} };
  } else {
    kept = JSON.parse(gunzipSync(readFileSync(ANSWERS)).toString());
  }
  frame = await reportFrame();
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
});

after(async () => {
  await browser?.close();
  await farm?.close();
});

/** Without what no picture shows: times of single runs, and most samples' digests. */
function trimmed(text) {
  const answer = JSON.parse(text);
  const worst = new Set((answer.report?.worst_samples ?? []).map(({ sample }) => sample));
  for (const source of answer.spec?.calibration?.sources ?? []) {
    source.files = source.files.filter(({ path }) => worst.has(path));
  }
  for (const measurement of answer.measurements ?? []) measurement.samples_us = [];
  for (const row of answer.rows ?? []) {
    for (const side of [row.a, row.b]) if (side?.measurement) side.measurement.samples_us = [];
  }
  return JSON.stringify(answer);
}

/** Answers calls of the API from what is kept, or keeps them; `isLocked`: wants a token. */
async function answerCalls(page, unknown, isLocked) {
  await page.route('**/report/*', (route) => route.fulfill({ contentType: 'text/html', body: reportOf(route.request().url().split('/').pop()) }));
  await page.route('**/v1/**', async (route) => {
    const request = route.request();
    const path = request.url().slice(farm.url.length);
    if (isLocked()) return route.fulfill({ status: 401, contentType: 'application/json', body: '{"code":"UNAUTHENTICATED"}' });
    const isLog = /^\/v1\/jobs\/[^/]+\/events/.test(path);
    if (!isLog && (path.includes('/events') || path.startsWith('/v1/jobs:watch'))) {
      return route.fulfill({ contentType: 'text/event-stream', body: 'event: end\ndata: {}\n\n' });
    }
    const key = `${request.method()} ${path} ${request.postData() ?? ''}`.trim();
    if (UPDATE && !(key in kept.answers)) {
      const response = await route.fetch({ headers: { ...request.headers(), 'if-none-match': '' } });
      const body = await response.body();
      const isBlob = path.startsWith('/v1/blobs/');
      if (isBlob && body.length > MOST_BLOB) return route.abort();
      const text = body.toString();
      kept.answers[key] = isBlob ? { blob: body.toString('base64') } : isLog ? { events: text } : { json: trimmed(text) };
    }
    const answer = kept.answers[key];
    if (!answer) {
      unknown.push(key);
      return route.abort();
    }
    if (answer.events !== undefined) return route.fulfill({ contentType: 'text/event-stream', body: answer.events });
    return route.fulfill(answer.json !== undefined
      ? { contentType: 'application/json', body: answer.json }
      : { contentType: 'application/octet-stream', body: Buffer.from(answer.blob, 'base64') });
  });
}

function pages() {
  const { first, last, tune, drawn } = kept.jobs;
  return {
    login: ['', (page) => page.getByLabel('Token')],
    jobs: ['#/jobs', (page) => page.getByRole('region', { name: 'Newest result' })],
    job: [`#/jobs/${last}`, (page) => page.getByRole('heading', { name: 'Float against optimized' })],
    layers: [`#/jobs/${last}?tab=layers`, (page) => page.locator('img.picture').first()],
    log: [`#/jobs/${last}?tab=log`, (page) => page.getByRole('log').filter({ hasText: /\S.{20}/s })],
    graph: [`#/jobs/${drawn}?tab=graph`, (page) => page.locator('canvas[aria-label="Optimized graph"][data-painted]')],
    files: [`#/jobs/${last}?tab=files`, (page) => page.getByRole('link', { name: 'optimized.pb', exact: true })],
    submit: ['#/submit', (page) => page.getByRole('button', { name: 'Submit' })],
    'submit-tune': [`#/submit?kind=tune&from=${last}`, (page) => page.getByRole('button', { name: 'Begin the tune' })],
    tunes: ['#/tunes', (page) => page.getByRole('link', { name: 'digits.pb' })],
    tune: [`#/tunes/${tune}`, (page) => page.getByRole('heading', { name: 'Candidates' })],
    models: ['#/models', (page) => page.getByRole('heading', { name: 'digits.pb' })],
    'models-files': ['#/models?tab=files', (page) => page.getByRole('link', { name: 'digits.pb', exact: true })],
    devices: ['#/devices', (page) => page.getByRole('article', { name: 'bench-1' })],
    history: ['#/history?variant=int8', (page) => page.locator('.uplot canvas')],
    compare: [`#/compare?a=${first}&b=${last}`, (page) => page.getByRole('heading', { name: 'Differences' })],
    pareto: ['#/pareto', (page) => page.getByRole('heading', { name: 'Trade-offs' })],
    admin: ['#/admin', (page) => page.getByRole('button', { name: 'New token' })],
    audit: ['#/admin?tab=audit', (page) => page.getByText(/^(Job|Model|Tune)Service\./).first()],
    report: [`report/${last}`, (page) => page.locator('img.picture').first()],
  };
}

/** `bytes` of a PNG, made small, as the bytes of a WebP. */
async function makeSmall(painter, bytes) {
  const address = await painter.evaluate(async ([png, { width, height }]) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, width, height);
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality: 0.7 });
    return btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())));
  }, [bytes.toString('base64'), KEPT]);
  return Buffer.from(address, 'base64');
}

/** How far two pictures are apart: in the worst cell and in the mean. */
function distance(painter, one, other) {
  return painter.evaluate(async ([pictures, { width, height }]) => {
    const cells = await Promise.all(pictures.map(async (bytes) => {
      const image = await createImageBitmap(await (await fetch(`data:image/webp;base64,${bytes}`)).blob());
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const sums = new Float64Array(3 * width * height);
      const part = (image.width * image.height) / (width * height);
      for (let y = 0; y < image.height; ++y) {
        for (let x = 0; x < image.width; ++x) {
          const cell = Math.floor((y * height) / image.height) * width + Math.floor((x * width) / image.width);
          for (let color = 0; color < 3; ++color) sums[3 * cell + color] += data[4 * (y * image.width + x) + color] / part;
        }
      }
      return sums;
    }));
    const differences = Array.from(cells[0], (value, index) => Math.abs(value - cells[1][index]));
    return { worst: Math.max(...differences), mean: differences.reduce((sum, value) => sum + value, 0) / differences.length };
  }, [[one.toString('base64'), other.toString('base64')], CELLS]);
}

/** A picture of the page once it has all its answers: two in a row are the same. */
async function stillPicture(page) {
  let before = Buffer.alloc(0);
  return eventually('the page to be still', async () => {
    const picture = await page.screenshot();
    const still = picture.equals(before);
    before = picture;
    await page.waitForTimeout(300);
    return still && picture;
  });
}

const isNear = ({ worst, mean }) => worst <= MOST_OF_A_CELL && mean <= MOST_IN_THE_MEAN;
const shown = ({ worst, mean }) => `${worst.toFixed(1)} in the worst cell, ${mean.toFixed(2)} in the mean`;

for (const colorScheme of ['light', 'dark']) {
  test(`every page in ${colorScheme} looks as its kept picture`, async () => {
    const painter = await browser.newPage();
    const context = await browser.newContext({ viewport: VIEW, colorScheme, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC' });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const unknown = [];
    await page.clock.setFixedTime(kept.time);
    let locked = false;
    await answerCalls(page, unknown, () => locked);
    let before;
    for (const [name, [address, mark]] of Object.entries(pages())) {
      // The page asks once at its start whether it has to log in.
      if (locked) await page.goto('about:blank');
      locked = name === 'login';
      await page.goto(`${farm.url}/${address}`);
      await mark(page).waitFor();
      const picture = await makeSmall(painter, await stillPicture(page));
      const file = join(FOLDER, `${name}-${colorScheme}.webp`);
      if (UPDATE) writeFileSync(file, picture);
      assert.ok(existsSync(file), `${file} is missing; OPTFARM_UPDATE_PICTURES=1 makes it`);
      const found = await distance(painter, picture, readFileSync(file));
      console.log(`# ${name}, ${colorScheme}: ${shown(found)}`);
      assert.ok(isNear(found), `${name} in ${colorScheme}: ${shown(found)}; OPTFARM_UPDATE_PICTURES=1 keeps what is new`);
      // Another page is not taken for this one.
      if (before) {
        const other = await distance(painter, before, picture);
        assert.ok(!isNear(other), `${name} looks as the page before it: ${shown(other)}`);
      }
      before = picture;
    }
    assert.deepEqual(unknown, []);
    if (UPDATE) writeFileSync(ANSWERS, gzipSync(JSON.stringify(kept), { level: 9 }));
    await context.close();
    await painter.close();
  });
}
