//! What needs files: the seeds of the fuzz target, which are the profiles that ship.

#[path = "../../../../fuzz/src/profile.rs"]
mod entry;
#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn any_profile_is_read_or_refused() {
    seeds::run("profile", entry::check);
}
