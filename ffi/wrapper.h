/* What bindgen reads. */
#include "shim.h"
#include "interrupts.h"
