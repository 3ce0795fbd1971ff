/* A port that hands out real frames from memory and takes whatever is sent to it: a virtual device of DPDK, loaded by
 * any program with `-d libhfgen.so --vdev net_hfgen0,...`. What it does and costs, and its arguments: perf/README.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "counts.h"
#include "frame.h"

#define BURST 64
#define CLASSES 2             /* lossy and lossless */
#define SIZES 3               /* at most: those of IMIX */
#define MIX 4096              /* sizes are drawn once, and repeat after so many frames */
#define TX_QUEUES 16
#define PUBLISH_POLLS 256     /* polls between two looks at the clock, since that costs as much as a packet */
#define PUBLISH_PARTS 1000    /* publications a second */
#define AHEAD 8               /* descriptors that are looked at before their turn, as drivers do */
#define WIRE_EXTRA 24         /* preamble, check sequence, gap */
#define DRAIN_BURST 65536     /* bytes that a paced port takes at once after a pause */
#define QUANTUM_BITS 512
#define STOLEN_US 100         /* a longer time between two polls was taken by the machine: no frame comes in the rest */
#define REARM offsetof(struct rte_mbuf, data_off)

RTE_LOG_REGISTER_DEFAULT(generator_log, NOTICE);
#define LOG(level, ...) rte_log(RTE_LOG_##level, generator_log, "net_hfgen: " __VA_ARGS__)

/* A posted buffer and what the NIC says of the frame in it: 16 bytes, as descriptors have. */
struct descriptor {
	struct rte_mbuf *mbuf;
	uint32_t hash;
	uint16_t len;
	uint16_t unused;
};

/* The descriptors of one class, oldest first from `head` on. */
struct lane {
	struct descriptor *ring;
	uint32_t mask;
	uint32_t head;
	uint8_t class;
	uint64_t paused_until;
	double waiting;           /* frames that came by the clock and are still there */
	struct template templates[SIZES];
};

/* Which station and which length come next. */
struct order {
	uint32_t station, mask, half_bits;
	uint32_t mix_at;
};

enum pattern { PAIRS, RING, INCAST };

struct port;

struct tx_queue {
	struct port *port;
	uint64_t taken, bytes, refused, pfc, lossless;
} __rte_cache_aligned;

struct port {
	/* What rx touches. */
	struct lane lanes[CLASSES];
	struct rte_mempool *pool;
	uint64_t random;          /* which class comes next */
	struct order order;
	uint64_t rearm;           /* the first words of a buffer: data offset, one reference, one segment, port */
	uint32_t hash_seed;
	uint32_t data_at;         /* of the frame, from its mbuf on */
	uint32_t polls;
	uint16_t id;
	uint8_t index, to, lane_count, paused_lanes, obeys, routed;
	uint64_t left;            /* frames still to be handed out, and by how many that grows with each publication */
	uint32_t trickle;
	uint32_t load, waiting;   /* frames that come at once, and those of them that are still there; 0: always more */
	bool is_emptied;          /* the last poll took all that were there */
	bool is_timed;            /* frames come by the clock, at a rate that the harness sets */
	uint64_t arrived_at, longest_poll;
	double lane_per_tick;     /* frames a tick and lane */
	double offered, missed, held;
	uint64_t handed, bytes, no_mbuf, paused;
	uint8_t mix[MIX];

	/* What tx touches. */
	struct tx_queue tx[TX_QUEUES];
	double drain_per_tick, credit;
	uint64_t drained_at;

	/* The rest. */
	struct gen_counts *counts;
	uint32_t stations, posted, ports, speed_mb, drain_mb, size, classes;
	enum pattern pattern;
	char stats[256];
	struct rte_ether_addr address;
};

/* ---- receive ---- */

/* Every station once in `stations` frames, in an order that no prefetcher guesses: a generator of full period, mixed. */
static inline uint16_t
next_station(struct order *order)
{
	uint32_t station;

	order->station = (order->station * 1664525 + 1013904223) & order->mask;
	station = order->station;
	station ^= station >> order->half_bits;
	station = (station * 0x9e3779b1u) & order->mask;
	return station ^ station >> order->half_bits;
}

