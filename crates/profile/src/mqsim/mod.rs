//! From a device configuration of MQSim to a profile.
//!
//! MQSim (Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue
//! SSD Devices", FAST 2018) reads a device from `ssdconfig.xml`: its `Device_Parameter_Set` and the
//! `Flash_Parameter_Set` within. [`import`] takes over geometry, times, mapping cache, cleaning,
//! suspension and the data cache. Nothing is tuned.
//!
//! What the file switches on and the model has no counterpart for is listed by
//! [`Imported::ignored`]. Tested on a file of our own in that form, each parameter by its effect on
//! the profile, and each refusal.

#[cfg(test)]
mod tests;

use events::Hint;
use roxmltree::{Document, Node};
use thiserror::Error;
use units::Bytes;

use crate::flash::{
    CellKind, FlashSpec, GcSpec, GeometrySpec, Isolation, MappingSpec, ModeSpec, PolicySpec,
    PreconditionSpec, QueueSpec, TimingSpec, WearSpec,
};
use crate::write_cache::WriteCacheSpec;
use crate::{About, DeviceSpec, Parameter, Profile, StateOf};

use crate::imported::Imported;

/// Why a configuration could not be taken over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is no XML.
    #[error("{file}: {cause}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong, and where.
        cause: roxmltree::Error,
    },
    /// A parameter is missing or has a value that makes no sense.
    #[error("{file}:{line}: '{key}': {cause}")]
    Parameter {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Its name.
        key: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The device as a whole is impossible.
    #[error(transparent)]
    Impossible(#[from] crate::Error),
}

impl Hint for ImportError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Syntax { .. } | Self::Parameter { .. } => {
                "MQSim's ssdconfig.xml has the form: Execution_Parameter_Set, in it \
                 Device_Parameter_Set, in it Flash_Parameter_Set"
                    .to_owned()
            }
            Self::Impossible(cause) => return cause.hint(),
        })
    }
}

/// An element that holds parameters.
#[derive(Clone, Copy)]
struct Set<'a> {
    file: &'a str,
    node: Node<'a, 'a>,
}

/// Takes over the device that `text`, read from `file`, configures; `name` is that of the profile.
///
/// # Errors
/// Where the text is no such file or makes no sense: which parameter, where and why.
pub fn import(name: &str, file: &str, text: &str) -> Result<Imported, ImportError> {
    let document = Document::parse(text)
        .map_err(|cause| ImportError::Syntax { file: file.to_owned(), cause })?;
    let root = Set { file, node: document.root_element() };
    let device = root.inner("Device_Parameter_Set")?;
    let flash = device.inner("Flash_Parameter_Set")?;
    let fill = if device.is_on("Enabled_Preconditioning") { 1.0 } else { 0.0 };
    let profile = Profile {
        profile: About {
            name: name.to_owned(),
            description: format!("A device of MQSim, from its configuration {file}."),
            class: format!("flash-{}", flash.text("Flash_Technology")?.to_lowercase()),
            sources: vec![file.to_owned()],
        },
        state: StateOf {
            condition: if fill > 0.0 { "steady" } else { "fresh" }.to_owned(),
            note: "simulated; no such device was measured".to_owned(),
            ..StateOf::default()
        },
        device: DeviceSpec::Flash(Box::new(flash_spec(device, flash, fill)?)),
        write_cache: write_cache(device)?,
        limits: None,
        validation: None,
        cost: None,
        endurance: None,
        published: Vec::new(),
    };
    profile.check()?;
    Ok(Imported { profile, ignored: ignored(device) })
}

impl<'a> Set<'a> {
    /// The element of this name anywhere below.
    fn inner(self, name: &str) -> Result<Self, ImportError> {
        let found = self.node.descendants().find(|node| node.has_tag_name(name));
        let node = found.ok_or_else(|| self.wrong(self.node, name, "it is missing"))?;
        Ok(Self { node, ..self })
    }

    fn wrong(&self, at: Node, key: &str, cause: impl Into<String>) -> ImportError {
        ImportError::Parameter {
            file: self.file.to_owned(),
            line: at.document().text_pos_at(at.range().start).row,
            key: key.to_owned(),
            cause: cause.into(),
        }
    }

    fn child(&self, key: &str) -> Option<Node<'a, 'a>> {
        self.node.children().find(|node| node.has_tag_name(key))
    }

