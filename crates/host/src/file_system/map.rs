//! Which block of the device each page of a file lies on.

/// Pages of a file that lie in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub page: u64,
    pub block: u64,
    pub count: u64,
    /// Whether the blocks hold content; space that was only allocated reads as zeros.
    pub written: bool,
}

impl Extent {
    pub fn holds(&self, page: u64) -> bool {
        (self.page..self.page + self.count).contains(&page)
    }

    fn joins(&self, next: &Self) -> bool {
        self.written == next.written
            && self.page + self.count == next.page
            && self.block + self.count == next.block
    }
}

/// The extents of a file, ascending, never two that could be one.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    extents: Vec<Extent>,
}

impl Map {
    /// The part of an extent from `page` on, where the page has a block.
    pub fn find(&self, page: u64) -> Option<Extent> {
        let behind = self.extents.partition_point(|extent| extent.page <= page);
        let extent = self.extents[..behind].last()?;
        let skip = page - extent.page;
        (skip < extent.count).then(|| Extent {
            page,
            block: extent.block + skip,
            count: extent.count - skip,
            written: extent.written,
        })
    }

    /// First page behind `page` that has a block.
    pub fn next_mapped(&self, page: u64) -> Option<u64> {
        let behind = self.extents.partition_point(|extent| extent.page <= page);
        self.extents.get(behind).map(|extent| extent.page)
    }

    /// Adds pages that had no blocks.
    pub fn insert(&mut self, extent: Extent) {
        let at = self.extents.partition_point(|other| other.page < extent.page);
        self.extents.insert(at, extent);
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
    }

    /// Says that `page`, which has a block, has content now; returns whether it had none.
    pub fn mark_written(&mut self, page: u64) -> bool {
        let behind = self.extents.partition_point(|extent| extent.page <= page);
        let at = behind - 1;
        let whole = self.extents[at];
        if whole.written {
            return false;
        }
        let skip = page - whole.page;
        let part = |skip: u64, count, written| Extent {
            page: whole.page + skip,
            block: whole.block + skip,
            count,
            written,
        };
        let parts = [
            part(0, skip, false),
            part(skip, 1, true),
            part(skip + 1, whole.count - skip - 1, false),
        ];
        self.extents.splice(at..=at, parts.into_iter().filter(|part| part.count > 0));
        let middle = at + usize::from(skip > 0);
        self.join(middle);
        if middle > 0 {
            self.join(middle - 1);
        }
        true
    }

    fn join(&mut self, at: usize) {
        if at + 1 < self.extents.len() && self.extents[at].joins(&self.extents[at + 1]) {
            self.extents[at].count += self.extents[at + 1].count;
            self.extents.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_is_a_table_of_pages(
            steps in prop::collection::vec((0_u64..60, 1_u64..8, any::<bool>()), 1..60),
        ) {
            let (mut map, mut table) = (Map::default(), BTreeMap::new());
            let mut free = 1000;
            for (page, count, writes) in steps {
                if writes && table.contains_key(&page) {
                    let (block, written): (u64, bool) = table[&page];
                    prop_assert_eq!(map.mark_written(page), !written);
                    table.insert(page, (block, true));
                } else if (page..page + count).all(|page| !table.contains_key(&page)) {
                    map.insert(Extent { page, block: free, count, written: writes });
                    table.extend((0..count).map(|at| (page + at, (free + at, writes))));
                    free += count + u64::from(!writes);
                }
                for page in 0..70 {
                    let found = map.find(page).map(|extent| (extent.block, extent.written));
                    prop_assert_eq!(found, table.get(&page).copied());
                }
                prop_assert!(map.extents.windows(2).all(|pair| !pair[0].joins(&pair[1])));
            }
        }
    }
}
