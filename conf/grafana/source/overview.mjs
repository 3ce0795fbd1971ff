// Is all well, and if not, where to look.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, bars, dashboard, lines, query, row, stat, states, steps, table, words } from './panels.mjs';

const toPort = [{ title: 'This port', url: '/d/holdfast-port?var-port=${__field.labels.port}&${instance:queryparam}&${__url_time_range}', targetBlank: false }];

export default dashboard('overview', 'Overview', 'Whether the promise holds: no loss in lossless classes. Everything red here has a line in docs/runbook.md.', [], [
  stat('Lossless drops, 5 min', 'Frames of lossless classes dropped, whatever the reason. Anything but 0 breaks the promise.',
    [query(`sum(port_reason:holdfast_lossless_dropped_frames:increase5m{${I}})`, 'dropped')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Lost in front, 5 min', 'Frames that found no room in a receive ring, or no buffer: their class is not known.',
    [query(`sum(port:holdfast_device_receive_lost_frames:increase5m{${I}})`, 'lost')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Groups XOFF now', 'Priority groups whose peer is being stopped. Congestion, not loss.',
    [query(`sum(holdfast_pfc_xoff{${I}})`, 'XOFF')], { thresholds: steps(GOOD, [1, LOOK]), graph: 'area' }),
  stat('Headroom, highest', 'The most of its headroom that any group has used since watermarks were cleared.',
    [query(`max(port_priority:holdfast_group_headroom_highest:ratio{${I}})`, 'used')], { unit: 'percentunit', decimals: 1, thresholds: steps(GOOD, [0.6, LOOK], [0.8, ACT]) }),
  stat('Poll gap: 99.9 %, configured', 'How late polls come, beside lcores.poll_gap, which headroom is computed from.',
    [query(`max(lcore:holdfast_poll_gap_seconds:p999_rate5m{${I}})`, '99.9 %'), query(`max(holdfast_poll_gap_configured_seconds{${I}})`, 'configured')],
    { unit: 's', decimals: 0, w: 4, colorMode: 'value', textMode: 'value_and_name' }),
  stat('Ports not lossless', 'Ports with lossless groups whose PFC is off or unproven.',
    [query(`count((holdfast_pfc_standing{${I},standing=~"unproven|off"} == 1) and on (instance, port) holdfast_group_headroom_size_bytes) or vector(0)`, 'ports')], { thresholds: NONE_IS_GOOD }),
  stat('Storms', 'Queues in a pause storm by the watchdog.', [query(`sum(holdfast_watchdog_storming{${I}}) or vector(0)`, 'storms')], { thresholds: NONE_IS_GOOD, w: 2 }),
  stat('Switches', 'Ready: every lcore polls and ports have proven themselves or had their time.',
    [query(`min(holdfast_ready{${I}})`, 'ready')], { w: 3, mappings: words({ 0: ['NOT READY', ACT], 1: ['ready', GOOD] }), thresholds: steps(ACT, [1, GOOD]) }),

  row('Traffic'),
  lines('Received', 'Bits of the wire by port, preamble and gap included.', [query(`port:holdfast_received_bits:rate1m{${I}}`, '{{port}}')], { unit: 'bps', links: toPort }),
  lines('Sent', 'Bits of the wire by port, preamble and gap included.', [query(`port:holdfast_sent_bits:rate1m{${I}}`, '{{port}}')], { unit: 'bps', links: toPort }),

  row('Congestion'),
  lines('Peers stopped by us', 'Share of the time for which a port has held its peer at XOFF: its most stopped priority.',
    [query(`max by (instance, port) (port_priority:holdfast_pfc_sent_paused:ratio_rate1m{${I}})`, '{{port}}')], { unit: 'percentunit', max: 1, thresholds: steps('transparent', [0.5, ACT]), links: toPort }),
  lines('Stopped by peers', 'Share of the time for which a peer has held the port at XOFF: its most stopped priority.',
    [query(`max by (instance, port) (port_priority:holdfast_pfc_received_paused:ratio_rate1m{${I}})`, '{{port}}')], { unit: 'percentunit', max: 1, thresholds: steps('transparent', [0.5, ACT]), links: toPort }),
  lines('Shared pools', 'Share of each pool in use.', [query(`pool:holdfast_pool_used:ratio{${I}}`, '{{pool}}')], { unit: 'percentunit', max: 1, w: 8 }),
  lines('Marked', 'Share of the frames sent that were marked Congestion Experienced, by port.',
    [query(`sum by (instance, port) (rate(holdfast_ecn_marked_frames_total{${I}}[$__rate_interval])) / sum by (instance, port) (rate(holdfast_port_sent_frames_total{${I}}[$__rate_interval]))`, '{{port}}')], { unit: 'percentunit', max: 1, w: 8, links: toPort }),
  lines('Drops by reason', 'All drops of all ports; lossy classes may lose.', [query(`sum by (reason) (rate(holdfast_port_dropped_frames_total{${I}}[$__rate_interval])) > 0 or label_replace(sum(rate(holdfast_port_dropped_frames_total{${I}}[$__rate_interval])), "reason", "all", "", "")`, '{{reason}}')], { unit: 'pps', w: 8 }),

  row('Ports'),
  states('Links', 'Whether each port has a link.', [query(`holdfast_port_link_up{${I}}`, '{{port}}')], words({ 0: ['down', ACT], 1: ['up', GOOD] }), { thresholds: steps(ACT, [1, GOOD]) }),
  bars('Utilisation', 'Of each port, the fuller direction, over a minute.',
    [query(`max by (instance, port) (label_replace(port:holdfast_received_utilisation:ratio_rate1m{${I}}, "direction", "received", "", "") or label_replace(port:holdfast_sent_utilisation:ratio_rate1m{${I}}, "direction", "sent", "", ""))`, '{{port}}', 'instant')], { unit: 'percentunit', max: 1, decimals: 0, thresholds: steps(GOOD, [0.9, LOOK]), links: toPort }),
  table('Ports', 'What each is, and whether its PFC can be relied upon.', ['instance', 'port', 'standing', 'lcore'], [['speed', 'bps'], ['standing is'], ['lcore is']], [
    query(`8 * holdfast_port_speed_bytes_per_second{${I}}`), query(`holdfast_pfc_standing{${I}}`), query(`holdfast_port_lcore_info{${I}}`),
  ], { w: 16, h: 7, hide: ['Value #B', 'Value #C'] }),
  table('Programs and configurations', 'Version and its day, and a hash that any changed setting changes.', ['instance', 'version', 'date', 'hash'], [['build'], ['config']], [
    query(`holdfast_build_info{${I}}`), query(`holdfast_config_info{${I}}`),
  ], { w: 8, h: 7, hide: ['Value #A', 'Value #B', 'commit', 'dpdk', 'linkage', 'rustc', 'target', 'features'] }),
]);
