/*
 * Callbacks of EAL's interrupt thread, each between two functions of Holdfast.
 *
 * Drivers register their callbacks by rte_intr_callback_register. The program has a function of that name, which
 * precedes EAL's for drivers in shared libraries; a static program has it by the linker's --wrap. build.rs of Holdfast
 * asks for both.
 */
#ifndef HOLDFAST_INTERRUPTS_H
#define HOLDFAST_INTERRUPTS_H

/* Calls `before` and `after` around each callback of a driver from now on, in the interrupt thread. */
void hf_surround_interrupts(void (*before)(void), void (*after)(void));

/* Whether drivers register their callbacks by the functions of this file: 1, or 0. */
int hf_surrounds_interrupts(void);

#endif