/* What a NIC and its driver do for a buffer that is posted: the driver makes it ready, the NIC writes the frame. */
static inline void
post(struct port *port, struct lane *lane, struct order *order, struct descriptor *slot, struct rte_mbuf *mbuf)
{
	const struct template *template = &lane->templates[port->mix[order->mix_at++ % MIX]];
	uint16_t station = next_station(order);

	memcpy(RTE_PTR_ADD(mbuf, REARM), &port->rearm, sizeof(port->rearm));
	frame_write(RTE_PTR_ADD(mbuf->buf_addr, RTE_PKTMBUF_HEADROOM), template, station);
	slot->mbuf = mbuf;
	slot->hash = (station ^ port->hash_seed) * 0x9e3779b1u; /* alike in a flow, different between flows */
	slot->len = template->len;
}

/* What a driver does with a descriptor that came back: it says in the buffer what it holds. */
static inline struct rte_mbuf *
complete(const struct descriptor *slot)
{
	struct rte_mbuf *mbuf = slot->mbuf;

	mbuf->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	mbuf->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP;
	mbuf->pkt_len = slot->len;
	mbuf->data_len = slot->len;
	mbuf->vlan_tci = 0;
	mbuf->hash.rss = slot->hash;
	return mbuf;
}

/* For the harness, once a millisecond. The time on the CPU says what a machine that does other things has taken away. */
static __rte_noinline void
publish(struct port *port)
{
	struct gen_counts *counts = port->counts;
	struct tx_queue sum = { 0 };
	uint64_t now = rte_rdtsc();
	struct timespec cpu;

	port->polls = 0;
	if (counts == NULL || now - counts->tsc < counts->hz / PUBLISH_PARTS)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	for (unsigned int i = 0; i < TX_QUEUES; i++) {
		sum.taken += port->tx[i].taken;
		sum.bytes += port->tx[i].bytes;
		sum.refused += port->tx[i].refused;
		sum.pfc += port->tx[i].pfc;
		sum.lossless += port->tx[i].lossless;
	}
	__atomic_store_n(&counts->sequence, counts->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	counts->tsc = rte_rdtsc();
	counts->cpu_ns = cpu.tv_sec * 1000000000ull + cpu.tv_nsec;
	counts->handed = port->handed;
	counts->handed_bytes = port->bytes;
	counts->taken = sum.taken;
	counts->taken_bytes = sum.bytes;
	counts->refused = sum.refused;
	counts->pfc = sum.pfc;
	counts->no_mbuf = port->no_mbuf;
	counts->paused = port->paused;
	counts->offered = port->offered;
	counts->missed = port->missed;
	counts->held = port->held;
	counts->lossless = sum.lossless;
	port->lane_per_tick = (double)__atomic_load_n(&counts->wanted, __ATOMIC_RELAXED) / counts->hz / port->lane_count;
	__atomic_store_n(&counts->sequence, counts->sequence + 1, __ATOMIC_RELEASE);
}

/* The lanes that may give frames, as a mask. */
static inline unsigned int
open_lanes(struct port *port)
{
	unsigned int open = (1u << port->lane_count) - 1;
	uint64_t now;

	if (likely(port->paused_lanes == 0))
		return open;
	now = rte_rdtsc();
	for (unsigned int i = 0; i < port->lane_count; i++)
		if (port->lanes[i].paused_until <= now)
			port->paused_lanes &= ~(1u << i);
	return open & ~port->paused_lanes;
}

/* The frames that came since the last poll. Those of a paused class wait at their sender, and those without a descriptor
 * are lost. Returns how many are there. */
static uint32_t
arrive(struct port *port, unsigned int open)
{
	uint64_t now = rte_rdtsc();
	uint64_t ticks = RTE_MIN(now - port->arrived_at, port->longest_poll);
	double frames = ticks * port->lane_per_tick;
	uint32_t waiting = 0;

	port->arrived_at = now;
	for (unsigned int i = 0; i < port->lane_count; i++) {
		struct lane *lane = &port->lanes[i];
		double room = lane->mask + 1 - lane->waiting;

		if (open >> i & 1) {
			port->offered += frames;
			port->missed += frames > room ? frames - room : 0;
			lane->waiting += RTE_MIN(frames, room);
		} else {
			port->held += frames;
		}
		waiting += (uint32_t)lane->waiting;
	}
	return waiting;
}

static uint16_t
generator_rx(void *queue, struct rte_mbuf **packets, uint16_t wanted)
{
	struct port *port = queue;
	struct rte_mbuf *fresh[BURST];
	unsigned int open = open_lanes(port);
	struct order order = port->order; /* nobody else's while frames are written, which the compiler cannot know */
	uint64_t both, bytes = 0;
	uint16_t asked = wanted;

	if (++port->polls >= PUBLISH_POLLS) {
		publish(port);
		port->left += port->trickle;
	}
	wanted = RTE_MIN(wanted, (uint16_t)RTE_MIN(port->left, (uint64_t)BURST));
	if (port->load != 0 && open != 0) {
		if (port->is_emptied)
			port->waiting = port->load;
		wanted = RTE_MIN(wanted, port->waiting);
		port->is_emptied = wanted < asked;
		port->waiting = port->is_emptied ? 0 : port->waiting - wanted;
	}
	if (port->is_timed) {
		port->waiting = arrive(port, open);
		wanted = RTE_MIN(wanted, port->waiting);
		open = (1u << port->lane_count) - 1; /* what came before a pause is there */
	}
	if (unlikely(open == 0 || wanted == 0)) {
		port->paused += open == 0;
		return 0;
	}
	/* All or nothing: a frame is handed out only if a buffer takes its place, so the ring stays full. */
	if (unlikely(rte_mempool_get_bulk(port->pool, (void **)fresh, wanted) < 0)) {
		port->no_mbuf++;
		return 0;
	}
	/* A NIC's DMA makes no core wait for the line that it writes; all at once they wait least. */
	for (uint16_t i = 0; i < wanted; i++)
		__builtin_prefetch(RTE_PTR_ADD(fresh[i], port->data_at), 1);
	port->random ^= port->random << 13;
	port->random ^= port->random >> 7;
	port->random ^= port->random << 17;
	both = open == 3 ? port->random : open == 2 ? ~0ull : 0;
	for (uint16_t i = 0; i < wanted; i++, both >>= 1) {
		struct lane *lane = &port->lanes[both & 1];
		struct descriptor *slot;

		if (unlikely(port->is_timed)) {
			if (lane->waiting < 1.0)
				lane = &port->lanes[~both & 1];
			lane->waiting -= 1.0;
		}
		slot = &lane->ring[lane->head++ & lane->mask];
		rte_prefetch0(lane->ring[(lane->head + AHEAD) & lane->mask].mbuf);
		packets[i] = complete(slot);
		bytes += slot->len;
		post(port, lane, &order, slot, fresh[i]);
	}
	port->order = order;
	port->left -= wanted;
	port->waiting -= port->is_timed ? wanted : 0;
	port->handed += wanted;
	port->bytes += bytes;
	return wanted;
}

/* Frames that wait in the ring of a port with a load, or whose frames come by the clock. */
static uint32_t
generator_waiting(void *queue)
{
	return ((const struct port *)queue)->waiting;
}

/* ---- transmit ---- */

/* Whether this is PFC; if so, and the port obeys, its classes pause or go on. */
static __rte_noinline bool
take_pfc(struct port *port, struct rte_mbuf *mbuf)
{
	static const uint8_t group[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint64_t quantum = rte_get_tsc_hz() * QUANTUM_BITS / ((uint64_t)port->speed_mb * 1000000 / 1024);

	if (memcmp(frame, group, sizeof(group)) || frame[12] != 0x88 || frame[13] != 0x08 || frame[15] != 1 ||
			frame[14] != 1 || mbuf->data_len < 34)
		return false;
	for (unsigned int i = 0; port->obeys && i < port->lane_count; i++) {
		struct lane *lane = &port->lanes[i];
		const uint8_t *time = frame + 18 + 2 * lane->class;
		uint64_t quanta = (uint64_t)time[0] << 8 | time[1];

		if (!(frame[17] >> lane->class & 1))
			continue;
		lane->paused_until = rte_rdtsc() + (quanta * quantum >> 10);
		port->paused_lanes |= 1u << i;
	}
	return true;
}

/* How many of the first frames a link of the drain rate has room for. */
static uint16_t
room(struct port *port, struct rte_mbuf **packets, uint16_t count)
{
	uint64_t now = rte_rdtsc();
	uint16_t fits = 0;

	port->credit = RTE_MIN(port->credit + (now - port->drained_at) * port->drain_per_tick, (double)DRAIN_BURST);
	port->drained_at = now;
	while (fits < count && port->credit > 0)
		port->credit -= packets[fits++]->pkt_len + WIRE_EXTRA;
	return fits;
}

static uint16_t
generator_tx(void *queue, struct rte_mbuf **packets, uint16_t count)
{
	struct tx_queue *tx = queue;
	struct port *port = tx->port;
	struct rte_mempool *pool = NULL;
	struct rte_mbuf *free[BURST];
	uint16_t offered = count, waiting = 0;
	uint64_t bytes = 0, pfc = 0, lossless = 0;

	if (port->drain_mb != 0)
		count = room(port, packets, count);
	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = packets[i];

		/* As long as PFC and as small: the frames of the generator itself need not be looked at. */
		if (unlikely(mbuf->pkt_len <= 60))
			pfc += take_pfc(port, mbuf);
		else if (unlikely(port->is_timed))
			lossless += rte_pktmbuf_mtod(mbuf, const uint8_t *)[TOS_AT] >> 2 == TOS_LOSSLESS >> 2;
		bytes += mbuf->pkt_len;
		if (unlikely(mbuf->nb_segs > 1)) {
			rte_pktmbuf_free(mbuf);
			continue;
		}
		mbuf = rte_pktmbuf_prefree_seg(mbuf);
		if (unlikely(mbuf == NULL))
			continue;
		if (unlikely(mbuf->pool != pool || waiting == BURST)) {
			if (waiting > 0)
				rte_mempool_put_bulk(pool, (void **)free, waiting);
			pool = mbuf->pool;
			waiting = 0;
		}
		free[waiting++] = mbuf;
	}
	if (waiting > 0)
		rte_mempool_put_bulk(pool, (void **)free, waiting);
	tx->taken += count - pfc;
	tx->bytes += bytes - pfc * 60;
	tx->pfc += pfc;
	tx->lossless += lossless;
	tx->refused += offered - count;
	return count;
}

/* ---- control ---- */

static int
generator_start(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;
	struct rte_mbuf like = { .data_off = RTE_PKTMBUF_HEADROOM, .nb_segs = 1, .port = port->id };

	rte_mbuf_refcnt_set(&like, 1);
	memcpy(&port->rearm, RTE_PTR_ADD(&like, REARM), sizeof(port->rearm));
	for (unsigned int i = 0; i < port->lane_count; i++) {
		struct lane *lane = &port->lanes[i];

		for (uint32_t slot = 0; slot <= lane->mask; slot++) {
			struct rte_mbuf *mbuf = rte_mbuf_raw_alloc(port->pool);

			if (mbuf == NULL) {
				LOG(ERR, "%s: pool %s has no buffer for descriptor %u of %u\n", dev->data->name,
					port->pool->name, i * (lane->mask + 1) + slot, port->posted);
				return -ENOMEM;
			}
			post(port, lane, &port->order, &lane->ring[slot], mbuf);
		}
	}
	port->drained_at = port->arrived_at = rte_rdtsc();
	port->longest_poll = rte_get_tsc_hz() / 1000000 * STOLEN_US;
	port->drain_per_tick = port->drain_mb * 1e6 / 8 / rte_get_tsc_hz();
	dev->data->dev_link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int
generator_stop(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	for (unsigned int i = 0; i < port->lane_count; i++) {
		for (uint32_t slot = 0; slot <= port->lanes[i].mask; slot++) {
			rte_pktmbuf_free(port->lanes[i].ring[slot].mbuf);
			port->lanes[i].ring[slot].mbuf = NULL;
		}
	}
	publish(port);
	dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

static int
generator_close(struct rte_eth_dev *dev)
{
	struct port *port = dev->data->dev_private;

	if (port == NULL)
		return 0;
	for (unsigned int i = 0; i < CLASSES; i++)
		rte_free(port->lanes[i].ring);
	if (port->counts != NULL)
		munmap(RTE_PTR_ALIGN_FLOOR(port->counts, sysconf(_SC_PAGESIZE)), sysconf(_SC_PAGESIZE));
	dev->data->mac_addrs = NULL; /* part of the private data */
	return 0;
}

static int
generator_info(struct rte_eth_dev *dev __rte_unused, struct rte_eth_dev_info *info)
{
	info->max_mac_addrs = 1;
	info->max_rx_pktlen = 9728;
	info->min_mtu = 68;
	info->max_mtu = 9600;
	info->max_rx_queues = 1;
	info->max_tx_queues = TX_QUEUES;
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	info->flow_type_rss_offloads = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	info->hash_key_size = 40;
	info->speed_capa = RTE_ETH_LINK_SPEED_AUTONEG;
	return 0;
}

/* The number of descriptors is the device's `posted`, whatever the program asks for, or programs could not be compared. */
static int
generator_rx_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors __rte_unused, unsigned int socket,
	const struct rte_eth_rxconf *conf __rte_unused, struct rte_mempool *pool)
{
	struct port *port = dev->data->dev_private;
	uint32_t count = port->posted / port->lane_count;

	for (unsigned int i = 0; i < port->lane_count; i++) {
		struct lane *lane = &port->lanes[i];

		rte_free(lane->ring);
		lane->ring = rte_zmalloc_socket("hfgen", count * sizeof(*lane->ring), RTE_CACHE_LINE_SIZE, socket);
		if (lane->ring == NULL)
			return -ENOMEM;
		lane->mask = count - 1;
		lane->head = 0;
	}
	port->pool = pool;
	port->data_at = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool) + RTE_PKTMBUF_HEADROOM;
	dev->data->rx_queues[queue] = port;
	return 0;
}

static int
generator_tx_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors __rte_unused,
	unsigned int socket __rte_unused, const struct rte_eth_txconf *conf __rte_unused)
{
	struct port *port = dev->data->dev_private;

	port->tx[queue].port = port;
	dev->data->tx_queues[queue] = &port->tx[queue];
	return 0;
}

