//! What a device counted.

use std::collections::BTreeMap;

use model::Device;

/// The counters of a device by name. Two layers that use one name add up.
pub(crate) fn counters(device: &dyn Device) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for counter in device.counters() {
        *all.entry(counter.name.to_owned()).or_insert(0) += counter.value;
    }
    all
}
