// The router: routes, neighbours, next hops, frames for the switch itself, and the tables and taps of Linux.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, dashboard, lines, query, row, stat, states, steps, table, variable, words } from './panels.mjs';

const N = `${I},interface=~"$interface"`;
const F = `${I},port=~".*"`;

export default dashboard('routing', 'Routing', 'Whether each route has a usable next hop, how flows are spread over them, and what the control plane receives.', [
  variable('interface', 'Interface', 'Router interface by name', `holdfast_interface_up{${I}}`, 'interface'),
], [
  stat('Routes without next hop', 'Sets of next hops of which none is usable: packets of their routes are dropped.', [query(`max(holdfast_next_hop_groups_unresolved{${I}})`, 'unresolved')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Next hops lost', 'Next hops of routes that are not usable now.', [query(`count(holdfast_next_hop_usable{${N}} == 0) or vector(0)`, 'lost')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Forwarding table', 'Share of its room in use, of the fuller family.', [query(`max(holdfast_fib_prefixes{${I}} / holdfast_fib_size_prefixes{${I}})`, 'in use')], { unit: 'percentunit', decimals: 0, thresholds: steps(GOOD, [0.9, LOOK], [1, ACT]) }),
  stat('Prefixes refused', 'Since the start: the forwarding table had no room.', [query(`sum(holdfast_fib_refused_total{${I}})`, 'refused')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Flaps, 15 min', 'Usable neighbours that were lost, or whose MAC address changed.', [query(`sum(increase(holdfast_neighbour_flaps_total{${I}}[15m]))`, 'flaps')], { thresholds: steps(GOOD, [5, LOOK]), decimals: 0, unit: 'short' }),
  stat('Interfaces down', 'None of their ports has a link.', [query(`count(holdfast_interface_up{${N}} == 0) or vector(0)`, 'down')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Routed', 'Frames a second.', [query(`sum(rate(holdfast_routed_frames_total{${I}}[$__rate_interval]))`, 'routed')], { unit: 'pps', graph: 'area', colorMode: 'value' }),
  stat('Tables', 'Made for the lcores, a second: how often routes or neighbours change.', [query(`sum(rate(holdfast_route_tables_total{${I}}[$__rate_interval]))`, 'tables')], { unit: 'cps', graph: 'area', colorMode: 'value' }),

  row('Next hops'),
  lines('Frames by next hop', 'Frames a second routed to each next hop: unequal lines are unequal weights, or few large flows.', [query(`rate(holdfast_next_hop_frames_total{${N}}[$__rate_interval])`, '{{interface}} {{address}}')], { unit: 'pps' }),
  lines('Buckets moved', 'Hash buckets a second that changed their next hop: their flows took another path.', [query(`rate(holdfast_next_hop_buckets_moved_total{${I}}[$__rate_interval])`, 'moved')], { unit: 'cps' }),
  table('Next hops', 'Of routes, with the frames since the start. 1: usable.', ['interface', 'address'], [['usable'], ['frames']], [query(`holdfast_next_hop_usable{${N}}`), query(`holdfast_next_hop_frames_total{${N}}`)], { w: 12, h: 8 }),
  lines('Sets of next hops', 'That routes share, and those without a usable next hop. Omitted: next hops without series of their own.', [
    query(`holdfast_next_hop_groups{${I}}`, 'sets'), query(`holdfast_next_hop_groups_unresolved{${I}}`, 'unresolved'), query(`holdfast_next_hop_groups_refused_total{${I}}`, 'refused'), query(`holdfast_next_hops_omitted{${I}}`, 'omitted'),
  ], { unit: 'short' }),

  row('Routes and neighbours'),
  lines('Routes', 'Known, by source and family.', [query(`holdfast_routes{${I}} > 0`, '{{source}} {{family}}')], { unit: 'short' }),
  lines('Forwarding table', 'Prefixes. Dashed: its room.', [query(`holdfast_fib_prefixes{${I}}`, '{{family}}'), query(`holdfast_fib_size_prefixes{${I}}`, '{{family}} room')], { unit: 'short', limits: ['.*room'] }),
  lines('Neighbours', 'By state.', [query(`holdfast_neighbours{${I}}`, '{{state}}')], { unit: 'short', stack: true }),
  lines('Neighbours by port', 'Shares of ports; a second that gave way. Dashed: the most of a port.', [query(`holdfast_port_neighbours{${I}}`, '{{port}}'), query(`rate(holdfast_port_neighbours_evicted_total{${I}}[$__rate_interval])`, '{{port}} gave way'), query(`holdfast_port_neighbours_limit{${I}}`, 'limit')], { unit: 'short', limits: ['limit'] }),
  lines('Resolution', 'Packets that wait for a MAC address; packets a second dropped meanwhile, and flaps.', [
    query(`holdfast_resolution_waiting_packets{${I}}`, 'waiting'), query(`rate(holdfast_unresolved_packets_total{${I}}[$__rate_interval])`, 'dropped'), query(`rate(holdfast_neighbour_flaps_total{${I}}[$__rate_interval])`, 'flaps'), query(`rate(holdfast_neighbours_refused_total{${I}}[$__rate_interval])`, 'refused'),
  ], { unit: 'short' }),

  row('Drops and the control plane'),
  lines('Drops of routing', 'Frames a second that could not be routed, by reason.', [query(`sum by (reason) (rate(holdfast_port_dropped_frames_total{${F},reason=~"no_route|neighbour_incomplete|blackhole|martian|own_source|ttl_expired|fragmentation_.*|ipv4_checksum|ipv4_options|not_routable|punt_policed"}[$__rate_interval]))`, '{{reason}}')], { unit: 'pps' }),
  lines('Frames to the control plane', 'A second, by cause.', [query(`sum by (cause) (rate(holdfast_punted_frames_total{${I}}[$__rate_interval]))`, '{{cause}}')], { unit: 'pps' }),
  lines('Not given to it', 'Frames a second beyond the rate of their cause, or without a buffer.', [
    query(`sum by (cause) (rate(holdfast_punt_policed_frames_total{${I}}[$__rate_interval]))`, '{{cause}}'), query(`sum(rate(holdfast_punt_full_frames_total{${I}}[$__rate_interval]))`, 'no buffer'),
  ], { unit: 'pps' }),
  lines('Frames of the control plane', 'A second: sent, lost, and of them ICMP.', [
    query(`sum(rate(holdfast_injected_frames_total{${I}}[$__rate_interval]))`, 'sent'), query(`sum(rate(holdfast_inject_dropped_frames_total{${I}}[$__rate_interval]))`, 'no port or buffer'), query(`sum(rate(holdfast_router_output_dropped_frames_total{${I}}[$__rate_interval]))`, 'too many waited'),
    query(`sum(rate(holdfast_icmp_errors_sent_total{${I}}[$__rate_interval]))`, 'ICMP errors'), query(`sum(rate(holdfast_echo_replies_sent_total{${I}}[$__rate_interval]))`, 'echo replies'), query(`sum(rate(holdfast_address_conflicts_total{${I}}[$__rate_interval]))`, 'conflicts'),
  ], { unit: 'pps' }),

  row('Linux: tables and taps of routing.linux'),
  states('Tables followed', 'Whether the router has all routes, addresses and neighbours of Linux. Not: it reads them, or some had no room or could not be decoded.', [query(`holdfast_linux_synced{${I}}`, '{{instance}}')], words({ 1: ['followed', GOOD], 0: ['not followed', ACT] })),
  lines('Readings of the tables', 'A minute: complete readings (one is normal), lost messages of Linux, messages that could not be parsed, entries without room.', [
    query(`60 * rate(holdfast_linux_dumps_total{${I}}[2m])`, 'readings'), query(`60 * rate(holdfast_linux_overruns_total{${I}}[2m])`, 'losses of messages'), query(`60 * rate(holdfast_linux_malformed_messages_total{${I}}[2m])`, 'malformed'), query(`60 * rate(holdfast_linux_refused_entries_total{${I}}[2m])`, 'without room'),
  ], { unit: 'cpm' }),
  lines('Frames to Linux', 'A second, by interface: given to its tap, and not taken by it.', [
    query(`rate(holdfast_linux_delivered_frames_total{${N}}[$__rate_interval])`, '{{interface}}'), query(`rate(holdfast_linux_refused_frames_total{${N}}[$__rate_interval]) > 0`, '{{interface}} not taken'),
  ], { unit: 'pps' }),
  lines('Frames of Linux', 'A second, by interface: sent by its tap, and dropped because every buffer was in use.', [
    query(`rate(holdfast_linux_sent_frames_total{${N}}[$__rate_interval])`, '{{interface}}'), query(`rate(holdfast_linux_unsent_frames_total{${N}}[$__rate_interval]) > 0`, '{{interface}} dropped'),
  ], { unit: 'pps' }),
]);