static int
generator_stats(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct port *port = dev->data->dev_private;

	stats->ipackets = port->handed;
	stats->ibytes = port->bytes;
	stats->rx_nombuf = port->no_mbuf;
	for (unsigned int i = 0; i < TX_QUEUES; i++) {
		stats->opackets += port->tx[i].taken + port->tx[i].pfc;
		stats->obytes += port->tx[i].bytes;
	}
	return 0;
}

static const uint32_t *
generator_ptypes(struct rte_eth_dev *dev __rte_unused)
{
	static const uint32_t types[] = { RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4, RTE_PTYPE_L3_IPV6, RTE_PTYPE_L4_UDP,
		RTE_PTYPE_UNKNOWN };

	return types;
}

static int
generator_nothing(struct rte_eth_dev *dev __rte_unused)
{
	return 0;
}

static int
generator_link(struct rte_eth_dev *dev __rte_unused, int wait __rte_unused)
{
	return 0;
}

static int
generator_mtu(struct rte_eth_dev *dev __rte_unused, uint16_t mtu __rte_unused)
{
	return 0;
}

static int
generator_address(struct rte_eth_dev *dev __rte_unused, struct rte_ether_addr *address __rte_unused)
{
	return 0;
}

static const struct eth_dev_ops operations = {
	.dev_configure = generator_nothing,
	.dev_start = generator_start,
	.dev_stop = generator_stop,
	.dev_close = generator_close,
	.dev_infos_get = generator_info,
	.dev_supported_ptypes_get = generator_ptypes,
	.rx_queue_setup = generator_rx_setup,
	.tx_queue_setup = generator_tx_setup,
	.link_update = generator_link,
	.stats_get = generator_stats,
	.promiscuous_enable = generator_nothing,
	.promiscuous_disable = generator_nothing,
	.allmulticast_enable = generator_nothing,
	.allmulticast_disable = generator_nothing,
	.mtu_set = generator_mtu,
	.mac_addr_set = generator_address,
};

