//! Which distribution a request draws its ratio from.
//!
//! The choice by operation, pattern, context and size class is made once, when the model is built;
//! a request costs two loads.

use profile::linear::{Context, Pattern, Residual};
use trace::Op;

use crate::samplers::{Draw, Samplers};

/// The tables of ratios and the map from a request to its table.
#[derive(Clone, Debug)]
pub(super) struct Residuals {
    samplers: Samplers,
    /// Table number by operation, pattern, context and size class, flattened.
    map: Vec<u16>,
    /// Idle thresholds, ns, ascending; context `i + 1` is idle for `idle_ns[i]`.
    idle_ns: Vec<u64>,
    /// The context after a flush, 0 where no table asks for it.
    after_flush: usize,
    /// Contexts that are told apart; 0 where there is no table at all.
    contexts: usize,
    /// The context of the next request unless it comes after a pause.
    after: usize,
    last_was_flush: bool,
}

/// Size classes are powers of two from 512 B or less to 4 MiB or more.
const CLASSES: usize = 14;

/// Entries of the map per context: a power of two is multiplied by for nothing.
const STRIDE: usize = 16;

/// A table of a special context is for sizes up to this many powers of two off: what a pause adds
/// to 4 KiB says little about 1 MiB.
const NEAR: usize = 2;

/// The size class nearest to `size_bytes` on a logarithmic scale.
#[inline]
fn size_class(size_bytes: u32) -> usize {
    // Adding 41 % rounds the logarithm to the nearest whole number instead of down.
    const LARGEST: u64 = 1 << (9 + CLASSES - 1);
    let rounded = (u64::from(size_bytes) * 91 / 64).min(LARGEST) | 1 << 9;
    rounded.ilog2() as usize - 9
}

impl Residuals {
    pub(super) fn new(residuals: &[Residual]) -> Self {
        if residuals.is_empty() {
            return Self::none();
        }
        let mut idle_ns: Vec<u64> = residuals
            .iter()
            .filter_map(|residual| match residual.context {
                Context::IdleFor(ns) => Some(ns as u64),
                _ => None,
            })
            .collect();
        idle_ns.sort_unstable();
        idle_ns.dedup();
        let has_flush = residuals.iter().any(|residual| residual.context == Context::AfterFlush);
        let after_flush = if has_flush { idle_ns.len() + 1 } else { 0 };
        let contexts = 1 + idle_ns.len() + usize::from(has_flush);
        let mut samplers = Samplers::new();
        let numbers: Vec<u16> =
            residuals.iter().map(|residual| samplers.push(&residual.ratios)).collect();
        let mut this = Self { samplers, idle_ns, after_flush, contexts, ..Self::none() };
        for op in [Op::Read, Op::Write, Op::Flush] {
            for pattern in [Pattern::Sequential, Pattern::Random] {
                for context in 0..contexts {
                    for class in 0..CLASSES {
                        let found = this.find(residuals, (op, pattern), context, class);
                        this.map.push(found.map_or(0, |index| numbers[index]));
                    }
                    this.map.extend([0; STRIDE - CLASSES]);
                }
            }
        }
        this
    }

    fn none() -> Self {
        Self {
            samplers: Samplers::new(),
            map: Vec::new(),
            idle_ns: Vec::new(),
            after_flush: 0,
            contexts: 0,
            after: 0,
            last_was_flush: false,
        }
    }

    /// The table for a request: of its own context if there is one for about its size, else of the
    /// next shorter idle time, else of any context, there the nearest size.
    fn find(
        &self,
        residuals: &[Residual],
        (op, pattern): (Op, Pattern),
        context: usize,
        class: usize,
    ) -> Option<usize> {
        let nearest = |context: usize| {
            residuals
                .iter()
                .enumerate()
                .filter(|(_, residual)| {
                    residual.op == op
                        && residual.pattern.is_none_or(|own| own == pattern)
                        && self.context_index(residual.context) == context
                })
                .map(|(index, residual)| match residual.size_bytes {
                    Some(size) => (size_class(size).abs_diff(class), index),
                    None => (NEAR, index),
                })
                .filter(|(distance, _)| context == 0 || *distance <= NEAR)
                .min()
                .map(|(_, index)| index)
        };
        let shorter = if context == self.after_flush { 0 } else { context };
        nearest(context).or_else(|| (0..shorter).rev().find_map(nearest)).or_else(|| nearest(0))
    }

    fn context_index(&self, context: Context) -> usize {
        match context {
            Context::Any => 0,
            Context::IdleFor(ns) => {
                let position = self.idle_ns.iter().position(|&own| own == ns as u64);
                position.map_or(0, |index| index + 1)
            }
            Context::AfterFlush => self.after_flush,
        }
    }

    /// The ratio that the next request draws. `last` is when the previous one of its operation
    /// completed.
    #[inline]
    pub(super) fn ratio(
        &self,
        kind: usize,
        pattern: usize,
        len: u32,
        (now, last): (u64, u64),
        draw: &mut Draw,
    ) -> f64 {
        if self.contexts == 0 {
            draw.skip();
            return 1.0;
        }
        let context = if self.idle_ns.is_empty() {
            self.after
        } else {
            self.context(now.saturating_sub(last))
        };
        let index = ((kind * 2 + pattern) * self.contexts + context) * STRIDE + size_class(len);
        self.samplers.ratio(self.map[index], draw.bits())
    }

    #[cold]
    #[inline(never)]
    fn context(&self, idle: u64) -> usize {
        match self.idle_ns.iter().take_while(|&&threshold| idle >= threshold).count() {
            0 => self.after,
            reached => reached,
        }
    }

    /// The last request was no flush.
    #[inline]
    pub(super) fn note_transfer(&mut self) {
        self.after = 0;
        self.last_was_flush = false;
    }

    /// The last request was a flush.
    pub(super) fn note_flush(&mut self) {
        self.after = self.after_flush;
        self.last_was_flush = true;
    }

    pub(super) fn last_was_flush(&self) -> bool {
        self.last_was_flush
    }
}
