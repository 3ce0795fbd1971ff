// Who stops whom, for how long, and who is told to slow down.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, dashboard, lines, query, row, stat, states, steps, table, variable, words } from './panels.mjs';

const P = `${I},port=~"$port"`;
const PRIORITY = `${P},priority=~"$class"`, QUEUE = `${P},queue=~"$class"`;
const LOSSLESS = 'and on (instance, port, priority) holdfast_group_headroom_size_bytes';
const HELD = words({ 0: ['goes on', 'transparent'], 1: ['XOFF', LOOK] });

export default dashboard('pfc-ecn', 'PFC and ECN', 'Pauses both ways, marks, storms. A pause is congestion that ECN did not end; a storm is a peer that does not let go.', [
  variable('port', 'Port', 'One, some or all', `holdfast_port_link_up{${I}}`, 'port'),
  variable('class', 'Class', 'Priority and queue', `holdfast_class_lossless{${I}}`, 'tc'),
], [
  stat('XOFF to peers now', 'Groups that are XOFF.', [query(`sum(holdfast_pfc_xoff{${PRIORITY}})`, 'XOFF')], { thresholds: steps(GOOD, [1, LOOK]), w: 4, graph: 'area' }),
  stat('XOFF from peers now', 'Priorities that peers have paused.', [query(`sum(holdfast_pfc_paused{${PRIORITY}})`, 'paused')], { thresholds: steps(GOOD, [1, LOOK]), w: 4, graph: 'area' }),
  stat('Most stopped peer', 'Share of the last minute.', [query(`max(port_priority:holdfast_pfc_sent_paused:ratio_rate1m{${PRIORITY}})`, 'of the time')], { unit: 'percentunit', decimals: 0, thresholds: steps(GOOD, [0.5, LOOK], [0.99, ACT]), w: 4 }),
  stat('Most marked queue', 'Share of what it sent in the last minute.', [query(`max(port_queue:holdfast_ecn_marked:ratio_rate1m{${QUEUE}}) or vector(0)`, 'marked')], { unit: 'percentunit', decimals: 0, thresholds: steps(GOOD, [0.5, LOOK]), w: 4 }),
  stat('Storms, 1 h', 'That the watchdog has found.', [query(`sum(increase(holdfast_watchdog_storms_total{${QUEUE}}[1h])) or vector(0)`, 'storms')], { thresholds: NONE_IS_GOOD, decimals: 0, w: 4 }),
  stat('Lossless drops, 5 min', 'Frames of lossless classes dropped, whatever the reason.', [query(`sum(port_reason:holdfast_lossless_dropped_frames:increase5m{${P}})`, 'dropped')], { thresholds: NONE_IS_GOOD, decimals: 0, w: 4 }),

  row('State'),
  states('We stop the peer', 'As of each scrape: a pause between two of them is in the shares below.', [query(`holdfast_pfc_xoff{${PRIORITY}} ${LOSSLESS}`, '{{port}} priority {{priority}}')], HELD),
  states('The peer stops us', 'As of each scrape.', [query(`holdfast_pfc_paused{${PRIORITY}} ${LOSSLESS}`, '{{port}} priority {{priority}}')], HELD),

  row('Pauses'),
  lines('We stop the peer, share of the time', 'Above half for five minutes there is an alert.', [query(`port_priority:holdfast_pfc_sent_paused:ratio_rate1m{${PRIORITY}} ${LOSSLESS}`, '{{port}} priority {{priority}}')], { unit: 'percentunit', max: 1, thresholds: steps('transparent', [0.5, ACT]) }),
  lines('The peer stops us, share of the time', 'Above 99 % for a minute it is a storm.', [query(`port_priority:holdfast_pfc_received_paused:ratio_rate1m{${PRIORITY}} ${LOSSLESS}`, '{{port}} priority {{priority}}')], { unit: 'percentunit', max: 1, thresholds: steps('transparent', [0.5, ACT]) }),
  lines('PFC frames sent', 'By port; one frame may name several priorities.', [query(`rate(holdfast_pfc_sent_frames_total{${P}}[$__rate_interval])`, '{{port}}')], { unit: 'pps' }),
  lines('PFC frames received', 'By port; classic PAUSE is counted and ignored.', [query(`rate(holdfast_pfc_received_frames_total{${P}}[$__rate_interval])`, '{{port}}'), query(`rate(holdfast_pause_received_frames_total{${P}}[$__rate_interval])`, '{{port}} classic PAUSE')], { unit: 'pps' }),

  row('Peers at XOFF'),
  states('Does the peer stop?', 'Disobeys: its frames came too late after three of the last 32 XOFFs.', [query(`holdfast_pfc_peer_disobeys{${PRIORITY}}`, '{{port}} priority {{priority}}')], words({ 0: ['not accused', 'transparent'], 1: ['disobeys', ACT] }), { w: 8 }),
  lines('Answers to XOFF', 'XOFFs, refreshes included, at which the peer stopped in time, or too late.', [
    query(`rate(holdfast_pfc_peer_stops_total{${PRIORITY}}[$__rate_interval])`, '{{port}} priority {{priority}} in time'), query(`rate(holdfast_pfc_peer_late_xoffs_total{${PRIORITY}}[$__rate_interval])`, '{{port}} priority {{priority}} too late'),
  ], { unit: 'ops', w: 8 }),
  lines('Time from XOFF to the last frame', 'Of 99 in 100 pauses. A time near that of the headroom is a peer at its limit.', [query(`histogram_quantile(0.99, sum by (instance, port, priority, le) (rate(holdfast_pfc_peer_response_seconds_bucket{${PRIORITY}}[$__rate_interval])))`, '{{port}} priority {{priority}}')], { unit: 's', w: 8 }),

  row('ECN'),
  lines('Marked, share of what was sent', 'By queue, over a minute. Above half for ten minutes there is an alert.', [query(`port_queue:holdfast_ecn_marked:ratio_rate1m{${QUEUE}} > 0 or max by (instance, port) (port_queue:holdfast_ecn_marked:ratio_rate1m{${QUEUE}}) == 0`, '{{port}} queue {{queue}}')], { unit: 'percentunit', max: 1, thresholds: steps('transparent', [0.5, ACT]) }),
  lines('Queue depth and ECN', 'Marking begins at min and is for all from max on.', [
    query(`topk(8, holdfast_queue_bytes{${QUEUE}})`, '{{port}} queue {{queue}}'), query(`max by (queue) (holdfast_queue_ecn_min_bytes{${I},queue=~"$class"})`, 'queue {{queue}} min'), query(`max by (queue) (holdfast_queue_ecn_max_bytes{${I},queue=~"$class"})`, 'queue {{queue}} max'),
  ], { unit: 'bytes', limits: ['.*(min|max)'] }),

  row('Storms and standing'),
  states('Storms', 'Queues that the watchdog has found in one. Ports without a watchdog have none.', [query(`max by (instance, port) (holdfast_watchdog_storming{${QUEUE}}) or 0 * max by (instance, port) (holdfast_port_link_up{${P}})`, '{{port}}')], words({ 0: ['quiet', GOOD], 1: ['storm', ACT] }), { w: 8 }),
  lines('Ignored by the watchdog', 'PFC frames received that a port would obey, but for a storm.', [query(`sum by (instance, port) (rate(holdfast_pfc_received_ignored_total{${PRIORITY}}[$__rate_interval]))`, '{{port}}')], { unit: 'pps', w: 8 }),
  table('Standing', 'What each port does of PFC, and what shows that it works.', ['port', 'mode', 'standing'], [['mode is'], ['standing is']], [
    query(`holdfast_pfc_mode_info{${P}}`), query(`holdfast_pfc_standing{${P}}`),
  ], { w: 8, h: 8, hide: ['Value #A', 'Value #B'] }),
]);