#include "arguments.h"

static int
generator_probe(struct rte_vdev_device *device)
{
	struct rte_eth_dev *dev;
	struct port *port;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return -ENOTSUP;
	dev = rte_eth_vdev_allocate(device, sizeof(*port));
	if (dev == NULL)
		return -ENOMEM;
	port = dev->data->dev_private;
	port->id = dev->data->port_id;
	if (arguments_read(port, rte_vdev_device_args(device)) < 0 || counts_map(port) < 0) {
		LOG(ERR, "%s is not made\n", rte_vdev_device_name(device));
		rte_eth_dev_release_port(dev);
		return -EINVAL;
	}
	lanes_init(port);
	port->address = (struct rte_ether_addr){ { 0x02, 0x48, 0x47, 0, 0, port->index } };
	dev->data->mac_addrs = &port->address;
	dev->data->dev_link = (struct rte_eth_link){ .link_speed = port->speed_mb,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX, .link_autoneg = RTE_ETH_LINK_AUTONEG };
	dev->data->promiscuous = 1;
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	dev->dev_ops = &operations;
	dev->rx_pkt_burst = generator_rx;
	dev->tx_pkt_burst = generator_tx;
	if (port->load != 0 || port->is_timed)
		dev->rx_queue_count = generator_waiting;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
generator_remove(struct rte_vdev_device *device)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(device));

	if (dev == NULL)
		return 0;
	generator_close(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver driver = { .probe = generator_probe, .remove = generator_remove };

RTE_PMD_REGISTER_VDEV(net_hfgen, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_hfgen,
	"index=<int> ports=<int> flows=<int> size=<int>|imix classes=lossy|lossless|both pattern=pairs|ring|incast "
	"posted=<int> load=<int> timed=0|1 pfc=0|1 speed=<Mb/s> drain=<Mb/s> stats=<path>");
