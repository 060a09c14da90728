//! What the block layer really issued to the disk, as root, through tracefs.
//!
//! Two tracepoints in a tracefs instance of our own, `block_rq_issue` and `block_rq_complete`,
//! filtered to the disk, read as binary pages every 20 ms. The sysfs `blk` tracer would do too, but
//! it exists once per machine (in the top instance, so it disturbs and is disturbed by other
//! tracing), costs the traced program three times as much per I/O, and its text or `blk_io_trace`
//! stream carries no exact count of losses; an instance has its own buffers and per-processor
//! loss counters, and works under kernel lockdown. Kernel documentation: trace/ftrace.rst,
//! trace/events.rst, trace/ring-buffer-design.rst.
//!
//! Where tracefs is not mounted, the collector thread mounts it in a mount namespace of its own:
//! nothing of that outlives the thread. The instance is removed at the end, on drop and on panic;
//! one left behind by a killed process is removed by the next capture.
//!
//! Invariants: every request in the trace was issued and completed within the capture; `losses`
//! counts what the kernel dropped plus what could not be matched.

pub mod device;
