//! Whole files through the public interface: samples of public traces, and other programs.

mod block_events;
mod fio;
mod fuzz_seeds;
mod imitate;
mod other_formats;
mod shared;
mod text;
