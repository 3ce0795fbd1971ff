// Writes dashboards/*.json from source/*.mjs:   node conf/grafana/build.mjs
// With --check it writes nothing and ends with 1 if any file is not what it would write: tests/monitoring.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

const place = (path) => new URL(path, import.meta.url);
const names = ['overview', 'port', 'buffer', 'pfc-ecn', 'lcores', 'routing', 'neighbours'];
const check = process.argv.includes('--check');
let wrong = 0;

const complain = (message) => { console.error(message); wrong += 1; };
const read = (file) => { try { return readFileSync(file, 'utf8'); } catch { return null; } };

for (const name of names) {
  const text = JSON.stringify((await import(place(`source/${name}.mjs`))).default, null, 2) + '\n';
  const file = place(`dashboards/${name}.json`);
  if (!check) writeFileSync(file, text);
  else if (read(file) !== text) complain(`dashboards/${name}.json is not what its source makes: run node conf/grafana/build.mjs`);
}
for (const file of readdirSync(place('dashboards'))) {
  if (!names.includes(file.replace(/\.json$/, ''))) complain(`dashboards/${file} has no source`);
}
process.exit(wrong ? 1 : 0);
