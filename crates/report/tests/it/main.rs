//! Everything that looks at whole pages.

mod sample;

#[test]
fn sample_page_is_small() {
    assert!(report::html(&sample::page()).len() < 1_500_000);
}
