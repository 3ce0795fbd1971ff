// The buffer: who has what of it, the most that ever was, and what the configuration allows.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, bars, dashboard, lines, query, row, stat, steps, table, variable } from './panels.mjs';

const P = `${I},port=~"$port"`;
const LOSSLESS = 'and on (instance, port, priority) holdfast_group_headroom_size_bytes';

export default dashboard('buffer', 'Buffer', 'One buffer, in reserves, two shared pools and headroom. Watermarks are since they were cleared (SIGUSR1), or since the start.', [
  variable('port', 'Port', 'One, some or all', `holdfast_port_link_up{${I}}`, 'port'),
], [
  stat('Lossless pool', 'In use.', [query(`max(pool:holdfast_pool_used:ratio{${I},pool="lossless"})`, 'used')], { unit: 'percentunit', decimals: 0, graph: 'area', w: 4 }),
  stat('Lossy pool', 'In use.', [query(`max(pool:holdfast_pool_used:ratio{${I},pool="lossy"})`, 'used')], { unit: 'percentunit', decimals: 0, graph: 'area', w: 4 }),
  stat('Headroom in use', 'Of all groups together.', [query(`sum(holdfast_group_headroom_bytes{${I}})`, 'used')], { unit: 'bytes', graph: 'area', w: 4 }),
  stat('Headroom, highest', 'The most of its headroom that any group has used since watermarks were cleared.', [query(`max(port_priority:holdfast_group_headroom_highest:ratio{${I}})`, 'used')], { unit: 'percentunit', decimals: 1, thresholds: steps(GOOD, [0.6, LOOK], [0.8, ACT]), w: 4 }),
  stat('Groups short of headroom', 'Less than was seen to be needed, by the longest poll gap or by loss.', [query(`sum(holdfast_group_headroom_is_short{${I}}) or vector(0)`, 'groups')], { thresholds: NONE_IS_GOOD, w: 4 }),
  stat('Watermarks cleared', 'For how long they have been kept.', [query(`max(time() - holdfast_watermarks_cleared_time_seconds{${I}})`, 'ago')], { unit: 's', decimals: 0, w: 4, colorMode: 'value' }),

  row('Now'),
  lines('Shared pools', 'In use, beside their sizes.', [
    query(`holdfast_pool_used_bytes{${I}}`, '{{pool}}'),
    query(`holdfast_buffer_bytes{${I},part=~".+_shared"}`, '{{part}}'),
  ], { unit: 'bytes', limits: ['.*_shared'] }),
  lines('Headroom', 'In use by all groups together, beside what is set aside.', [
    query(`sum by (instance) (holdfast_group_headroom_bytes{${I}})`, 'in use'), query(`holdfast_buffer_bytes{${I},part="headroom"}`, 'set aside'),
  ], { unit: 'bytes', limits: ['set aside'] }),
  lines('Lossless groups, share of their threshold', 'At 100 % a group is XOFF: its threshold falls as the pool fills.', [query(`port_priority:holdfast_group_shared:threshold_ratio{${P}} ${LOSSLESS}`, '{{port}} group {{priority}}')], { unit: 'percentunit', max: 1.2, thresholds: steps('transparent', [1, LOOK]) }),
  lines('Queues', 'The eight with most.', [query(`topk(8, holdfast_queue_bytes{${P}})`, '{{port}} queue {{queue}}')], { unit: 'bytes' }),
  lines('Reserves of groups', 'In use, by port.', [query(`sum by (instance, port) (holdfast_group_reserve_used_bytes{${P}})`, '{{port}}')], { unit: 'bytes', stack: true }),
  lines('Reserves of ports', 'In use, by port and pool; 0 where a port has none of its own.', [query(`holdfast_port_reserve_used_bytes{${P}}`, '{{port}} {{pool}}')], { unit: 'bytes', stack: true }),

  row('Watermarks'),
  bars('Headroom, highest share', 'Of each lossless group since watermarks were cleared. From 80 % on there is an alert.', [query(`port_priority:holdfast_group_headroom_highest:ratio{${P}}`, '{{port}} group {{priority}}', 'instant')], { unit: 'percentunit', max: 1, thresholds: steps(GOOD, [0.6, LOOK], [0.8, ACT]) }),
  lines('Pools, highest', 'Since watermarks were cleared, and since the start.', [query(`holdfast_pool_used_highest_bytes{${I}}`, '{{pool}}'), query(`holdfast_pool_used_highest_since_start_bytes{${I}}`, '{{pool}} since start')], { unit: 'bytes', limits: ['.*since start'] }),
  table('Groups, highest', 'Since watermarks were cleared; the last three columns since the start. needed: by the longest poll gap, or the highest use.', ['port', 'priority'],
    [['reserve', 'bytes'], ['shared', 'bytes'], ['headroom', 'bytes'], ['eta', 'bytes'], ['needed', 'bytes'], ['reserve, ever', 'bytes'], ['shared, ever', 'bytes'], ['headroom, ever', 'bytes']], [
      query(`holdfast_group_reserve_highest_bytes{${P}} ${LOSSLESS}`), query(`holdfast_group_shared_highest_bytes{${P}} ${LOSSLESS}`), query(`holdfast_group_headroom_highest_bytes{${P}} ${LOSSLESS}`),
      query(`holdfast_group_headroom_size_bytes{${P}}`), query(`holdfast_group_headroom_needed_bytes{${P}}`),
      query(`holdfast_group_reserve_highest_since_start_bytes{${P}} ${LOSSLESS}`), query(`holdfast_group_shared_highest_since_start_bytes{${P}} ${LOSSLESS}`), query(`holdfast_group_headroom_highest_since_start_bytes{${P}} ${LOSSLESS}`),
    ], { h: 7 }),

  row('Configured'),
  bars('Division of the buffer', 'Of all of it.', [query(`holdfast_buffer_bytes{${I},part!="total"} / on (job, instance) group_left () holdfast_buffer_bytes{part="total"}`, '{{part}}', 'instant')], { unit: 'percentunit', max: 1, decimals: 1, w: 8 }),
  table('Lossless groups', 'Alpha, eta and XON as configured.', ['port', 'priority'], [['alpha'], ['eta', 'bytes'], ['reserve', 'bytes'], ['XON offset', 'bytes'], ['XON floor', 'bytes']], [
    query(`holdfast_group_alpha{${P}} ${LOSSLESS}`), query(`holdfast_group_headroom_size_bytes{${P}}`), query(`holdfast_group_reserve_bytes{${P}} ${LOSSLESS}`), query(`holdfast_group_xon_offset_bytes{${P}}`), query(`holdfast_group_xon_floor_bytes{${P}}`),
  ], { w: 16, h: 8 }),
  table('Queues', 'Thresholds, ECN and shares as configured; weight 0 is strict.', ['queue'], [['weight'], ['alpha'], ['reserve', 'bytes'], ['ECN min', 'bytes'], ['ECN max', 'bytes'], ['ECN probability', 'percentunit']], [
    query(`holdfast_queue_weight{${I}}`), query(`holdfast_queue_alpha{${I}}`), query(`holdfast_queue_reserve_bytes{${I}}`), query(`holdfast_queue_ecn_min_bytes{${I}}`), query(`holdfast_queue_ecn_max_bytes{${I}}`), query(`holdfast_queue_ecn_probability_ratio{${I}}`),
  ]),
]);
