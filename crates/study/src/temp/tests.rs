//! A small sweep on two models: table, page, order.

use events::Quiet;
use insta::assert_snapshot;
use spill::Keys;

use super::*;

fn example(task: Task) -> Sweep {
    let profile = |name: &str| crate::profiles::read_profile(name).unwrap();
    Sweep {
        task,
        memory: Bytes(256 << 10),
        clusters: [4u64, 16].map(|kib| Bytes(kib << 10)).to_vec(),
        depth: 16,
        places: ["intel-x25-e", "seagate-savvio-15k"]
            .map(|name| Place::Model(Box::new(Devices::alone(profile(name)))))
            .to_vec(),
        cpu_ns_per_row: 0,
        seed: 1,
        record: false,
    }
}

fn rows(count: u64) -> Rows {
    Rows { count, width_bytes: 100, keys: Keys::Random, seed: 1 }
}

#[test]
fn a_sweep_is_a_table_and_a_page() {
    let example = example(Task::Sort(rows(40_000)));
    let (all, stopped) = sweep(&example, &Quiet).unwrap();
    assert!(!stopped);
    let table: String = text(&all).iter().map(|row| row.join(" | ") + "\n").collect();
    assert_snapshot!(table);
    let page = page(&example, &all);
    assert_eq!(page.verdict.len(), 2);
    assert_eq!(page.verdict[0].value, "4KiB");
    assert!(report::html(&page).contains("Elapsed time against cluster size"));
}

#[test]
fn a_join_names_its_own_columns() {
    let (all, _) = sweep(&example(Task::Join(rows(8_000), rows(9_000))), &Quiet).unwrap();
    let table = text(&all);
    assert_eq!(table[0][7..], ["PARTS", "SPLIT AGAIN", "IN BLOCKS"]);
    assert!(table.iter().all(|row| row.len() == 10));
    let json = serde_json::to_value(&all).unwrap();
    assert!(json[0]["join"]["plan"]["parts"].as_u64().unwrap() > 1, "{json}");
}
