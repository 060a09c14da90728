//! Where a logical page is: the translation layers by name.

use super::{FlashParameters, Flaw};

/// The translation layers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Translation {
    /// Any logical page in any physical page of its plane: `PageMapped`.
    #[default]
    Page,
    /// Whole blocks and their replacements: `Replacement`.
    Block {
        /// Erase blocks, in as many planes, that are mapped as one.
        width: u32,
        /// Blocks that are replaced at a time.
        open: u32,
    },
    /// Whole blocks, each with a log of its own: `Bast`.
    Bast {
        /// Erase blocks, in as many planes, that are mapped as one.
        width: u32,
        /// Log blocks.
        logs: u32,
    },
    /// Whole blocks with a log that they share: `Fast`.
    Fast {
        /// Erase blocks, in as many planes, that are mapped as one.
        width: u32,
        /// Random log blocks; there is one sequential log besides.
        logs: u32,
    },
}

impl Translation {
    /// What makes a layer of whole blocks impossible on the geometry of `parameters`.
    pub(super) fn flaw(self, parameters: &FlashParameters) -> Result<(), Flaw> {
        let geometry = &parameters.geometry;
        let (width, logs, spare) = match self {
            Self::Page => return Ok(()),
            Self::Block { width, open } => (width, open, open),
            Self::Bast { width, logs } => (width, logs, logs.saturating_add(1)),
            Self::Fast { width, logs } => {
                let groups = (geometry.plane_count() / width.max(1)).max(1);
                (width, logs, logs.div_ceil(groups).saturating_add(2))
            }
        };
        if width == 0 || !geometry.plane_count().is_multiple_of(width) {
            let cause =
                format!("it must divide the {} planes of the device", geometry.plane_count());
            return Err(Flaw::new("mapping.width_blocks", cause));
        }
        if logs == 0 {
            return Err(Flaw::new("mapping.log_blocks", "there is at least one"));
        }
        let groups = geometry.plane_count() / width;
        let pages = u64::from(geometry.pages_per_block * width);
        let data = u64::from(parameters.logical_pages).div_ceil(pages).div_ceil(groups.into());
        let needed = data + u64::from(spare);
        if needed > u64::from(geometry.blocks_per_plane) {
            let cause = format!(
                "each plane needs {data} blocks for data and {spare} for logs and merges, but \
                 has {}",
                geometry.blocks_per_plane
            );
            return Err(Flaw::new("over_provisioning", cause));
        }
        Ok(())
    }
}
