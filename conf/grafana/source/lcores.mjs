// The cores that poll: how late, how busy, and what they keep.
import { ACT, GOOD, I, LOOK, dashboard, heatmap, lines, query, row, stat, steps, table, variable, words } from './panels.mjs';

const L = `${I},lcore=~"$lcore"`;
const gaps = (quantile) => `histogram_quantile(${quantile}, sum by (instance, lcore, le) (rate(holdfast_poll_gap_seconds_bucket{${L}}[$__rate_interval])))`;

export default dashboard('lcores', 'Lcores', 'A poll that comes late is headroom used: every lossless group must cover the longest gap.', [
  variable('lcore', 'Lcore', 'Dataplane lcore by number', `holdfast_polls_total{${I}}`, 'lcore'),
], [
  stat('Poll gap, 99.9 %', 'Over five minutes, of the latest lcore.', [query(`max(lcore:holdfast_poll_gap_seconds:p999_rate5m{${L}})`, '99.9 %')], { unit: 's', w: 4, colorMode: 'value' }),
  stat('Poll gap, longest', 'Since watermarks were cleared, and since the start.', [query(`max(holdfast_poll_gap_highest_seconds{${L}})`, 'since cleared'), query(`max(holdfast_poll_gap_highest_since_start_seconds{${L}})`, 'since start')], { unit: 's', w: 6, colorMode: 'value', textMode: 'value_and_name' }),
  stat('Configured', 'lcores.poll_gap: what headroom is computed from.', [query(`max(holdfast_poll_gap_configured_seconds{${I}})`, 'configured')], { unit: 's', colorMode: 'value' }),
  stat('Late polls, 5 min', 'Later than configured, as far as buckets can tell. Harmless for virtual hosts, which stand still meanwhile.', [query(`sum(increase(holdfast_late_polls_total{${L}}[5m]))`, 'late')], { thresholds: steps(GOOD, [0.001, LOOK]), decimals: 0, unit: 'short' }),
  stat('Busiest lcore', 'Polls that moved a frame, over a minute.', [query(`max(lcore:holdfast_polls_busy:ratio_rate1m{${L}})`, 'busy')], { unit: 'percentunit', decimals: 0, graph: 'area', thresholds: steps(GOOD, [0.95, LOOK]) }),
  stat('Packet buffers', 'Out of the fuller pool.', [query(`max(pool:holdfast_packet_buffers_in_use:ratio{${I}})`, 'in use')], { unit: 'percentunit', decimals: 0, thresholds: steps(GOOD, [0.8, LOOK], [0.95, ACT]) }),
  stat('State', 'Whether all lcores poll.', [query(`min(holdfast_ready{${I}})`, 'ready')], { w: 2, mappings: words({ 0: ['NOT READY', ACT], 1: ['ready', GOOD] }), thresholds: steps(ACT, [1, GOOD]) }),

  row('Poll gaps'),
  heatmap('Poll gaps', 'How many polls came how late. Buckets are powers of two nanoseconds.', [query(`sum by (le) (increase(holdfast_poll_gap_seconds_bucket{${L}}[$__rate_interval]))`, '{{le}}', 'heatmap')], { unit: 's' }),
  lines('Poll gaps by share', 'Of polls that are at least as soon; interpolated within powers of two. Dashed: configured.', [
    query(gaps(0.5), 'lcore {{lcore}} 50 %'), query(gaps(0.99), 'lcore {{lcore}} 99 %'), query(gaps(0.9999), 'lcore {{lcore}} 99.99 %'), query(`holdfast_poll_gap_configured_seconds{${I}}`, 'configured'),
  ], { unit: 's', limits: ['configured'] }),
  lines('Late polls', 'A second, by lcore.', [query(`rate(holdfast_late_polls_total{${L}}[$__rate_interval])`, 'lcore {{lcore}}')], { unit: 'cps' }),

  row('Load'),
  lines('Busy polls', 'Share of polls that moved a frame. An idle poll is shorter than a busy one, so of the time it is more.', [query(`lcore:holdfast_polls_busy:ratio_rate1m{${L}}`, 'lcore {{lcore}}')], { unit: 'percentunit', max: 1 }),
  lines('Polls', 'A second, by lcore.', [query(`rate(holdfast_polls_total{${L}}[$__rate_interval])`, 'lcore {{lcore}}')], { unit: 'cps' }),
  lines('Rests', 'Share of the time that an lcore rested since nothing came; 0 where it polls on.', [query(`rate(holdfast_rested_seconds_total{${L}}[$__rate_interval]) or 0 * holdfast_held_frames{${L}}`, 'lcore {{lcore}}')], { unit: 'percentunit', max: 1, w: 8 }),
  lines('Frames held', 'In egress queues, by lcore.', [query(`holdfast_held_frames{${L}}`, 'lcore {{lcore}}')], { unit: 'short', w: 8 }),
  lines('Handed off', 'Frames a second that went to another lcore.', [query(`rate(holdfast_handed_off_frames_total{${L}}[$__rate_interval])`, 'lcore {{lcore}}')], { unit: 'pps', w: 8 }),

  row('What a core that cannot keep up shows'),
  lines('Backlog', 'Frames left in the receive ring by the last poll that had to, and the mark from which on lossless classes are stopped.', [
    query(`holdfast_backlog_frames{${I}}`, '{{port}}'), query(`max(holdfast_backlog_mark_frames{${I}}) or vector(0)`, 'mark'),
  ], { unit: 'short', limits: ['mark'] }),
  lines('Stopped for it', 'Times a second that the backlog made lossless groups XOFF.', [query(`rate(holdfast_backlog_xoffs_total{${I}}[$__rate_interval])`, '{{port}}')], { unit: 'cps' }),
  lines('Packet buffers', 'That are out, beside all there are.', [query(`holdfast_packet_buffers_in_use{${I}}`, '{{pool}}'), query(`holdfast_packet_buffers{${I}}`, '{{pool}}, all')], { unit: 'short', limits: ['.*all'] }),
  lines('Forwarding database', 'Entries by lcore, and addresses that found no room.', [query(`holdfast_fdb_entries{${L}}`, 'lcore {{lcore}}'), query(`increase(holdfast_fdb_full_total{${L}}[5m])`, 'lcore {{lcore}} no room, 5 min')], { unit: 'short' }),
  table('Ports of each lcore', 'Which one polls which port.', ['lcore', 'port'], [['owns']], [query(`holdfast_port_lcore_info{${L}}`)], { w: 12, h: 7, hide: ['Value'] }),
  table('Watermarks of each lcore', 'Since watermarks were cleared, and since the start.', ['lcore'], [['longest gap', 's'], ['longest gap, ever', 's'], ['hand-off ring, frames'], ['hand-off ring, ever']], [
    query(`holdfast_poll_gap_highest_seconds{${L}}`), query(`holdfast_poll_gap_highest_since_start_seconds{${L}}`), query(`holdfast_handoff_highest_frames{${L}}`), query(`holdfast_handoff_highest_since_start_frames{${L}}`),
  ], { w: 12, h: 7 }),
]);
