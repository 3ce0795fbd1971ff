/* What a port of the generator publishes, and where: a file that the harness makes and every port maps shared. One
 * slot a port; perf/peers/counts.rs reads the same layout. */
#ifndef HF_COUNTS_H
#define HF_COUNTS_H

#include <stdint.h>

#define GEN_MAX_PORTS 16
#define GEN_MAGIC 0x31676668 /* "hfg1" */

/* 256 bytes, so that no two ports share a pair of cache lines. */
struct gen_counts {
	uint32_t magic;
	uint32_t unused;
	uint64_t sequence;    /* odd while what follows is being written */
	uint64_t tsc;         /* when it was written */
	uint64_t hz;          /* of the TSC */
	uint64_t handed;      /* frames handed out by rx */
	uint64_t handed_bytes;
	uint64_t taken;       /* frames taken by tx, but for PFC */
	uint64_t taken_bytes;
	uint64_t refused;     /* frames that tx did not take, for the drain rate */
	uint64_t pfc;         /* PFC frames taken */
	uint64_t no_mbuf;     /* times that the pool had nothing to post, so that nothing was handed out */
	uint64_t paused;      /* polls that gave nothing because all classes were paused */
	uint64_t cpu_ns;      /* what the thread that polls has had of its CPU until `tsc` */
	uint64_t offered;     /* frames that came by the clock, the missed ones included */
	uint64_t missed;      /* those that found no descriptor */
	uint64_t held;        /* frames that did not come because their class was paused */
	uint64_t lossless;    /* lossless frames among `taken`, if frames come by the clock */
	uint64_t wanted;      /* the harness writes here: frames a second that come by the clock */
	uint64_t reserved[14];
};

_Static_assert(sizeof(struct gen_counts) == 256, "the harness reads slots of 256 bytes");

#endif
