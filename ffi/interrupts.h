/*
 * Callbacks of chosen drivers in EAL's interrupt thread, each between two functions of Holdfast.
 *
 * Drivers register their callbacks by rte_intr_callback_register. The program has a function of that name, which
 * precedes EAL's for drivers in shared libraries; a static program has it by the linker's --wrap. build.rs of Holdfast
 * asks for both.
 */
#ifndef HOLDFAST_INTERRUPTS_H
#define HOLDFAST_INTERRUPTS_H

/*
 * Sets the functions that are called before and after a surrounded callback, in the interrupt thread, with the argument
 * of the callback.
 */
void hf_surround_interrupts(void (*before)(void *), void (*after)(void *));

/* How callbacks that a thread registers from now on are treated. */
enum hf_interrupts {
	/* As drivers register them. */
	HF_PLAIN,
	/*
	 * Surrounded, and those that a surrounded callback registers too. A callback whose driver waits long must not be:
	 * the lcores would do without their ports meanwhile.
	 */
	HF_SURROUNDED,
	/* Surrounded, and remembered for `hf_listeners`. */
	HF_LISTENERS,
};

/*
 * Between a call with another kind and the next with HF_PLAIN no surrounded callback runs: the thread may call control
 * functions of the driver meanwhile, even the one that closes a port whose callback is due.
 */
void hf_choose_interrupts(enum hf_interrupts kind);

/* A callback of a driver that never takes it back, as net_memif does with the one of its listening socket. */
struct hf_listener;

/* The callbacks that this thread has registered as HF_LISTENERS since the last call; NULL: none. */
struct hf_listener *hf_listeners(void);

/*
 * Takes back the callbacks of `listeners` and frees the list. Their sockets refuse connections from now on. To be
 * called before the driver frees the arguments of the callbacks, and not by a callback.
 */
void hf_close_listeners(struct hf_listener *listeners);

/*
 * Stops EAL's interrupt thread for good. EAL does not end it, and drivers leave callbacks behind, so that it would look
 * at them in memory that rte_eal_cleanup has unmapped. Returns 0; or -1 if the thread hangs in a callback, as when a
 * debugger holds it: EAL's memory must then stay.
 */
int hf_stop_interrupts(void);

/* Whether drivers register their callbacks by the functions of this file: 1, or 0. */
int hf_surrounds_interrupts(void);

#endif
