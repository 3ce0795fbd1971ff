/* What bindgen reads. */
#include "shim.h"
