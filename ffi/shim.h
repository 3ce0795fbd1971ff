/*
 * What of DPDK cannot be reached from Rust as it stands: inline functions, thread-local variables, macros that
 * bindgen does not evaluate, and fields whose place in a struct moves between releases.
 */
#ifndef HOLDFAST_SHIM_H
#define HOLDFAST_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include <rte_alarm.h>
#include <rte_cpuflags.h>
#include <rte_eal.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_power_intrinsics.h>
#include <rte_rib.h>
#include <rte_rib6.h>
#include <rte_ring.h>
#include <rte_version.h>

/* From DPDK 24.11 on these fields sit in anonymous unions: offsets read them in every release alike. */
enum hf_offset {
	HF_MBUF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	HF_MBUF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	HF_MBUF_REFCNT = offsetof(struct rte_mbuf, refcnt),
	HF_MBUF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	HF_MBUF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	HF_MBUF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	HF_MBUF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
};

/* Limits that the installed DPDK was built with. */
enum hf_limit {
	HF_MAX_ETHPORTS = RTE_MAX_ETHPORTS,
	HF_MAX_LCORE = RTE_MAX_LCORE,
	HF_MEMPOOL_CACHE_MAX = RTE_MEMPOOL_CACHE_MAX_SIZE,
	HF_MEMPOOL_NAME_MAX = RTE_MEMPOOL_NAMESIZE - sizeof("MP_"),
	HF_RING_NAME_MAX = RTE_RING_NAMESIZE - sizeof("RG_"),
	HF_PKTMBUF_HEADROOM = RTE_PKTMBUF_HEADROOM,
};

/* Macros that bindgen passes over in silence. */
enum hf_flag {
	HF_RING_SP_ENQ = RING_F_SP_ENQ,
	HF_RING_SC_DEQ = RING_F_SC_DEQ,
	HF_RING_EXACT = RING_F_EXACT_SZ,
	HF_LOG_CRIT = RTE_LOG_CRIT,
	HF_LOG_WARNING = RTE_LOG_WARNING,
};

/* Any NUMA node. */
enum hf_socket {
	HF_SOCKET_ANY = SOCKET_ID_ANY,
};

/* To be called before EAL starts. A static program registers what shared libraries would register when loaded. */
void hf_before_start(void);

/* Takes a message of DPDK's log; the level is one of RTE_LOG_*, the text does not end in a zero byte. */
typedef void (*hf_log_sink)(int level, const char *text, size_t length);

/* Sends DPDK's whole log to `sink` from now on; 0, or negative if there is no memory. */
int hf_log_to(hf_log_sink sink);

/* rte_errno of the calling thread. */
int hf_errno(void);

/* Sets rte_errno of the calling thread to zero. Some functions fail without setting it. */
void hf_clear_errno(void);

/* One buffer of the pool, reset; NULL when it is empty. */
struct rte_mbuf *hf_mbuf_alloc(struct rte_mempool *pool);

/* Takes up to `count` objects out of a ring. */
unsigned int hf_ring_dequeue(struct rte_ring *ring, void **objects, unsigned int count);

/* Objects in a ring. */
unsigned int hf_ring_count(const struct rte_ring *ring);

/* Frames received and not yet taken; negative where the driver cannot tell. */
int hf_rx_backlog(uint16_t port, uint16_t queue);

/* Link state without waiting; negative errno on failure. `speed` is in Mb/s, 0 if unknown. */
int hf_link(uint16_t port, uint32_t *speed, int *up);

#endif
