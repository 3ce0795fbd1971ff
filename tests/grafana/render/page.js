/* Draws the panels of `D` into the page. */
const COLOURS = { green: '#73bf69', orange: '#ff9830', red: '#f2495c', blue: '#5794f2', transparent: '#343a44' };
const PALETTE = ['#73bf69', '#f2cc0c', '#8ab8ff', '#ff780a', '#f2495c', '#5794f2', '#b877d9', '#37872d', '#fade2a', '#8f3bb8', '#ffa6b0', '#19730e'];

const scaled = (value, base, names) => {
  let index = 0;
  while (Math.abs(value) >= base && index < names.length - 1) { value /= base; index += 1; }
  return `${Number(value.toPrecision(3))} ${names[index]}`.trim();
};
const seconds = (value) => {
  if (value === 0) return '0 s';
  for (const [limit, unit, factor] of [[1e-6, 'ns', 1e9], [1e-3, 'µs', 1e6], [1, 'ms', 1e3], [60, 's', 1], [3600, 'min', 1 / 60]]) if (Math.abs(value) < limit) return `${Number((value * factor).toPrecision(3))} ${unit}`;
  return `${Number((value / 3600).toPrecision(3))} h`;
};
const show = (value, unit, decimals) => {
  if (value === null || value === undefined || Number.isNaN(value)) return '-';
  switch (unit) {
    case 'percentunit': return `${Number((value * 100).toFixed(decimals ?? 1))}%`;
    case 's': return seconds(value);
    case 'bytes': return scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB']);
    case 'bps': return scaled(value, 1000, ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s']);
    case 'Bps': return scaled(value, 1000, ['B/s', 'kB/s', 'MB/s', 'GB/s']);
    case 'pps': return scaled(value, 1000, ['p/s', 'kp/s', 'Mp/s']);
    case 'cps': return scaled(value, 1000, ['c/s', 'Kc/s', 'Mc/s']);
    default: return decimals === undefined ? scaled(value, 1000, ['', 'K', 'Mil', 'Bil']) : String(Number(value.toFixed(decimals)));
  }
};
const last = (series) => series.values.at(-1)[1];
const mapping = (panel, value) => panel.fieldConfig.defaults.mappings.flatMap((map) => Object.entries(map.options)).find(([key]) => Number(key) === value)?.[1];
const colour = (panel, value) => COLOURS[mapping(panel, value)?.color ?? panel.fieldConfig.defaults.thresholds.steps.filter((step) => step.value === null || value >= step.value).at(-1).color];
const make = (parent, tag, className, text) => { const made = document.createElement(tag); if (className) made.className = className; if (text !== undefined) made.textContent = text; parent.append(made); return made; };

const stat = (panel, body) => {
  const { unit, decimals } = panel.fieldConfig.defaults;
  const all = make(body, 'div', 'stats');
  for (const one of panel.series) {
    const box = make(all, 'div', 'value');
    const hue = colour(panel, last(one));
    const isName = panel.options.textMode === 'name';
    if (panel.options.colorMode === 'background') { box.style.background = hue; box.style.color = '#111217'; } else box.style.color = hue;
    const value = make(box, 'b', '', isName ? one.name : mapping(panel, last(one))?.text ?? show(last(one), unit, decimals));
    if (isName || panel.series.length > 1) value.style.fontSize = isName ? '12px' : '18px';
    if (!isName && panel.series.length > 1) make(box, 'span', '', one.name);
    if (panel.options.graphMode === 'area') {
      const top = Math.max(...one.values.map(([, v]) => v), 1e-12);
      const points = one.values.map(([at, v]) => `${(at - D.from) / (D.to - D.from) * 100},${40 - v / top * 38}`).join(' ');
      box.insertAdjacentHTML('beforeend', `<svg viewBox="0 0 100 40" preserveAspectRatio="none"><polygon fill="currentColor" points="${(one.values[0][0] - D.from) / (D.to - D.from) * 100},40 ${points} 100,40"/></svg>`);
    }
  }
};

const isLimit = (panel, name) => panel.fieldConfig.overrides.some(({ matcher }) => new RegExp(`^(${matcher.options})$`).test(name));
const legend = (panel, body, hues) => {
  const { unit, decimals } = panel.fieldConfig.defaults;
  const rows = make(make(body, 'div', 'legend'), 'table');
  const head = make(rows, 'tr');
  ['Name', 'Last', 'Max'].forEach((text) => make(head, 'td', '', text));
  panel.series.forEach((one, index) => {
    const row = make(rows, 'tr');
    const cell = make(row, 'td');
    make(cell, 'i').style.background = hues[index];
    cell.append(one.name);
    make(row, 'td', '', show(last(one), unit, decimals));
    make(row, 'td', '', show(Math.max(...one.values.map(([, v]) => v)), unit, decimals));
  });
};

const timeseries = (panel, body, width, height) => {
  const { unit, decimals, min, max, custom, thresholds } = panel.fieldConfig.defaults;
  const times = [];
  for (let at = D.from; at <= D.to; at += D.step) times.push(at);
  const hues = panel.series.map((_, index) => PALETTE[index % PALETTE.length]);
  const place = make(body, 'div');
  let under = times.map(() => 0);
  const columns = panel.series.map((one) => {
    const values = new Map(one.values);
    const column = times.map((at) => values.has(at) && !Number.isNaN(values.get(at)) ? values.get(at) : null);
    if (custom.stacking.mode !== 'normal') return column;
    under = column.map((value, index) => (value ?? 0) + under[index]);
    return under;
  });
  const limits = custom.thresholdsStyle.mode === 'off' ? [] : thresholds.steps.filter((step) => step.value !== null);
  const highest = Math.max(0, ...columns.flat().map((v) => v ?? 0));
  new uPlot({
    width: width * 0.66, height, legend: { show: false }, cursor: { show: false },
    scales: { x: { time: true }, y: { range: [min ?? null, max ?? (highest * 1.08 || 1)] } },
    axes: [{ stroke: '#9fa7b3', grid: { stroke: '#24272c' }, ticks: { show: false } }, { stroke: '#9fa7b3', grid: { stroke: '#24272c' }, ticks: { show: false }, size: 72, values: (_, ticks) => ticks.map((v) => show(v, unit, decimals)) }],
    series: [{}, ...panel.series.map((one, index) => ({ label: one.name, stroke: hues[index], width: 1.3, points: { show: false }, ...(isLimit(panel, one.name) ? { dash: [8, 6] } : { fill: `${hues[index]}1a` }) }))],
    hooks: { draw: [(plot) => limits.forEach((step) => {
      const y = plot.valToPos(step.value, 'y', true);
      plot.ctx.save(); plot.ctx.strokeStyle = COLOURS[step.color]; plot.ctx.setLineDash([6, 4]); plot.ctx.beginPath();
      plot.ctx.moveTo(plot.bbox.left, y); plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y); plot.ctx.stroke(); plot.ctx.restore();
    })] },
  }, [times, ...columns], place);
  legend(panel, body, hues);
};

