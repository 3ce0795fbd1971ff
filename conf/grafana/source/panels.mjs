// The vocabulary that the dashboards are written in: panels of each kind, with what all of them have in common.
//
// A panel is a function of its place; `layout` sets them from left to right in a grid of 24 columns.

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

/** Colours that mean something: good, look at it, act. */
export const GOOD = 'green', LOOK = 'orange', ACT = 'red';

/** Thresholds: a base colour, then [from, colour] in order. */
export const steps = (base, ...from) => ({
  mode: 'absolute',
  steps: [{ color: base, value: null }, ...from.map(([value, color]) => ({ color, value }))],
});

/** Anything above zero is bad; counts of events extrapolated by Prometheus may be fractions. */
export const NONE_IS_GOOD = steps(GOOD, [0.001, ACT]);
export const PLAIN = steps('blue');

/** Values with words: {0: ['down', ACT]}. */
export const words = (table) => [{
  type: 'value',
  options: Object.fromEntries(Object.entries(table).map(([value, [text, color]], index) => [value, { text, color, index }])),
}];

/** A query with what its series are called. `how`: instant, table or heatmap. */
export const query = (expr, legend = '__auto', how = '') => ({
  datasource: DATASOURCE,
  expr: expr.replace(/\s+/g, ' ').trim(),
  legendFormat: legend,
  editorMode: 'code',
  range: how !== 'instant' && how !== 'table',
  instant: how === 'instant' || how === 'table',
  ...(how === 'table' ? { format: 'table' } : how === 'heatmap' ? { format: 'heatmap' } : {}),
});

const panel = (type, title, description, queries, { w, h, unit, decimals, min, max, thresholds = PLAIN, mappings = [], links = [], ...rest }, custom, options) => ({
  type,
  title,
  description,
  datasource: DATASOURCE,
  size: { w, h },
  targets: queries.map((target, index) => ({ refId: String.fromCharCode(65 + index), ...target })),
  fieldConfig: {
    defaults: {
      ...(unit && { unit }), ...(decimals !== undefined && { decimals }), ...(min !== undefined && { min }), ...(max !== undefined && { max }),
      color: { mode: type === 'timeseries' ? 'palette-classic' : 'thresholds' },
      thresholds, mappings, links, ...(custom && { custom }),
    },
    overrides: rest.overrides ?? [],
  },
  options,
  ...(rest.transformations && { transformations: rest.transformations }),
});

/** One number, or one a series: what is read first. */
export const stat = (title, description, queries, how = {}) => panel('stat', title, description, queries, { w: 3, h: 4, ...how }, undefined, {
  colorMode: how.colorMode ?? 'background', graphMode: how.graph ?? 'none', justifyMode: 'auto', textMode: how.textMode ?? 'auto', orientation: 'auto', wideLayout: true,
  reduceOptions: { calcs: ['lastNotNull'], fields: how.fields ?? '', values: false },
});

/** Lines over time. `limits`: names of series that are limits, drawn dashed. */
export const lines = (title, description, queries, how = {}) => panel('timeseries', title, description, queries, {
  w: 12, h: 8, min: 0, ...how,
  overrides: (how.limits ?? []).map((name) => ({
    matcher: { id: 'byRegexp', options: name },
    properties: [
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 6] } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.stacking', value: { group: 'A', mode: 'none' } },
    ],
  })),
}, {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: how.stack ? 30 : 8, showPoints: 'never', spanNulls: false, axisPlacement: 'auto', axisLabel: how.axis ?? '',
  stacking: { group: 'A', mode: how.stack ? 'normal' : 'none' },
  thresholdsStyle: { mode: how.thresholds ? 'dashed' : 'off' },
}, {
  legend: { displayMode: 'table', placement: 'right', showLegend: true, calcs: ['lastNotNull', 'max'] },
  tooltip: { mode: 'multi', sort: 'desc' },
});

/** States over time, a row a series. */
export const states = (title, description, queries, mappings, how = {}) => panel('state-timeline', title, description, queries, { w: 12, h: 8, mappings, thresholds: steps(GOOD, [1, LOOK]), ...how },
  { fillOpacity: 80, lineWidth: 0 },
  { mergeValues: true, showValue: 'never', alignValue: 'left', rowHeight: 0.8, legend: { displayMode: 'list', placement: 'bottom', showLegend: true }, tooltip: { mode: 'single', sort: 'none' } });

/** How often each bucket of a histogram was hit. */
export const heatmap = (title, description, queries, how = {}) => panel('heatmap', title, description, queries, { w: 24, h: 10, ...how }, { scaleDistribution: { type: 'linear' } }, {
  calculate: false, cellGap: 1, cellValues: {}, showValue: 'never',
  color: { mode: 'scheme', scheme: 'Oranges', scale: 'exponential', exponent: 0.3, steps: 64, reverse: false, fill: 'dark-orange' },
  yAxis: { axisPlacement: 'left', unit: how.unit, reverse: false }, rowsFrame: { layout: 'auto' },
  filterValues: { le: 1e-9 }, exemplars: { color: 'rgba(255,0,255,0.7)' }, legend: { show: true }, tooltip: { mode: 'single', yHistogram: true, showColorScale: true },
});

