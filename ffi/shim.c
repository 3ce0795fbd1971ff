#define _GNU_SOURCE /* fopencookie */
#include <stdio.h>

#include "shim.h"

/* Rust checks both counts with one load of 32 bits. */
_Static_assert(HF_MBUF_NB_SEGS == HF_MBUF_REFCNT + 2, "refcnt and nb_segs must be neighbours");
_Static_assert(sizeof(((struct rte_mbuf *)0)->refcnt) == 2, "refcnt must have 16 bits");
_Static_assert(sizeof(((struct rte_mbuf *)0)->nb_segs) == 2, "nb_segs must have 16 bits");

#ifdef HF_STATIC
/* The providers of libibverbs, which it would otherwise load from files. Declared as its header does for programs. */
struct verbs_device_ops;
extern const struct verbs_device_ops verbs_provider_mlx4, verbs_provider_mlx5;
void ibv_static_providers(void *unused, ...);
#endif

void hf_before_start(void)
{
#ifdef HF_STATIC
	ibv_static_providers(NULL, &verbs_provider_mlx5, &verbs_provider_mlx4, NULL);
#endif
}

static ssize_t log_write(void *cookie, const char *text, size_t length)
{
	hf_log_sink sink = *(hf_log_sink *)cookie;

	sink(rte_log_cur_msg_loglevel(), text, length);
	return length;
}

int hf_log_to(hf_log_sink sink)
{
	/* DPDK logs until the process ends, so neither the stream nor its cookie is ever released. */
	static hf_log_sink kept;
	static FILE *stream;
	const cookie_io_functions_t functions = {.write = log_write};

	kept = sink;
	if (stream == NULL)
		stream = fopencookie(&kept, "w", functions);
	if (stream == NULL)
		return -1;
	return rte_openlog_stream(stream);
}

int hf_errno(void)
{
	return rte_errno;
}

void hf_clear_errno(void)
{
	rte_errno = 0;
}

struct rte_mbuf *hf_mbuf_alloc(struct rte_mempool *pool)
{
	return rte_pktmbuf_alloc(pool);
}

unsigned int hf_ring_dequeue(struct rte_ring *ring, void **objects, unsigned int count)
{
	return rte_ring_dequeue_burst(ring, objects, count, NULL);
}

unsigned int hf_ring_count(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

int hf_rx_backlog(uint16_t port, uint16_t queue)
{
	return rte_eth_rx_queue_count(port, queue);
}

int hf_link(uint16_t port, uint32_t *speed, int *up)
{
	struct rte_eth_link link = {0};
	int status = rte_eth_link_get_nowait(port, &link);

	if (status < 0)
		return status;
	*up = link.link_status == RTE_ETH_LINK_UP;
	*speed = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	return 0;
}