    fn text(&self, key: &str) -> Result<&'a str, ImportError> {
        let node = self.child(key).ok_or_else(|| self.wrong(self.node, key, "it is missing"))?;
        Ok(node.text().unwrap_or_default().trim())
    }

    /// A number above or at 0.
    fn number(&self, key: &str) -> Result<f64, ImportError> {
        let text = self.text(key)?;
        let number: Option<f64> = text.parse().ok();
        number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| {
            let at = self.child(key).unwrap_or(self.node);
            self.wrong(at, key, format!("'{text}' is no number of 0 or more"))
        })
    }

    fn whole(&self, key: &str) -> Result<u32, ImportError> {
        let number = self.number(key)?;
        if number.fract() == 0.0 && number <= f64::from(u32::MAX) {
            return Ok(number as u32);
        }
        let at = self.child(key).unwrap_or(self.node);
        Err(self.wrong(at, key, format!("{number} is no whole number below 2^32")))
    }

    fn is_on(&self, key: &str) -> bool {
        self.text(key).is_ok_and(|text| text.eq_ignore_ascii_case("true"))
    }

    fn parameter(&self, key: &str, value: f64) -> Parameter {
        Parameter::new(value, format!("{}: {key}", self.file))
    }

    /// A time that the file gives in ns, as us.
    fn us(&self, key: &str) -> Result<Parameter, ImportError> {
        Ok(self.parameter(key, self.number(key)? / 1e3))
    }

    /// The times of the page classes, ns.
    fn classes(&self, what: &str, cell: CellKind) -> Result<Vec<f64>, ImportError> {
        let names: &[&str] = match cell {
            CellKind::Slc => &["LSB"],
            CellKind::Mlc => &["LSB", "MSB"],
            CellKind::Tlc | CellKind::Qlc => &["LSB", "CSB", "MSB"],
        };
        names.iter().map(|class| self.number(&format!("{what}_{class}"))).collect()
    }
}

/// The mean of the classes, us, and each over it; no factors where all are alike.
fn mean_and_factors(set: &Set, what: &str, classes: &[f64]) -> (Parameter, Vec<f64>) {
    let mean = classes.iter().sum::<f64>() / classes.len() as f64;
    let alike = classes.iter().all(|class| *class == classes[0]);
    let factors = if alike { Vec::new() } else { classes.iter().map(|own| own / mean).collect() };
    (set.parameter(what, mean / 1e3), factors)
}

fn flash_spec(device: Set, flash: Set, fill: f64) -> Result<FlashSpec, ImportError> {
    let geometry = geometry(device, flash)?;
    let page = geometry.page.0 as f64;
    Ok(FlashSpec {
        over_provisioning: device
            .parameter("Overprovisioning_Ratio", device.number("Overprovisioning_Ratio")?),
        overhead_us: None,
        interface_mb_per_s: None,
        interface_command_us: None,
        one_at_a_time: false,
        allocation: device.text("Plane_Allocation_Scheme")?.to_owned(),
        streams: 1,
        stream_isolation: Isolation::default(),
        stream_shares: Vec::new(),
        // Its scheduler issues what waits for other planes of a die along with a command.
        multi_plane: true,
        summary_bytes: None,
        timing: timing(device, flash)?,
        mapping: mapping(device)?,
        gc: cleaning(device, geometry.blocks_per_plane)?,
        wear: wear(device, flash)?,
        read_cache: None,
        slc_cache: None,
        zones: None,
        queue: Some(queue(device, flash, page)?),
        precondition: PreconditionSpec { fill, random: fill > 0.0 },
        geometry,
    })
}

fn geometry(device: Set, flash: Set) -> Result<GeometrySpec, ImportError> {
    Ok(GeometrySpec {
        source: device.file.to_owned(),
        assumed: false,
        channels: device.whole("Flash_Channel_Count")?,
        chips_per_channel: device.whole("Chip_No_Per_Channel")?,
        dies_per_chip: flash.whole("Die_No_Per_Chip")?,
        planes_per_die: flash.whole("Plane_No_Per_Die")?,
        blocks_per_plane: flash.whole("Block_No_Per_Plane")?,
        pages_per_block: flash.whole("Page_No_Per_Block")?,
        page: Bytes(u64::from(flash.whole("Page_Capacity")?)),
    })
}

fn timing(device: Set, flash: Set) -> Result<TimingSpec, ImportError> {
    let key = "Flash_Technology";
    let cell = match flash.text(key)? {
        "SLC" => CellKind::Slc,
        "MLC" => CellKind::Mlc,
        "TLC" => CellKind::Tlc,
        _ => {
            let at = flash.child(key).unwrap_or(flash.node);
            return Err(flash.wrong(at, key, "SLC, MLC and TLC are known"));
        }
    };
    let of = |what: &str| -> Result<(Parameter, Vec<f64>), ImportError> {
        Ok(mean_and_factors(&flash, what, &flash.classes(what, cell)?))
    };
    let (read_us, read_factors) = of("Page_Read_Latency")?;
    let (program_us, program_factors) = of("Page_Program_Latency")?;
    let rate = "Channel_Transfer_Rate";
    Ok(TimingSpec {
        cell,
        read_us,
        program_us,
        erase_us: flash.us("Block_Erase_Latency")?,
        read_factors,
        program_factors,
        channel_mt_per_s: device.parameter(rate, device.number(rate)?),
        // It counts bytes.
        channel_width_bits: 8 * device.whole("Flash_Channel_Width")?,
        command_ns: None,
    })
}

fn mapping(device: Set) -> Result<MappingSpec, ImportError> {
    let key = "Address_Mapping";
    if device.text(key)? == "PAGE_LEVEL" {
        return Ok(MappingSpec::default());
    }
    let at = device.child(key).unwrap_or(device.node);
    Err(device.wrong(at, key, "only PAGE_LEVEL is taken over"))
}

