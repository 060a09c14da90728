//! How fast the rows of a warehouse are made for PostgreSQL, in bytes per second of processor time
//! (the wall clock of a shared machine says little): `row_speed [WAREHOUSES]`.

use oltp::postgresql::rows::append;
use oltp::workload::rows::Rows;
use oltp::{Dataset, Scale};

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let warehouses = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let rows = Rows::new(Dataset::OrderEntry(Scale::new(warehouses)), 1);
    let (mut out, mut all_bytes, mut all_s) = (Vec::new(), 0.0, 0.0);
    for &table in rows.tables() {
        let (start, mut bytes) = (cpu_s(), 0.0);
        for chunk in rows.chunks(table) {
            out.clear();
            append(&rows, chunk, &mut out);
            bytes += out.len() as f64;
        }
        let elapsed = cpu_s() - start;
        println!("{:>10}: {:.2} GB/s ({:.0} MB)", table.name(), bytes / elapsed / 1e9, bytes / 1e6);
        (all_bytes, all_s) = (all_bytes + bytes, all_s + elapsed);
    }
    println!("{:>10}: {:.2} GB/s ({:.0} MB)", "all", all_bytes / all_s / 1e9, all_bytes / 1e6);
}
