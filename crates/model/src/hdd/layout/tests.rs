//! The mapping against an oracle that walks the sectors of the platters one by one.

use proptest::prelude::*;

use super::*;

/// Cylinder, head, physical sector on the track and order of the track in its cylinder.
type Spot = (u32, u32, u32, u32);

/// Every logical sector in order, by walking.
fn walk(geometry: &Geometry) -> Vec<(Spot, usize)> {
    let mut out = Vec::new();
    for (index, zone) in geometry.zones.iter().enumerate() {
        walk_zone(geometry, zone, index, &mut out);
    }
    out
}

fn walk_zone(geometry: &Geometry, zone: &Zone, index: usize, out: &mut Vec<(Spot, usize)>) {
    let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
    let per_cylinder = zone.sectors_per_track * geometry.heads;
    let all = cylinders * per_cylinder;
    let (group, spares) = match geometry.sparing {
        Sparing::None => (all, zone.slips.len() as u32),
        Sparing::Tracks => (all, zone.spares * zone.sectors_per_track),
        Sparing::Track => (zone.sectors_per_track, zone.spares),
        Sparing::Cylinder => (per_cylinder, zone.spares),
        Sparing::Range => (per_cylinder * geometry.range_cylinders, zone.spares),
        Sparing::Zone => (all, zone.spares),
    };
    let bad = |physical: u32| match geometry.sparing {
        Sparing::Tracks => zone.slips.contains(&(physical / zone.sectors_per_track)),
        _ => zone.slips.contains(&physical),
    };
    let mut reserved = zone.reserved_sectors;
    for start in (0..all).step_by(group as usize) {
        let end = (start + group).min(all);
        let (mut skipped, mut held) = (0, 0);
        for physical in start..end {
            if held == (end - start).saturating_sub(spares) {
                break;
            }
            if bad(physical) && skipped < spares {
                skipped += 1;
                continue;
            }
            held += 1;
            if reserved > 0 {
                reserved -= 1;
                continue;
            }
            let cylinder = physical / per_cylinder;
            let nth = physical % per_cylinder / zone.sectors_per_track;
            let head = match geometry.order {
                Order::Serpentine if cylinder % 2 == 1 => geometry.heads - 1 - nth,
                _ => nth,
            };
            let spot =
                (zone.first_cylinder + cylinder, head, physical % zone.sectors_per_track, nth);
            out.push((spot, index));
        }
    }
}

/// The angle of a sector in turns, by adding up skews track by track.
fn turns(geometry: &Geometry, zone: &Zone, spot: Spot) -> f64 {
    let (cylinder, _, sector, nth) = spot;
    let mut sectors = zone.offset_sectors + f64::from(sector);
    for _ in zone.first_cylinder..cylinder {
        for _ in 1..geometry.heads {
            sectors += zone.track_skew_sectors;
        }
        sectors += zone.cylinder_skew_sectors;
    }
    for _ in 0..nth {
        sectors += zone.track_skew_sectors;
    }
    (sectors / f64::from(zone.sectors_per_track)).fract()
}

