//! A trace in a text format of one's own, kept as Parquet and read back:
//! `cargo run -p formats --example own_columns`.

use formats::{Columns, Format, ReadOptions};

const TEXT: &str = "\
0    R 2048  4096
150  W 4096  16384
900  R 8192  4096
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("mine.txt");
    std::fs::write(&text, TEXT)?;
    let columns: Columns = "time:us,op,offset:sectors,size:bytes".parse()?;
    let options = ReadOptions { columns: Some(columns), ..ReadOptions::default() };
    let read = formats::read(&text, &options)?;
    assert_eq!(read.trace.due, [0, 150_000, 900_000]);
    assert_eq!(read.trace.offset, [2048 * 512, 4096 * 512, 8192 * 512]);

    let kept = folder.path().join("mine.parquet");
    formats::write(&read.trace, &kept, Format::Own)?;
    let again = formats::read(&kept, &ReadOptions::default())?;
    assert_eq!(again.trace.len, read.trace.len);
    println!("{} requests, kept as {}", again.trace.count(), again.detected.format.title());
    Ok(())
}
