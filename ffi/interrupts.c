#define _GNU_SOURCE /* RTLD_NEXT */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_callback_unregister_sync */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include <rte_interrupts.h>

#include "interrupts.h"

typedef void (*hook)(void *);

static _Atomic(hook) before_callback, after_callback;

/* Whether this thread's callbacks are surrounded. */
static _Thread_local int are_chosen;

/*
 * Functions of drivers that serve as callbacks. EAL finds a callback by its function and its argument, so the argument
 * stays the driver's own, and each function has a stand-in of its own. A driver has few: net_memif has two.
 */
#define STAND_INS 8

static _Atomic(rte_intr_callback_fn) functions[STAND_INS];
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

static void call(unsigned int number, void *argument)
{
	hook before = atomic_load(&before_callback), after = atomic_load(&after_callback);

	if (before != NULL)
		before(argument);
	are_chosen = 1;
	atomic_load(&functions[number])(argument);
	are_chosen = 0;
	if (after != NULL)
		after(argument);
}

#define STAND_IN(n) static void stand_in_##n(void *argument) { call(n, argument); }
#define EACH(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7)
EACH(STAND_IN)
#define NAME(n) stand_in_##n,
static const rte_intr_callback_fn stand_ins[STAND_INS] = {EACH(NAME)};

/* The stand-in of a function; the function itself if it has none. `is_new`: it gets one, or NULL if all are taken. */
static rte_intr_callback_fn stand_in(rte_intr_callback_fn function, int is_new)
{
	rte_intr_callback_fn found = is_new ? NULL : function;

	if (function == NULL)
		return function;
	pthread_mutex_lock(&functions_lock);
	for (unsigned int i = 0; i < STAND_INS; i++) {
		rte_intr_callback_fn known = atomic_load(&functions[i]);

		if (known == NULL && is_new)
			atomic_store(&functions[i], known = function);
		if (known == function) {
			found = stand_ins[i];
			break;
		}
		if (known == NULL)
			break;
	}
	pthread_mutex_unlock(&functions_lock);
	return found;
}

void hf_choose_interrupts(int are_surrounded)
{
	are_chosen = are_surrounded;
}

void hf_surround_interrupts(hook before, hook after)
{
	atomic_store(&before_callback, before);
	atomic_store(&after_callback, after);
}

#ifdef HF_STATIC
#define OURS(name) __wrap_##name
#define THEIRS(name) __real_##name
/* The linker has these names. */
int THEIRS(rte_intr_callback_register)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int THEIRS(rte_intr_callback_unregister)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int THEIRS(rte_intr_callback_unregister_sync)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int THEIRS(rte_intr_callback_unregister_pending)(const struct rte_intr_handle *, rte_intr_callback_fn, void *,
						 rte_intr_unregister_callback_fn);
int OURS(rte_intr_callback_register)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int OURS(rte_intr_callback_unregister)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int OURS(rte_intr_callback_unregister_sync)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
int OURS(rte_intr_callback_unregister_pending)(const struct rte_intr_handle *, rte_intr_callback_fn, void *,
					       rte_intr_unregister_callback_fn);
#define FORWARD(name, ...) THEIRS(name)(__VA_ARGS__)

int hf_surrounds_interrupts(void)
{
	return 1;
}
#else
#define OURS(name) name
#define FORWARD(name, ...) ({ \
	__typeof__(&name) theirs = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
	theirs == NULL ? -ENOTSUP : theirs(__VA_ARGS__); \
})

int hf_surrounds_interrupts(void)
{
	/* The first function of this name, which is the one that drivers find. */
	void *found = dlsym(RTLD_DEFAULT, "rte_intr_callback_register");

	return found == (void *)rte_intr_callback_register;
}
#endif

int OURS(rte_intr_callback_register)(const struct rte_intr_handle *handle, rte_intr_callback_fn callback,
				     void *argument)
{
	rte_intr_callback_fn function = stand_in(callback, are_chosen);

	if (function == NULL)
		return -ENOSPC;
	return FORWARD(rte_intr_callback_register, handle, function, argument);
}

int OURS(rte_intr_callback_unregister)(const struct rte_intr_handle *handle, rte_intr_callback_fn callback,
				       void *argument)
{
	return FORWARD(rte_intr_callback_unregister, handle, stand_in(callback, 0), argument);
}

int OURS(rte_intr_callback_unregister_sync)(const struct rte_intr_handle *handle, rte_intr_callback_fn callback,
					    void *argument)
{
	return FORWARD(rte_intr_callback_unregister_sync, handle, stand_in(callback, 0), argument);
}

int OURS(rte_intr_callback_unregister_pending)(const struct rte_intr_handle *handle, rte_intr_callback_fn callback,
					       void *argument, rte_intr_unregister_callback_fn unregistered)
{
	return FORWARD(rte_intr_callback_unregister_pending, handle, stand_in(callback, 0), argument, unregistered);
}