fn cleaning(device: Set, blocks_per_plane: u32) -> Result<GcSpec, ImportError> {
    let key = "GC_Block_Selection_Policy";
    // Its random greedy draws as many blocks as the logarithm of their number.
    let drawn = f64::from(blocks_per_plane).log2().max(1.0) as u32;
    let (policy, choices) = match device.text(key)? {
        "GREEDY" => (PolicySpec::Greedy, None),
        "RGA" => (PolicySpec::DChoices, Some(drawn)),
        "RANDOM" | "RANDOM_P" | "RANDOM_PP" => (PolicySpec::DChoices, Some(1)),
        "FIFO" => (PolicySpec::Fifo, None),
        _ => {
            let at = device.child(key).unwrap_or(device.node);
            return Err(device.wrong(at, key, "GREEDY, RGA, RANDOM and FIFO are taken over"));
        }
    };
    let free = device.number("GC_Exec_Threshold")? * f64::from(blocks_per_plane);
    let idle = device.is_on("Preemptible_GC_Enabled");
    Ok(GcSpec {
        source: device.file.to_owned(),
        assumed: false,
        policy,
        choices,
        window_blocks: None,
        mode: if idle { ModeSpec::Incremental } else { ModeSpec::Foreground },
        pages_per_write: idle.then_some(1),
        idle_after_us: None,
        until_blocks: None,
        low_blocks: (free.ceil() as u32).max(2),
        separate: true,
        copy_back: device.is_on("Use_Copyback_for_GC"),
    })
}

fn wear(device: Set, flash: Set) -> Result<WearSpec, ImportError> {
    let cycles = "Block_PE_Cycles_Limit";
    let spread = "Static_Wearleveling_Threshold";
    Ok(WearSpec {
        pe_cycles: Some(flash.parameter(cycles, flash.number(cycles)?)),
        dynamic_look_blocks: device.is_on("Dynamic_Wearleveling_Enabled").then_some(4),
        static_spread_erases: if device.is_on("Static_Wearleveling_Enabled") {
            Some(device.whole(spread)?)
        } else {
            None
        },
    })
}

fn queue(device: Set, flash: Set, page_bytes: f64) -> Result<QueueSpec, ImportError> {
    let suspends = flash.text("CMD_Suspension_Support")? != "NONE";
    // Its cached mapping table, in pages of the map.
    let map_pages = device.number("CMT_Capacity")? / page_bytes;
    let ideal = device.is_on("Ideal_Mapping_Table");
    Ok(QueueSpec {
        source: device.file.to_owned(),
        assumed: false,
        depth: device.whole("Queue_Fetch_Size")?,
        host_queues: 1,
        reads_first: device.text("Transaction_Scheduling_Policy")? != "FIFO",
        suspend_us: if suspends { Some(flash.us("Suspend_Erase_Time")?) } else { None },
        resume_us: None,
        suspends_most: 1,
        read_retries: Vec::new(),
        map_cache_pages: (!ideal).then_some((map_pages as u32).max(1)),
    })
}

/// Its memory takes a page in the time of a row: hardly anything beside the flash.
fn write_cache(device: Set) -> Result<Option<WriteCacheSpec>, ImportError> {
    let key = "Data_Cache_Capacity";
    let bytes = device.number(key)?;
    if bytes == 0.0 {
        return Ok(None);
    }
    let rate = device.number("Data_Cache_DRAM_Data_Rate")?;
    let burst = device.number("Data_Cache_DRAM_Data_Busrt_Size")?;
    let latency_ns =
        device.number("Data_Cache_DRAM_tRCD")? + device.number("Data_Cache_DRAM_tCL")?;
    let assumed = |value, why: &str| Parameter::assumed(value, why);
    let us_per_kib = 1024.0 / (rate * burst).max(1.0);
    Ok(Some(WriteCacheSpec {
        capacity_mb: device.parameter(key, bytes / 1e6),
        line: Bytes(4096),
        hit_base_us: device.parameter("Data_Cache_DRAM_tRCD, tCL", latency_ns / 1e3),
        hit_us_per_kib: device.parameter("Data_Cache_DRAM_Data_Rate", us_per_kib),
        ports: assumed(1.0, "one memory"),
        high_watermark: assumed(1.0, "it writes back what is driven out"),
        low_watermark: assumed(1.0, "it writes back what is driven out"),
        coalesce_kib: assumed(4.0, "it writes back sector by sector of what is driven out"),
        idle_destage_after_ms: None,
        power_loss_protected: true,
        durable_streams: Vec::new(),
        destage_depth: None,
    }))
}

/// What is switched on and not modelled.
fn ignored(device: Set) -> Vec<String> {
    let mut found = Vec::new();
    if device.text("Memory_Type").is_ok_and(|kind| kind != "FLASH") {
        found.push("Memory_Type".to_owned());
    }
    for key in ["Data_Cache_Sharing_Mode", "CMT_Sharing_Mode"] {
        if device.text(key).is_ok_and(|mode| mode != "SHARED") {
            found.push(key.to_owned());
        }
    }
    if device.is_on("Preemptible_GC_Enabled") {
        found.push("GC_Hard_Threshold".to_owned());
    }
    found
}
