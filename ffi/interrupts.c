#define _GNU_SOURCE /* RTLD_NEXT */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_callback_unregister_sync */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "interrupts.h"

typedef void (*hook)(void *);

static _Atomic(hook) before_callback, after_callback;

/* The kind of this thread's callbacks. */
static _Thread_local enum hf_interrupts kind;

struct hf_listener {
	struct rte_intr_handle *handle;
	rte_intr_callback_fn function;
	void *argument;
	struct hf_listener *next;
};

/* Those of this thread that nobody has fetched. */
static _Thread_local struct hf_listener *listeners;

/*
 * Functions of drivers that serve as callbacks. EAL finds a callback by its function and its argument, so the argument
 * stays the driver's own, and each function has a stand-in of its own. A driver has few: net_memif has two.
 */
#define STAND_INS 8

static _Atomic(rte_intr_callback_fn) functions[STAND_INS];
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

/* Held by a surrounded callback, and by a thread in a control function of such a driver. */
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The argument of a callback that a control function took back while it waited for the lock, and whose port may be gone;
 * under the lock. EAL has one callback at a time. If none waited, the next one with this argument is left out once;
 * EAL calls it again, since its file still has what it is about.
 */
static void *revoked;

static _Thread_local int is_in_callback;

static void call(unsigned int number, void *argument)
{
	hook before = atomic_load(&before_callback), after = atomic_load(&after_callback);
	int is_revoked;

	pthread_mutex_lock(&driver_lock);
	is_revoked = revoked != NULL && revoked == argument;
	revoked = NULL;
	if (!is_revoked) {
		if (before != NULL)
			before(argument);
		kind = HF_SURROUNDED;
		is_in_callback = 1;
		atomic_load(&functions[number])(argument);
		is_in_callback = 0;
		kind = HF_PLAIN;
		if (after != NULL)
			after(argument);
	}
	pthread_mutex_unlock(&driver_lock);
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

void hf_choose_interrupts(enum hf_interrupts chosen)
{
	if (kind == HF_PLAIN && chosen != HF_PLAIN)
		pthread_mutex_lock(&driver_lock);
	else if (kind != HF_PLAIN && chosen == HF_PLAIN)
		pthread_mutex_unlock(&driver_lock);
	kind = chosen;
}

struct hf_listener *hf_listeners(void)
{
	struct hf_listener *found = listeners;

	listeners = NULL;
	return found;
}

/* Remembers a callback. The driver may free its handle before anyone else looks at it, so that this is a copy. */
static int remember(const struct rte_intr_handle *handle, rte_intr_callback_fn function, void *argument)
{
	struct hf_listener *listener = malloc(sizeof(*listener));

	if (listener == NULL)
		return -ENOMEM;
	*listener = (struct hf_listener){
		.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE),
		.function = function,
		.argument = argument,
		.next = listeners,
	};
	if (listener->handle == NULL || rte_intr_fd_set(listener->handle, rte_intr_fd_get(handle)) != 0 ||
	    rte_intr_type_set(listener->handle, rte_intr_type_get(handle)) != 0) {
		rte_intr_instance_free(listener->handle);
		free(listener);
		return -ENOMEM;
	}
	listeners = listener;
	return 0;
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
	rte_intr_callback_fn function = stand_in(callback, kind != HF_PLAIN);
	int status;

	if (function == NULL)
		return -ENOSPC;
	status = FORWARD(rte_intr_callback_register, handle, function, argument);
	if (status == 0 && kind == HF_LISTENERS && (status = remember(handle, function, argument)) != 0)
		FORWARD(rte_intr_callback_unregister, handle, function, argument);
	return status;
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
	if (kind != HF_PLAIN && !is_in_callback)
		revoked = argument;
	return FORWARD(rte_intr_callback_unregister_pending, handle, stand_in(callback, 0), argument, unregistered);
}

void hf_close_listeners(struct hf_listener *listener)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	while (listener != NULL) {
		struct hf_listener *next = listener->next;
		int fd = rte_intr_fd_get(listener->handle);
		int removed = FORWARD(rte_intr_callback_unregister_sync, listener->handle, listener->function,
				      listener->argument);

		/* The number stays in use: a driver may close it some day, and must not close what has it by then. */
		if (removed > 0 && nothing >= 0)
			dup3(nothing, fd, O_CLOEXEC);
		rte_intr_instance_free(listener->handle);
		free(listener);
		listener = next;
	}
	if (nothing >= 0)
		close(nothing);
}

/* How long the end of EAL waits for its interrupt thread. */
#define STOP_SECONDS 2

static sem_t is_stopped;

static void stay(void *argument)
{
	(void)argument;
	sem_post(&is_stopped);
	for (;;)
		pause();
}

int hf_stop_interrupts(void)
{
	/* No alarm: EAL waits for the end of the alarm that runs. */
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(1, EFD_CLOEXEC);
	struct timespec until;

	sem_init(&is_stopped, 0, 0);
	if (handle == NULL || fd < 0 || rte_intr_fd_set(handle, fd) != 0 ||
	    rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
	    FORWARD(rte_intr_callback_register, handle, stay, NULL) != 0)
		return -1;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	while (sem_timedwait(&is_stopped, &until) != 0)
		if (errno != EINTR)
			return -1;
	return 0;
}