fn check(geometry: &Geometry) {
    let (layout, oracle) = (Layout::new(geometry), walk(geometry));
    assert_eq!(layout.sectors(), oracle.len() as u64, "{geometry:?}");
    for (lbn, (spot, zone_index)) in oracle.iter().enumerate() {
        let place = layout.locate(lbn as u64);
        assert_eq!((place.cylinder, place.head), (spot.0, spot.1), "{lbn}: {geometry:?}");
        let zone = &geometry.zones[*zone_index];
        let turns = turns(geometry, zone, *spot);
        let off = (place.angle as f64 / TURN as f64 - turns).abs();
        assert!(off.min(1.0 - off) < 1e-6, "{lbn}: {} {turns}: {geometry:?}", place.angle);
        let neighbours = |lbn: usize| {
            let (here, next) = (oracle[lbn], oracle.get(lbn + 1).copied());
            next.is_some_and(|next| {
                (next.0.0, next.0.1, next.0.2, next.1) == (here.0.0, here.0.1, here.0.2 + 1, here.1)
            })
        };
        let run = (lbn..oracle.len()).take_while(|lbn| neighbours(*lbn)).count() + 1;
        assert_eq!(place.run as usize, run, "{lbn}: {geometry:?}");
        let before = (0..lbn).rev().take_while(|lbn| neighbours(*lbn)).count();
        assert_eq!(place.run_before as usize, before, "{lbn}: {geometry:?}");
    }
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let sparing = prop::sample::select(vec![
        Sparing::None,
        Sparing::Tracks,
        Sparing::Track,
        Sparing::Cylinder,
        Sparing::Range,
        Sparing::Zone,
    ]);
    let zone = (1u32..6, 6u32..20, 0u32..4, 0u32..3, 0u32..2, 0f64..30.0, 0f64..30.0);
    let zones = prop::collection::vec((zone, prop::collection::vec(0u32..400, 0..6)), 1..4);
    (2u32..5, any::<bool>(), sparing, 1u32..4, zones).prop_map(
        |(heads, serpentine, sparing, range_cylinders, zones)| {
            let mut next = 0;
            let zones = zones.into_iter().map(
                |(
                    (
                        cylinders,
                        per_track,
                        reserved,
                        spares,
                        gap,
                        track_skew_sectors,
                        cylinder_skew_sectors,
                    ),
                    slips,
                )| {
                    let first_cylinder = next + gap;
                    next = first_cylinder + cylinders;
                    Zone {
                        first_cylinder,
                        last_cylinder: next - 1,
                        sectors_per_track: per_track,
                        offset_sectors: f64::from(reserved),
                        track_skew_sectors,
                        cylinder_skew_sectors,
                        reserved_sectors: reserved,
                        // A zone of one cylinder and two heads keeps a track for data.
                        spares: if sparing == Sparing::Tracks { spares.min(1) } else { spares },
                        slips: slips
                            .into_iter()
                            .collect::<std::collections::BTreeSet<_>>()
                            .into_iter()
                            .filter(|slip| match sparing {
                                Sparing::None => *slip < cylinders * heads * per_track,
                                _ => true,
                            })
                            .collect(),
                    }
                },
            );
            Geometry {
                heads,
                order: if serpentine { Order::Serpentine } else { Order::Cylinders },
                sparing,
                range_cylinders,
                zones: zones.collect(),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn as_walked(geometry in geometries()) {
        check(&geometry);
    }
}

#[test]
fn a_disk_by_hand() {
    let zone = Zone {
        first_cylinder: 0,
        last_cylinder: 1,
        sectors_per_track: 4,
        offset_sectors: 0.0,
        track_skew_sectors: 1.0,
        cylinder_skew_sectors: 2.0,
        reserved_sectors: 1,
        spares: 1,
        slips: vec![2],
    };
    let geometry = Geometry {
        heads: 2,
        order: Order::Cylinders,
        sparing: Sparing::Cylinder,
        range_cylinders: 1,
        zones: vec![zone],
    };
    let layout = Layout::new(&geometry);
    // Eight sectors a cylinder: one slipped into the spare, the first reserved; then seven of
    // eight.
    assert_eq!(layout.sectors(), 6 + 7);
    let place = |lbn| {
        let place = layout.locate(lbn);
        (place.cylinder, place.head, place.angle * 4 / TURN, place.run, place.run_before)
    };
    assert_eq!(place(0), (0, 0, 1, 1, 0), "then the slip");
    assert_eq!(place(1), (0, 0, 3, 1, 0), "after the slip");
    assert_eq!(place(2), (0, 1, 1, 4, 0), "one skew on");
    assert_eq!(place(6), (1, 0, 3, 4, 0), "a track skew and a cylinder skew on");
    assert_eq!(place(12), (1, 1, 2, 1, 2), "the last one, before the spare");
    check(&geometry);
}
