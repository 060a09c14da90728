//! `cargo xtask book`: `docs/` and the README as a static site with search, made by mdBook.
//!
//! The pages are copied below `target/book`, with a table of contents: guides in the order in which
//! the README names them, the journal from its newest page on. Links that leave `docs/` (to
//! sources, to profiles) become plain text, because the site has no such page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::links::{links, normal};

/// Name of the README among the pages.
const FRONT: &str = "introduction.md";

const CONFIGURATION: &str = "\
[book]
title = \"wearmark\"
src = \"src\"

[output.html]
default-theme = \"light\"
no-section-label = true

[output.html.search]
enable = true
limit-results = 30
";

/// Writes the pages and runs mdBook.
pub fn build() -> anyhow::Result<()> {
    let place = crate::target().join("book");
    let count = write(&crate::root(), &place)?;
    println!("book: {count} pages in {}", place.join("src").display());
    if !is_installed() {
        bail!("mdbook is not installed\nhint: cargo install mdbook --locked");
    }
    let status = Command::new("mdbook").arg("build").arg(&place).status()?;
    if !status.success() {
        bail!("mdbook build failed ({status})");
    }
    println!("book: {}", place.join("book/index.html").display());
    Ok(())
}

fn is_installed() -> bool {
    Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Writes the pages of `root` to `place`; gives their number.
fn write(root: &Path, place: &Path) -> anyhow::Result<usize> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    let source = place.join("src");
    fs::create_dir_all(&source)?;
    fs::write(place.join("book.toml"), CONFIGURATION)?;
    let pages = pages(root)?;
    for page in &pages {
        let to = source.join(site_path(page));
        fs::create_dir_all(to.parent().expect("a folder"))?;
        let from = root.join(page);
        if page.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
            fs::write(to, relinked(&text, page, &pages))?;
        } else {
            fs::copy(from, to)?;
        }
    }
    fs::write(source.join("SUMMARY.md"), contents(root, &pages)?)?;
    Ok(pages.len())
}

/// The README and every file below `docs`, from the root.
fn pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fn collect(root: &Path, folder: &Path, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                collect(root, &path, pages)?;
            } else {
                pages.push(path);
            }
        }
        Ok(())
    }
    let mut pages = vec![PathBuf::from("README.md")];
    collect(root, Path::new("docs"), &mut pages)?;
    pages.sort();
    Ok(pages)
}

/// Where a page stands in the site.
fn site_path(page: &Path) -> PathBuf {
    page.strip_prefix("docs").map_or_else(|_| FRONT.into(), Path::to_path_buf)
}

/// The text of `page` with its links as they are in the site.
fn relinked(text: &str, page: &Path, pages: &[PathBuf]) -> String {
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut relinked = text.to_owned();
    let mut known: Vec<&str> = links(text).into_iter().map(|(_, link)| link).collect();
    known.sort_unstable();
    known.dedup();
    for link in known {
        let (file, heading) = link.split_once('#').map_or((link, None), |(a, b)| (a, Some(b)));
        if file.is_empty() {
            continue;
        }
        let target = normal(&folder.join(file));
        let shown = if pages.contains(&target) {
            let up = "../".repeat(site_path(page).components().count() - 1);
            let heading = heading.map_or(String::new(), |heading| format!("#{heading}"));
            format!("]({up}{}{heading})", site_path(&target).display())
        } else {
            "]".to_owned()
        };
        relinked = relinked.replace(&format!("]({link})"), &shown);
    }
    relinked
}

/// The table of contents.
fn contents(root: &Path, pages: &[PathBuf]) -> anyhow::Result<String> {
    let readme = fs::read_to_string(root.join("README.md"))?;
    let named: Vec<PathBuf> =
        links(&readme).into_iter().map(|(_, link)| normal(Path::new(link))).collect();
    let place = |page: &Path| named.iter().rposition(|other| other == page).unwrap_or(usize::MAX);
    let mut text = format!("# Contents\n\n[wearmark]({FRONT})\n");
    for (title, folder) in
        [("Guides", "docs/guide"), ("Reference", "docs/reference"), ("The code", "docs")]
    {
        let mut own: Vec<&PathBuf> = of_folder(pages, folder).collect();
        own.sort_by_key(|page| (place(page), *page));
        section(&mut text, root, title, &own)?;
    }
    let mut journal: Vec<&PathBuf> = of_folder(pages, "docs/journal").collect();
    journal.reverse();
    section(&mut text, root, "Journal", &journal)?;
    Ok(text)
}

fn of_folder<'a>(pages: &'a [PathBuf], folder: &'a str) -> impl Iterator<Item = &'a PathBuf> {
    pages.iter().filter(move |page| {
        page.parent() == Some(Path::new(folder)) && page.extension().is_some_and(|it| it == "md")
    })
}

fn section(text: &mut String, root: &Path, title: &str, own: &[&PathBuf]) -> anyhow::Result<()> {
    text.push_str(&format!("\n# {title}\n\n"));
    for page in own {
        let written = fs::read_to_string(root.join(page))?;
        let heading = written.lines().find_map(|line| line.strip_prefix("# "));
        let heading = heading.with_context(|| format!("{} has no title", page.display()))?;
        text.push_str(&format!("- [{heading}]({})\n", site_path(page).display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{is_installed, write};
    use std::fs;
    use std::process::Command;

    /// Every page is in the contents, every link of the site leads somewhere, and mdBook takes it.
    #[test]
    fn the_site_is_whole() {
        let place = std::env::temp_dir().join(format!("wearmark-book-{}", std::process::id()));
        let count = write(&crate::root(), &place).unwrap();
        assert!(count > 60, "{count} pages");
        crate::links::check(&place).unwrap();
        let contents = fs::read_to_string(place.join("src/SUMMARY.md")).unwrap();
        for page in ["introduction.md", "guide/main-job.md", "reference/cli.md", "glossary.md"] {
            assert!(contents.contains(&format!("({page})")), "{page} in {contents}");
        }
        let at = |page: &str| contents.find(page).unwrap();
        assert!(at("guide/main-job.md") < at("guide/papers.md"), "in the order of the README");
        if is_installed() {
            let built = Command::new("mdbook").arg("build").arg(&place).output().unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let index = fs::read_to_string(place.join("book/index.html")).unwrap();
            assert!(index.contains("search"), "the site can be searched");
        } else {
            println!("skipped: mdbook is not installed; cargo install mdbook --locked");
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
