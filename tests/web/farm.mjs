// A real farm for the page's tests: server, worker and agent in a folder of
// their own, and calls of its API.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, openSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// UNITS: milliseconds. Longer than anything takes on a busy machine; reached
// only by failures.
export const PATIENCE = Number(process.env.OPTFARM_PATIENCE ?? 120_000);

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** What `look` gives, as soon as it gives something. */
export async function eventually(what, look) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited too long for ${what}`);
    await sleep(50);
  }
}

export class Farm {
  #programs = [];

  /** `token`: what the operator brings; "" for a server that wants none. */
  constructor(bin, token) {
    this.bin = bin;
    this.token = token;
    // An address of its own: while the server is stopped, nobody else on this
    // machine gets its ports.
    this.address = `127.${1 + Math.floor(Math.random() * 250)}.${process.pid % 251}.${1 + Math.floor(Math.random() * 250)}`;
    this.folder = mkdtempSync(join(tmpdir(), 'optfarm-web-'));
    if (token) writeFileSync(join(this.folder, 'token'), `${token}\n`);
  }

  get #tokenFlags() {
    return this.token ? [`--token_file=${join(this.folder, 'token')}`] : [];
  }

  async #start(name, flags) {
    const log = join(this.folder, `${name}.log`);
    const out = openSync(log, 'w');
    const program = spawn(join(this.bin, name), [...flags, ...this.#tokenFlags], { stdio: ['ignore', out, out] });
    const entry = { name, program, ended: new Promise((resolve) => program.on('exit', resolve)) };
    this.#programs.push(entry);
    return eventually(`${name} to be ready`, () => {
      const line = readFileSync(log, 'utf8').split('\n').find((one) => one.includes(' ready'));
      if (!line && program.exitCode !== null) throw new Error(`${name} ended: ${readFileSync(log, 'utf8')}`);
      return line;
    });
  }

  /** On the port that it had before, where it had one. */
  async startServer() {
    const line = await this.#start('optfarm-server', [
      `--data_dir=${join(this.folder, 'data')}`, `--grpc=${this.grpc ?? `${this.address}:0`}`, `--http=${this.http ?? `${this.address}:0`}`]);
    this.grpc = /grpc=(\S+)/.exec(line)[1];
    this.http = /http=(\S+)/.exec(line)[1];
    this.url = `http://${this.http}`;
  }

  startWorker() {
    return this.#start('optfarm-worker', [`--server=${this.grpc}`, '--name=worker-1', `--work_dir=${join(this.folder, 'worker')}`]);
  }

  startAgent(name) {
    return this.#start('optfarm-agent', [`--server=${this.grpc}`, `--name=${name}`]);
  }

  /** Runs optctl and gives what it printed. */
  async optctl(...flags) {
    const program = spawn(join(this.bin, 'optctl'), [`--server=${this.grpc}`, ...this.#tokenFlags, ...flags],
      { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    let errors = '';
    program.stdout.on('data', (data) => { text += data; });
    program.stderr.on('data', (data) => { errors += data; });
    const code = await new Promise((resolve) => program.on('exit', resolve));
    return { code, text, errors };
  }

  async call(method, path, body, token = this.token) {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...(body ? { 'Content-Type': 'application/json' } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  async stop(name) {
    for (const entry of this.#programs.filter((one) => !name || one.name === name).reverse()) {
      entry.program.kill('SIGTERM');
      await entry.ended;
    }
    if (name) this.#programs = this.#programs.filter((one) => one.name !== name);
  }

  async close() {
    await this.stop();
    if (existsSync(this.folder)) rmSync(this.folder, { recursive: true });
  }
}
