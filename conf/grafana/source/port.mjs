// One port, or some, down to the class.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, dashboard, lines, query, row, stat, steps, variable, words } from './panels.mjs';

const P = `${I},port=~"$port"`;
const TC = `${P},tc=~"$class"`, PRIORITY = `${P},priority=~"$class"`, QUEUE = `${P},queue=~"$class"`;

export default dashboard('port', 'Port and class', 'A port down to its classes. Class, priority group and queue have the same number unless they are mapped otherwise.', [
  variable('port', 'Port', 'One, some or all', `holdfast_port_link_up{${I}}`, 'port'),
  variable('class', 'Class', 'Traffic class, priority group, queue', `holdfast_class_lossless{${I}}`, 'tc'),
], [
  stat('Received', 'Bits of the wire a second.', [query(`sum(port:holdfast_received_bits:rate1m{${P}})`, 'received')], { unit: 'bps', graph: 'area', colorMode: 'value' }),
  stat('Sent', 'Bits of the wire a second.', [query(`sum(port:holdfast_sent_bits:rate1m{${P}})`, 'sent')], { unit: 'bps', graph: 'area', colorMode: 'value' }),
  stat('Lossless drops, 5 min', 'Frames of lossless classes dropped, whatever the reason.', [query(`sum(port_reason:holdfast_lossless_dropped_frames:increase5m{${P}})`, 'dropped')], { thresholds: NONE_IS_GOOD, decimals: 0 }),
  stat('We stop the peer', 'Groups that are XOFF.', [query(`sum(holdfast_pfc_xoff{${PRIORITY}})`, 'XOFF')], { thresholds: steps(GOOD, [1, LOOK]) }),
  stat('The peer stops us', 'Priorities that are paused.', [query(`sum(holdfast_pfc_paused{${PRIORITY}})`, 'paused')], { thresholds: steps(GOOD, [1, LOOK]) }),
  stat('Headroom, highest', 'Of the most filled group, since watermarks were cleared.', [query(`max(port_priority:holdfast_group_headroom_highest:ratio{${P}})`, 'used')], { unit: 'percentunit', decimals: 1, thresholds: steps(GOOD, [0.6, LOOK], [0.8, ACT]) }),
  stat('PFC', 'Whether it can be relied upon, on all that are chosen: proven, or trusted by the word of the operator.', [query(`min(holdfast_pfc_standing{${P},standing=~"proven|trusted"} or 0 * holdfast_pfc_standing{${P}})`, 'standing')], { mappings: words({ 0: ['NOT PROVEN', ACT], 1: ['proven', GOOD] }), thresholds: steps(ACT, [1, GOOD]) }),
  stat('Link', 'Of all that are chosen.', [query(`min(holdfast_port_link_up{${P}})`, 'link')], { mappings: words({ 0: ['down', ACT], 1: ['up', GOOD] }), thresholds: steps(ACT, [1, GOOD]) }),

  row('Traffic'),
  lines('Received by class', 'Bits of frames, without preamble, check sequence and gap.', [query(`8 * sum by (port, tc) (rate(holdfast_port_received_bytes_total{${TC}}[$__rate_interval])) > 0 or 8 * sum by (port) (rate(holdfast_port_received_bytes_total{${TC}}[$__rate_interval])) == 0`, '{{port}} class {{tc}}')], { unit: 'bps' }),
  lines('Sent by queue', 'Bits of frames, without preamble, check sequence and gap.', [query(`8 * sum by (port, queue) (rate(holdfast_port_sent_bytes_total{${QUEUE}}[$__rate_interval])) > 0 or 8 * sum by (port) (rate(holdfast_port_sent_bytes_total{${QUEUE}}[$__rate_interval])) == 0`, '{{port}} queue {{queue}}')], { unit: 'bps' }),
  lines('Frames', 'Data frames of the chosen classes.', [
    query(`sum by (port) (rate(holdfast_port_received_frames_total{${TC}}[$__rate_interval]))`, '{{port}} received'), query(`sum by (port) (rate(holdfast_port_sent_frames_total{${QUEUE}}[$__rate_interval]))`, '{{port}} sent'),
  ], { unit: 'pps' }),
  lines('Drops', 'By reason and class; class any where a reason knows none.', [query(`sum by (port, reason, tc) (rate(holdfast_port_dropped_frames_total{${P},tc=~"$class|any"}[$__rate_interval])) > 0 or sum by (port) (rate(holdfast_port_dropped_frames_total{${P}}[$__rate_interval]))`, '{{port}} {{reason}} class {{tc}}')], { unit: 'pps' }),

  row('Buffer'),
  lines('Groups: shared pool', 'What frames received here hold of their pool, and what they may by now (threshold).', [
    query(`holdfast_group_shared_bytes{${PRIORITY}} and on (instance, port, priority) holdfast_group_headroom_size_bytes`, '{{port}} group {{priority}}'),
    query(`holdfast_group_threshold_bytes{${PRIORITY}} and on (instance, port, priority) holdfast_group_headroom_size_bytes`, '{{port}} group {{priority}} threshold'),
  ], { unit: 'bytes', limits: ['.*threshold'] }),
  lines('Groups: headroom', 'In use, the highest since watermarks were cleared, and what there is (eta).', [
    query(`holdfast_group_headroom_bytes{${PRIORITY}} and on (instance, port, priority) holdfast_group_headroom_size_bytes`, '{{port}} group {{priority}}'),
    query(`holdfast_group_headroom_highest_bytes{${PRIORITY}} and on (instance, port, priority) holdfast_group_headroom_size_bytes`, '{{port}} group {{priority}} highest'),
    query(`holdfast_group_headroom_size_bytes{${PRIORITY}}`, '{{port}} group {{priority}} eta'),
  ], { unit: 'bytes', limits: ['.*eta'] }),
  lines('Queues', 'Buffer that frames waiting to leave here hold, and the depths from which ECN marks.', [
    query(`topk(8, holdfast_queue_bytes{${QUEUE}})`, '{{port}} queue {{queue}}'),
    query(`max by (queue) (holdfast_queue_ecn_min_bytes{${I},queue=~"$class"})`, 'queue {{queue}} ECN min'),
    query(`max by (queue) (holdfast_queue_ecn_max_bytes{${I},queue=~"$class"})`, 'queue {{queue}} ECN max'),
  ], { unit: 'bytes', limits: ['.*ECN.*'] }),
  lines('Queues, highest', 'The most each has held since watermarks were cleared, and since the start.', [
    query(`topk(8, holdfast_queue_highest_bytes{${QUEUE}})`, '{{port}} queue {{queue}}'), query(`topk(8, holdfast_queue_highest_since_start_bytes{${QUEUE}})`, '{{port}} queue {{queue}} since start'),
  ], { unit: 'bytes', limits: ['.*since start'] }),

  row('PFC and ECN'),
  lines('Paused, share of the time', 'We stop the peer (sent), the peer stops us (received).', [
    query(`topk(8, port_priority:holdfast_pfc_sent_paused:ratio_rate1m{${PRIORITY}})`, '{{port}} priority {{priority}} sent'), query(`topk(8, port_priority:holdfast_pfc_received_paused:ratio_rate1m{${PRIORITY}})`, '{{port}} priority {{priority}} received'),
  ], { unit: 'percentunit', max: 1 }),
  lines('PFC frames', 'XOFF includes refreshes.', [
    query(`sum by (port) (rate(holdfast_pfc_sent_xoff_total{${PRIORITY}}[$__rate_interval]))`, '{{port}} XOFF sent'), query(`sum by (port) (rate(holdfast_pfc_sent_xon_total{${PRIORITY}}[$__rate_interval]))`, '{{port}} XON sent'),
    query(`sum by (port) (rate(holdfast_pfc_received_xoff_total{${PRIORITY}}[$__rate_interval]))`, '{{port}} XOFF received'), query(`sum by (port) (rate(holdfast_pfc_received_xon_total{${PRIORITY}}[$__rate_interval]))`, '{{port}} XON received'),
  ], { unit: 'pps' }),
  lines('Marked', 'Frames marked Congestion Experienced.', [query(`sum by (port) (rate(holdfast_ecn_marked_frames_total{${QUEUE}}[$__rate_interval]))`, '{{port}}')], { unit: 'pps' }),
  lines('Device and backlog', 'What the driver lost or found broken, and frames left in the receive ring by the last poll that had to.', [
    query(`rate(holdfast_device_receive_missed_frames_total{${P}}[$__rate_interval]) + rate(holdfast_device_receive_no_buffer_frames_total{${P}}[$__rate_interval])`, '{{port}} lost a second'),
    query(`rate(holdfast_device_receive_errors_total{${P}}[$__rate_interval]) + rate(holdfast_device_transmit_errors_total{${P}}[$__rate_interval])`, '{{port}} errors a second'),
    query(`holdfast_backlog_frames{${P}}`, '{{port}} backlog'),
  ], { unit: 'short' }),
]);
