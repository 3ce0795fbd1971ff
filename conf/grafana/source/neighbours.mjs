// At the ports: LLDP, loops, link aggregation; and what an operator orders: faults, mirrors, sFlow.
import { ACT, GOOD, I, LOOK, NONE_IS_GOOD, dashboard, lines, query, row, stat, states, steps, table, variable, words } from './panels.mjs';

const P = `${I},port=~"$port"`;

export default dashboard('neighbours', 'Neighbours', 'Whether neighbours are configured as the switch expects, which loops and groups there are, and what faults and mirrors do.', [
  variable('port', 'Port', 'By its name', `holdfast_port_link_up{${I}}`, 'port'),
], [
  stat('Neighbours', 'Known by LLDP.', [query(`sum(holdfast_lldp_neighbours{${P}}) or vector(0)`, 'neighbours')], { unit: 'short', decimals: 0, colorMode: 'value' }),
  stat('Differences', 'Between ports and their neighbours: holdfast show lldp names the command that mends each.', [query(`sum(holdfast_lldp_differences{${P}}) or vector(0)`, 'differences')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Loops', 'Ports that receive LLDP or probes of their own switch.', [query(`sum(holdfast_port_loop{${P}}) or vector(0)`, 'loops')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Blocked', 'Ports that the loop guard blocks.', [query(`sum(holdfast_port_loop_blocked{${P}}) or vector(0)`, 'blocked')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Groups down', 'Link aggregation groups that carry no frames.', [query(`count(holdfast_lag_up{${I}} == 0) or vector(0)`, 'down')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),
  stat('Members idle', 'Members that neither take nor send frames.', [query(`count(holdfast_lag_member_active{${P}} == 0) or vector(0)`, 'idle')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Faults', 'Injected faults that act now: the verdict says so.', [query(`sum(holdfast_faults_active{${P}}) or vector(0)`, 'faults')], { thresholds: steps(GOOD, [1, LOOK]), decimals: 0, unit: 'short' }),
  stat('Mirrors failing', 'Files that are not written, outputs that drop copies, and collectors whose datagrams the kernel refuses.', [query(`(sum(holdfast_mirror_failing{${I}}) or vector(0)) + (count(rate(holdfast_mirror_output_dropped_total{${I}}[1m]) > 0) or vector(0)) + (count(rate(holdfast_sflow_errors_total{${I}}[1m]) > 0) or vector(0))`, 'failing')], { thresholds: NONE_IS_GOOD, decimals: 0, unit: 'short' }),

  row('LLDP and loops'),
  table('Differences', 'Neighbours that differ, by kind.', ['port', 'kind'], [['neighbours']], [query(`holdfast_lldp_differences{${P}} > 0`)], { w: 12, h: 8 }),
  states('Loops', 'Blocked, or told only.', [query(`clamp_max(holdfast_port_loop{${P}} + 2 * holdfast_port_loop_blocked{${P}}, 2)`, '{{port}}')], words({ 0: ['none', GOOD], 1: ['told', LOOK], 2: ['blocked', ACT] })),
  lines('LLDP frames', 'A second, by port. Discarded: malformed, or without room for a neighbour.', [
    query(`rate(holdfast_lldp_received_frames_total{${P}}[$__rate_interval])`, '{{port}} received'), query(`rate(holdfast_lldp_discarded_frames_total{${P}}[$__rate_interval]) > 0`, '{{port}} discarded'),
  ], { unit: 'pps' }),
  lines('Storms, spanning tree, loops', 'Frames a second that are dropped at ports, by reason.', [query(`sum by (reason) (rate(holdfast_port_dropped_frames_total{${P},reason=~"storm_.*|bpdu|loop_blocked|mirror_output"}[$__rate_interval]))`, '{{reason}}')], { unit: 'pps' }),

  row('Link aggregation'),
  states('Members', 'Whether they take and send frames.', [query(`holdfast_lag_member_active{${P}}`, '{{lag}} {{port}}')], words({ 1: ['active', GOOD], 0: ['idle', LOOK] })),
  lines('LACP frames', 'A second, by member. Malformed: frames of slow protocols.', [
    query(`rate(holdfast_lacp_received_frames_total{${P}}[$__rate_interval])`, '{{port}} received'), query(`rate(holdfast_lacp_malformed_frames_total{${P}}[$__rate_interval]) > 0`, '{{port}} malformed'),
  ], { unit: 'pps' }),

  row('Injected faults'),
  lines('Frames hit', 'A second, by fault. Passed: let pass for lack of room.', [
    query(`sum by (port, fault) (rate(holdfast_fault_frames_total{${P}}[$__rate_interval])) > 0`, '{{port}} {{fault}}'), query(`rate(holdfast_fault_passed_frames_total{${P}}[$__rate_interval]) > 0`, '{{port}} passed'),
  ], { unit: 'pps' }),
  lines('Faults and held frames', 'Faults that act now, and frames that they hold.', [query(`sum by (fault) (holdfast_faults_active{${P}}) > 0`, '{{fault}}'), query(`holdfast_fault_held_frames{${I}}`, 'held frames')], { unit: 'short' }),

  row('Mirrors and sFlow'),
  lines('Events', 'Frames a second that are copied, by event. Policed: beyond the rate of a session. No buffer: copies came faster than they were taken.', [
    query(`rate(holdfast_mirror_copies_total{${I}}[$__rate_interval])`, '{{event}}'), query(`rate(holdfast_mirror_policed_total{${I}}[$__rate_interval]) > 0`, '{{event}} policed'), query(`rate(holdfast_mirror_no_buffer_total{${I}}[$__rate_interval]) > 0`, '{{event}} no buffer'),
  ], { unit: 'pps' }),
  lines('Sessions', 'Copies a second that the destination took, or lost. Dropped: by the queues of an output.', [
    query(`rate(holdfast_mirror_written_total{${I}}[$__rate_interval])`, '{{session}}'), query(`rate(holdfast_mirror_lost_total{${I}}[$__rate_interval]) > 0`, '{{session}} lost'),
    query(`rate(holdfast_mirror_output_dropped_total{${P}}[$__rate_interval]) > 0`, '{{port}} dropped'),
  ], { unit: 'pps' }),
]);
