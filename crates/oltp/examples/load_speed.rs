//! Loads W warehouses and prints how fast: `load_speed W DIRECTORY`.

use std::error::Error;
use std::path::PathBuf;

use oltp::{Database, Dataset, LoadOptions, Scale, SqliteSettings, load};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let warehouses: u32 = arguments.next().unwrap_or_else(|| "1".to_owned()).parse()?;
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let options = LoadOptions {
        database: Database::Sqlite(SqliteSettings { directory, ..SqliteSettings::default() }),
        dataset: Dataset::OrderEntry(Scale::new(warehouses)),
        seed: 1,
    };
    let report = load(&options, &events::Quiet)?;
    let per_warehouse = f64::from(warehouses);
    println!(
        "{warehouses} W: {:.1} W/min, {:.2} CPU s/W, {:.1} MB/W, {} rows in {:.1} s -> {}",
        per_warehouse / report.elapsed_s * 60.0,
        report.cpu_s / per_warehouse,
        report.database_bytes as f64 / 1e6 / per_warehouse,
        report.rows,
        report.elapsed_s,
        report.place,
    );
    Ok(())
}