const states = (panel, body, width, height) => {
  const left = 130, line = Math.max(10, (height - 24) / panel.series.length);
  const at = (time) => left + (time - D.from) / (D.to - D.from) * (width - left - 8);
  const parts = panel.series.map((one, index) => {
    const y = index * line, step = at(D.from + D.step) - at(D.from) + 0.6;
    const boxes = one.values.map(([time, value]) => `<rect x="${at(time)}" y="${y + line * 0.1}" width="${step}" height="${line * 0.8}" fill="${colour(panel, value)}"/>`).join('');
    return `${boxes}<text x="${left - 6}" y="${y + line / 2 + 4}" text-anchor="end" fill="#ccccdc">${one.name}</text>`;
  });
  const keys = panel.fieldConfig.defaults.mappings.flatMap((map) => Object.values(map.options));
  const names = keys.map((key, index) => `<rect x="${left + index * 110}" y="${height - 14}" width="10" height="10" fill="${COLOURS[key.color]}"/><text x="${left + 16 + index * 110}" y="${height - 5}" fill="#ccccdc">${key.text}</text>`);
  body.insertAdjacentHTML('beforeend', `<svg width="${width}" height="${height}">${parts.join('')}${names.join('')}</svg>`);
};

const heatmap = (panel, body, width, height) => {
  // Buckets count what is below their end, so each is less the one before.
  const sorted = panel.series.filter((one) => Number.isFinite(Number(one.metric.le))).sort((a, b) => a.metric.le - b.metric.le);
  const counts = sorted.map((one, index) => {
    const before = new Map(index ? sorted[index - 1].values : []);
    return one.values.map(([at, v]) => [at, Math.max(0, v - (before.get(at) ?? 0))]);
  });
  const used = counts.map((column) => column.some(([, v]) => v > 1e-9));
  const first = used.indexOf(true), end = used.lastIndexOf(true) + 1;
  const top = Math.max(...counts.flat().map(([, v]) => v));
  const left = 70, line = (height - 6) / (end - first), at = (time) => left + (time - D.from) / (D.to - D.from) * (width - left - 8);
  const step = at(D.from + D.step) - at(D.from);
  const cells = [];
  for (let row = first; row < end; row += 1) {
    const y = height - 6 - (row - first + 1) * line;
    cells.push(`<text x="${left - 6}" y="${y + line / 2 + 4}" text-anchor="end" fill="#9fa7b3">${show(Number(sorted[row].metric.le), 's')}</text>`);
    for (const [time, v] of counts[row]) if (v > 1e-9) cells.push(`<rect x="${at(time)}" y="${y + 0.5}" width="${step}" height="${line - 1}" fill="#ff9830" opacity="${0.08 + 0.92 * (v / top) ** 0.3}"/>`);
  }
  body.insertAdjacentHTML('beforeend', `<svg width="${width}" height="${height}">${cells.join('')}</svg>`);
};

