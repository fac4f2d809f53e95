// The page's sources are sound TypeScript, and what they take for the API is
// what the server says that it is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Farm } from './farm.mjs';

const { OPTFARM_BIN: BIN, OPTFARM_SOURCE: SOURCE, OPTFARM_WEB_FOLDER: FOLDER } = process.env;
const require = createRequire(import.meta.url);
const TYPES = join(SOURCE, 'web/src/lib/openapi.d.ts');

/** The same without descriptions: those are in /docs. */
function undescribed(value) {
  if (Array.isArray(value)) return value.map(undescribed);
  if (value === null || typeof value !== 'object') return value;
  // A property may have the name too.
  return Object.fromEntries(Object.entries(value)
    .filter(([key, one]) => key !== 'description' || typeof one !== 'string')
    .map(([key, one]) => [key, undescribed(one)]));
}

test('the document of the API passes the recommended rules of redocly', async () => {
  const farm = new Farm(BIN, '');
  try {
    await farm.startServer();
    const { createConfig, lintFromString } = require('@redocly/openapi-core');
    const source = await (await fetch(`${farm.url}/openapi.json`)).text();
    const config = await createConfig({ extends: ['recommended'] });
    const lint = async (text) => (await lintFromString({ source: text, config, absoluteRef: 'openapi.json' }))
      .map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`);
    assert.deepEqual(await lint(source), []);
    // It is one that can fail.
    const api = JSON.parse(source);
    delete Object.values(Object.values(api.paths)[0])[0].summary;
    assert.equal((await lint(JSON.stringify(api))).length, 1);
  } finally {
    await farm.close();
  }
});

test('the sources pass the strict compiler with the types that the server gives', async () => {
  const farm = new Farm(BIN, '');
  try {
    await farm.startServer();
    const { default: openapi, astToString } = await import('openapi-typescript');
    const api = await (await fetch(`${farm.url}/openapi.json`)).json();
    const schemas = undescribed(api.components.schemas);
    const types = `// Generated from /openapi.json; OPTFARM_UPDATE_TYPES=1 tests/web/run BUILD_FOLDER makes it anew.\n\n${
      astToString(await openapi({ ...api, paths: {}, components: { schemas } }))}`;
    if (process.env.OPTFARM_UPDATE_TYPES) writeFileSync(TYPES, types);
    assert.equal(readFileSync(TYPES, 'utf8'), types, 'web/src/lib/openapi.d.ts is stale; its first line says how to make it anew');
    const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc');
    execFileSync(process.execPath, [compiler, '--project', FOLDER], { encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout || error);
  } finally {
    await farm.close();
  }
});