/** A bar a series, as a share of a whole. */
export const bars = (title, description, queries, how = {}) => panel('bargauge', title, description, queries, { w: 12, h: 8, min: 0, ...how }, undefined, {
  displayMode: 'gradient', orientation: 'horizontal', showUnfilled: true, minVizWidth: 8, minVizHeight: 16, valueMode: 'color', namePlacement: 'left', sizing: 'auto',
  legend: { displayMode: 'list', placement: 'bottom', showLegend: false, calcs: [] }, maxVizHeight: 300,
  reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
});

/** A table with a row for each set of `keys`; `columns` are [title, unit] of the queries in order. */
export const table = (title, description, keys, columns, queries, how = {}) => panel('table', title, description, queries.map((target) => ({ ...target, format: 'table', instant: true, range: false })), {
  w: 24, h: 9, ...how,
  transformations: [
    { id: 'merge', options: {} },
    { id: 'organize', options: {
      excludeByName: Object.fromEntries(['Time', '__name__', 'job', 'instance', ...(how.hide ?? [])].filter((name) => !keys.includes(name)).map((name) => [name, true])),
      indexByName: Object.fromEntries(keys.map((key, index) => [key, index])),
      renameByName: Object.fromEntries(columns.map(([name], index) => [columns.length === 1 ? 'Value' : `Value #${String.fromCharCode(65 + index)}`, name])),
    } },
  ],
  overrides: columns.filter(([, unit]) => unit).map(([name, unit]) => ({ matcher: { id: 'byName', options: name }, properties: [{ id: 'unit', value: unit }] })),
}, { align: 'auto', cellOptions: { type: 'auto' }, filterable: true, inspect: false }, { showHeader: true, cellHeight: 'sm', footer: { show: false, reducer: ['sum'], countRows: false, fields: '' } });

/** A heading. */
export const row = (title) => ({ type: 'row', title, collapsed: false, panels: [], size: { w: 24, h: 1 } });

/** Panels in their places: from left to right, the next line below the tallest. */
const layout = (panels) => {
  let [x, y, tallest] = [0, 0, 0];
  return panels.map(({ size: { w, h }, ...rest }, index) => {
    if (x + w > 24) [x, y, tallest] = [0, y + tallest, 0];
    const placed = { id: index + 1, ...rest, gridPos: { h, w, x, y } };
    [x, tallest] = [x + w, Math.max(tallest, h)];
    return placed;
  });
};

/** A variable that lists the values of a label. */
export const variable = (name, label, description, metric, key, how = {}) => ({
  type: 'query', name, label, description, datasource: DATASOURCE,
  query: { query: `label_values(${metric}, ${key})`, refId: 'variable' },
  refresh: 2, sort: 3, multi: how.multi ?? true, includeAll: how.all ?? true, regex: '', hide: 0, skipUrlSync: false, options: [],
  current: how.all ?? true ? { selected: true, text: ['All'], value: ['$__all'] } : {},
  ...((how.all ?? true) && { allValue: '.*' }),
});

const SOURCE = { type: 'datasource', name: 'datasource', label: 'Data source', description: 'The Prometheus that scrapes the switches', query: 'prometheus', refresh: 1, regex: '', multi: false, includeAll: false, hide: 0, skipUrlSync: false, options: [] };
const INSTANCE = variable('instance', 'Switch', 'By its scrape address', 'holdfast_build_info', 'instance');

const event = (name, expr, color, title) => ({ name, datasource: DATASOURCE, enable: true, hide: false, iconColor: color, expr, step: '5s', titleFormat: title, textFormat: '', tagKeys: 'port,queue', useValueForTime: false });

/** A dashboard: every one has the data source, the switch, links to the others and the events that explain a jump. */
export const dashboard = (uid, title, description, variables, panels) => ({
  uid: `holdfast-${uid}`,
  title: `Holdfast / ${title}`,
  description,
  tags: ['holdfast'],
  schemaVersion: 39,
  version: 1,
  editable: false,
  graphTooltip: 1,
  refresh: '5s',
  time: { from: 'now-15m', to: 'now' },
  timepicker: {},
  timezone: 'browser',
  weekStart: '',
  fiscalYearStartMonth: 0,
  links: [{ type: 'dashboards', title: 'Holdfast', tags: ['holdfast'], asDropdown: false, icon: 'external link', includeVars: true, keepTime: true, targetBlank: false, tooltip: '', url: '' }],
  annotations: { list: [
    event('Storms', 'increase(holdfast_watchdog_storms_total{instance=~"$instance"}[15s]) > 0', 'red', 'Pause storm at {{port}}, queue {{queue}}'),
    event('Stuck ports', 'increase(holdfast_port_egress_stucks_total{instance=~"$instance"}[15s]) > 0', 'red', '{{port}} takes no frames'),
    event('Watermarks cleared', 'changes(holdfast_watermarks_cleared_time_seconds{instance=~"$instance"}[15s]) > 0', 'blue', 'Watermarks of {{instance}} cleared'),
    event('Starts', 'changes(holdfast_start_time_seconds{instance=~"$instance"}[15s]) > 0', 'purple', '{{instance}} started'),
  ] },
  templating: { list: [SOURCE, INSTANCE, ...variables] },
  panels: layout(panels),
});

/** The switches that are chosen. */
export const I = 'instance=~"$instance"';
