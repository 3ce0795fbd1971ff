// node check.mjs DASHBOARD.json ...: each against the schema that Grafana publishes, which is made from the types of
// @grafana/schema; and what that schema does not say. Run by tests/monitoring after `npm ci` in a copy of this folder.
import { createGenerator } from 'ts-json-schema-generator';
import Ajv from 'ajv';
import { readFileSync } from 'node:fs';

const path = 'node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen.d.ts';
const schema = createGenerator({ path, type: 'Dashboard', skipTypeCheck: true, additionalProperties: false }).createSchema('Dashboard');
// What an annotation asks for is its data source's own affair (`expr` for Prometheus), of which these types know nothing.
schema.definitions.AnnotationQuery.additionalProperties = true;
const isValid = new Ajv({ allErrors: true, strict: false }).compile(schema);

/** Places of panels that overlap, lie outside of the grid, or have no query, description or unit of their own. */
const faults = (dashboard) => {
  const found = [];
  const ids = new Set();
  const cells = new Map();
  for (const panel of dashboard.panels) {
    const { x, y, w, h } = panel.gridPos;
    if (ids.has(panel.id)) found.push(`${panel.title}: a second panel ${panel.id}`);
    ids.add(panel.id);
    if (x + w > 24) found.push(`${panel.title}: ends in column ${x + w}`);
    for (let column = x; column < x + w; column += 1) {
      for (let line = y; line < y + h; line += 1) {
        const cell = `${column},${line}`;
        if (cells.has(cell)) found.push(`${panel.title} overlaps ${cells.get(cell)}`);
        cells.set(cell, panel.title);
      }
    }
    if (panel.type === 'row') continue;
    if (!panel.targets?.length) found.push(`${panel.title}: no query`);
    if (!panel.description) found.push(`${panel.title}: no description`);
    const bare = ['timeseries', 'bargauge', 'heatmap'].includes(panel.type) && !panel.fieldConfig.defaults.unit;
    if (bare) found.push(`${panel.title}: no unit`);
  }
  return [...new Set(found)];
};

let bad = 0;
for (const file of process.argv.slice(2)) {
  const dashboard = JSON.parse(readFileSync(file));
  const problems = isValid(dashboard) ? [] : isValid.errors.map((error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
  problems.push(...faults(dashboard));
  console.log(`${file}: ${problems.length ? 'wrong' : `right, ${dashboard.panels.length} panels`}`);
  problems.slice(0, 12).forEach((problem) => console.log(`  ${problem}`));
  bad += problems.length;
}
process.exit(bad ? 1 : 0);
