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

/*
 * Whether callbacks that this thread registers from now on are surrounded: 1, or 0. Those that a surrounded callback
 * registers are too. A callback whose driver waits long must not be: the lcores would do without their ports meanwhile.
 */
void hf_choose_interrupts(int are_surrounded);

/* Whether drivers register their callbacks by the functions of this file: 1, or 0. */
int hf_surrounds_interrupts(void);

#endif
