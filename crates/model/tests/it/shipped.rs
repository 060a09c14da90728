//! The table of shipped profiles and the folder that they are kept in.

use model::profile::shipped;

#[test]
fn every_file_of_the_folder_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
    let files = std::fs::read_dir(folder).expect("the folder of profiles");
    let mut kept: Vec<_> = files
        .map(|entry| entry.expect("listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    kept.sort();
    let shipped: Vec<_> = shipped().iter().map(|(name, _)| *name).collect();
    assert_eq!(kept, shipped);
}