const bargauge = (panel, body) => {
  const { unit, decimals, max } = panel.fieldConfig.defaults;
  const bars = make(body, 'div', 'bars');
  for (const one of panel.series) {
    const bar = make(bars, 'div', 'bar');
    make(bar, 'span', '', one.name);
    const inner = make(make(bar, 'div'), 'div');
    inner.style.cssText = `width:${Math.min(100, last(one) / (max ?? 1) * 100)}%;height:16px;background:${colour(panel, last(one))}`;
    make(bar, 'b', '', show(last(one), unit, decimals)).style.color = colour(panel, last(one));
  }
};

const table = (panel, body) => {
  const organize = panel.transformations.find(({ id }) => id === 'organize').options;
  const renamed = (column) => organize.renameByName[column] ?? column;
  const refs = [...new Set(panel.series.map((one) => one.ref))];
  const rows = new Map();
  // Rows of several queries are one where the labels that both have are the same.
  for (const one of panel.series) {
    const labels = Object.entries(one.metric).filter(([key]) => !organize.excludeByName[key]);
    const found = [...rows.values()].filter((row) => labels.every(([key, value]) => !(key in row) || row[key] === value) && labels.some(([key]) => key in row));
    const value = [refs.length > 1 || renamed('Value') === 'Value' && !organize.excludeByName.Value ? `Value #${one.ref}` : 'Value', last(one)];
    const targets = found.length ? found : [{}];
    for (const row of targets) { Object.assign(row, Object.fromEntries(labels), { [value[0]]: value[1] }); rows.set(row, row); }
  }
  const columns = [...new Set([...rows.values()].flatMap((row) => Object.keys(row)))].filter((column) => !organize.excludeByName[column]);
  const order = (column) => organize.indexByName[column] ?? (column.startsWith('Value') ? 100 + columns.indexOf(column) : 50);
  columns.sort((a, b) => order(a) - order(b));
  const box = make(make(body, 'div', 'table'), 'table');
  const head = make(box, 'tr');
  columns.forEach((column) => make(head, 'th', column.startsWith('Value') ? 'number' : '', renamed(column)));
  for (const row of rows.values()) {
    const line = make(box, 'tr');
    for (const column of columns) {
      const unit = panel.fieldConfig.overrides.find(({ matcher }) => matcher.options === renamed(column))?.properties[0].value;
      make(line, 'td', column.startsWith('Value') ? 'number' : '', column.startsWith('Value') ? (row[column] === undefined ? '' : show(row[column], unit)) : row[column] ?? '');
    }
  }
};

const DRAW = { stat, timeseries, 'state-timeline': states, heatmap, bargauge, table };
make(document.body, 'h1', '', D.title);
for (const panel of D.panels) {
  const { x, y, w, h } = panel.gridPos;
  const box = make(document.body, 'div', panel.type === 'row' ? 'panel row' : 'panel');
  const column = D.width / 24;
  box.style.cssText = `left:${x * column + 4}px;top:${y * D.line + 50}px;width:${w * column - 8}px;height:${h * D.line - 8}px`;
  if (panel.type === 'row') { box.textContent = panel.title; continue; }
  make(box, 'div', 'title', panel.title);
  const body = make(box, 'div', 'body');
  if (panel.series.length) DRAW[panel.type](panel, body, w * column - 18, h * D.line - 42);
  else make(body, 'div', 'nothing', 'no data');
}
