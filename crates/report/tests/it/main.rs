//! Everything that looks at whole pages: in a browser, on the terminal, and as bytes.

mod browser;
mod page;
mod sample;
mod text;
