//! The mixed-load penalty: times in a 50/50 mix over times alone, at the same size and depth 1.

use profile::Parameter;
use trace::Op;

use crate::Notes;
use crate::lines::round;
use crate::measurement::Durability;
use crate::select::{Class, Classes};

/// Factors on reads and on writes in an even mix; `None` where no mix was measured.
pub(super) fn fit(classes: &Classes, notes: &mut Notes) -> Option<(Parameter, Parameter)> {
    let read = factor(classes, Op::Read);
    let write = factor(classes, Op::Write);
    if read.is_none() && write.is_none() {
        notes.add(
            "fit_no_mix",
            "no 50/50 mix was measured; reads and writes are taken not to disturb each other"
                .to_owned(),
            "probe with the full plan",
        );
        return None;
    }
    let or_none = |factor: Option<Parameter>| {
        factor.unwrap_or_else(|| Parameter::assumed(1.0, "not measured in a mix"))
    };
    Some((or_none(read), or_none(write)))
}

/// Sample-weighted geometric mean of the ratios over all sizes that have both, and its spread.
fn factor(classes: &Classes, op: Op) -> Option<Parameter> {
    let pairs: Vec<(f64, f64, &Class)> = classes
        .iter()
        .filter(|class| {
            let key = &class.key;
            key.op == op
                && key.durability == Durability::None
                && (key.depth, key.read_share, key.rate_per_s) == (1, 500, 0)
        })
        .filter_map(|mixed| {
            let alone = classes
                .single(op, mixed.key.pattern)
                .find(|class| class.key.size_bytes == mixed.key.size_bytes)?;
            let ratio = mixed.service.mean_ns / alone.service.mean_ns;
            Some((ratio.ln(), mixed.service.count as f64, mixed))
        })
        .collect();
    let weight: f64 = pairs.iter().map(|pair| pair.1).sum();
    if pairs.is_empty() {
        return None;
    }
    let mean = pairs.iter().map(|pair| pair.0 * pair.1).sum::<f64>() / weight;
    let variance = pairs.iter().map(|pair| pair.1 * (pair.0 - mean).powi(2)).sum::<f64>() / weight;
    let sizes: Vec<u32> = pairs.iter().map(|pair| pair.2.key.size_bytes).collect();
    let source = format!(
        "probe: {} time in a 50/50 mix over its time alone, {} depth 1",
        op.name(),
        super::select::sizes(&sizes)
    );
    let parameter = Parameter::new(round(mean.exp()), source);
    Some(match pairs.len() {
        1 => parameter,
        count => {
            let error = mean.exp() * (variance / (count - 1) as f64).sqrt();
            parameter.with_error(round(error))
        }
    })
}
