//! What the fuzz targets of FUSE and NBD do, on their seeds and on mutations of them.

#[path = "../../../../fuzz/src/emulate/mod.rs"]
mod entry;
#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn a_directory_holds_whatever_the_kernel_sends() {
    seeds::are("fuse", &entry::fuse::seeds());
    seeds::run("fuse", |bytes| _ = entry::fuse::check(bytes));
    // They are there to be served, not only to be refused.
    for (name, requests) in entry::fuse::seeds() {
        let refused = entry::fuse::check(&requests);
        assert!(refused == 0 || name == "by-chance", "{name}: {refused}");
    }
}

#[test]
fn an_export_holds_whatever_a_client_says() {
    seeds::are("nbd", &entry::nbd::seeds());
    seeds::run("nbd", entry::nbd::check);
}
