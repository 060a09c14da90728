//! Packed traces; answers; and the module in a real browser, which must answer as this build does.

mod answers;
mod browser_page;
mod load;
mod packed;

#[path = "../../../report/tests/it/browser.rs"]
#[allow(dead_code, reason = "the tests of the page itself need more of it")]
mod browser;
