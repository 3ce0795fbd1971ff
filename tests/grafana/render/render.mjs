// node render.mjs PROMETHEUS DASHBOARD.json PICTURE.png: draws a dashboard as it would lie before you, where there is no
// Grafana to open it in. Not Grafana: a page of this project's, made from the same JSON and real data, captured by Chromium.
// Needs `npm ci` in this folder and Debian's package chromium. docs/monitoring.md.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [prometheus, file, picture] = process.argv.slice(2);
if (!picture) {
  console.error('usage: node render.mjs http://127.0.0.1:9090 DASHBOARD.json PICTURE.png');
  process.exit(2);
}
const dashboard = JSON.parse(readFileSync(file));
/** Width in pixels, and the height of a line of the grid, as Grafana has it. */
const WIDTH = 1600, LINE = 38;
/** How far back, and between two points, in seconds. */
const SPAN = Number(process.env.SPAN ?? 300), STEP = Math.max(1, Math.round(SPAN / 300));

const expand = (expr) => expr.replaceAll('$__rate_interval', '20s').replace(/\$(instance|port|class|lcore|interface)/g, '.*');
const ask = async (path, parameters) => {
  const answer = await (await fetch(`${prometheus}/api/v1/${path}?${new URLSearchParams(parameters)}`)).json();
  if (answer.status !== 'success') throw new Error(`${parameters.query}: ${answer.error}`);
  return answer.data.resultType === 'scalar' ? [{ metric: {}, value: answer.data.result }] : answer.data.result;
};
const name = (legend, metric) => !legend || legend === '__auto' ? Object.entries(metric).filter(([key]) => !['job', '__name__'].includes(key)).map(([key, value]) => `${key}=${value}`).join(' ')
  : legend.replace(/{{\s*(\w+)\s*}}/g, (_, key) => metric[key] ?? '').trim();

/** The moment that is shown: now, or END in seconds since the epoch. */
const now = Math.floor(Number(process.env.END ?? Date.now() / 1000));
const series = async (panel) => {
  const isRange = ['timeseries', 'state-timeline', 'heatmap'].includes(panel.type) || panel.options?.graphMode === 'area';
  const all = [];
  for (const target of panel.targets ?? []) {
    const query = expand(target.expr);
    const found = isRange ? await ask('query_range', { query, start: now - SPAN, end: now, step: STEP }) : await ask('query', { query, time: now });
    for (const { metric, values, value } of found) all.push({ ref: target.refId, name: name(target.legendFormat, metric), metric, values: (values ?? [value]).map(([at, number]) => [at, Number(number)]) });
  }
  return all;
};
const panels = [];
for (const panel of dashboard.panels) panels.push({ ...panel, series: panel.type === 'row' ? [] : await series(panel) });
const empty = panels.filter((panel) => panel.type !== 'row' && !panel.series.length).map((panel) => panel.title);
if (empty.length) console.error(`no data: ${empty.join(', ')}`);

const here = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const lines = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
const data = JSON.stringify({ title: dashboard.title, panels, from: now - SPAN, to: now, step: STEP, width: WIDTH, line: LINE }).replaceAll('<', '\\u003c');
const page = `<!doctype html><meta charset="utf-8"><style>${here('node_modules/uplot/dist/uPlot.min.css')}${here('page.css')}</style><body>
<script>${here('node_modules/uplot/dist/uPlot.iife.min.js')}</script><script>const D = ${data};</script><script>${here('page.js')}</script>`;

const place = mkdtempSync(join(tmpdir(), 'render-'));
try {
  const html = join(place, 'page.html');
  writeFileSync(html, page);
  execFileSync('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
    `--user-data-dir=${join(place, 'profile')}`, `--window-size=${WIDTH},${lines * LINE + 60}`, '--virtual-time-budget=4000', `--screenshot=${resolve(picture)}`, pathToFileURL(html).href], { stdio: ['ignore', 'ignore', 'ignore'], timeout: 120_000 });
} finally {
  rmSync(place, { recursive: true, force: true });
}
