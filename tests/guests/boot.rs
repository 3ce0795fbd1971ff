//! How a guest's kernel starts.

/// Words on the command line of every guest's kernel. On a busy machine its timer may be late in a test of interrupts,
/// which is no error, but would end the kernel (`no_timer_check`).
pub const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check";
