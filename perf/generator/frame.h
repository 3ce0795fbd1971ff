/* The frames of the generator: Ethernet, IPv4, UDP and RoCE's first header in one cache line. */
#ifndef HF_FRAME_H
#define HF_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#define FRAME_HEAD 64        /* bytes that are written; what is behind them no program reads */
#define ETHERNET 14
#define IPV4 20
#define TOS_AT (ETHERNET + 1)
#define ROCE_PORT 4791
#define LOSSLESS_CLASS 3
#define TOS_LOSSLESS (26 << 2 | 2) /* DSCP 26, ECT(0): class 3 of Holdfast's preset */
#define TOS_LOSSY 2                /* DSCP 0, ECT(0) */

/* The parts of a frame that are not its station's: they depend on its length, class and the two ports. */
struct template {
	uint64_t words[FRAME_HEAD / 8];
	uint32_t sum;         /* of the IPv4 header without the station's parts of the addresses */
	uint32_t len;
	uint64_t to_mask;     /* which bits of the station are in the destination's MAC address: none of a router's */
};

/* A station is a MAC address 02:00:port:00:00:00 + its number, and an IP address 10.port.0.0 + its number. Each sends to
 * the one of its own number behind another port, or by way of a router with the address 02:ff:00:00:00:port. */
static inline void
template_init(struct template *template, uint16_t len, uint8_t tos, uint8_t from, uint8_t to, bool routed)
{
	uint8_t *frame = (uint8_t *)template->words;
	uint16_t total = len - ETHERNET, udp = total - IPV4;
	const uint8_t head[FRAME_HEAD] = {
		0x02, routed ? 0xff : 0, routed ? 0 : to, 0, 0, routed ? from : 0, 0x02, 0, from, 0, 0, 0, 0x08, 0x00,
		0x45, tos, total >> 8, total & 0xff, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, from, 0, 0, 10, to, 0, 0,
		0xc0, 0, ROCE_PORT >> 8, ROCE_PORT & 0xff, udp >> 8, udp & 0xff, 0, 0,
		0x64, 0, 0xff, 0xff, /* BTH: unreliable datagram, SEND only; the default partition */
	};

	memset(template, 0, sizeof(*template));
	memcpy(frame, head, sizeof(head));
	template->len = len;
	template->to_mask = routed ? 0 : UINT64_MAX;
	for (unsigned int at = ETHERNET; at < ETHERNET + IPV4; at += 2)
		template->sum += (uint32_t)frame[at] << 8 | frame[at + 1];
}

/* Writes the frame's first line, word by word and each once: a wide load of what was just written in parts would wait.
 * The IPv4 checksum is right, and UDP has none, as the port promises by its offload flags. The UDP source port is the
 * flow's entropy. */
static inline void
frame_write(uint64_t *frame, const struct template *template, uint16_t station)
{
	uint32_t sum = template->sum + 2u * station;
	uint64_t number = station;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16)) & 0xffff;
	frame[0] = template->words[0] | rte_cpu_to_be_64((number & template->to_mask) << 16);
	frame[1] = template->words[1] | rte_cpu_to_be_64(number << 32);
	frame[2] = template->words[2];
	frame[3] = template->words[3] | rte_cpu_to_be_64((uint64_t)sum << 48 | number << 16);
	frame[4] = template->words[4] | rte_cpu_to_be_64(number << 48 | (number & 0x3fff) << 32);
	frame[5] = template->words[5];
	frame[6] = template->words[6];
	frame[7] = template->words[7];
}

#endif
