//! Links between the pages that we write: each leads to a file that is there and, behind `#`, to a
//! heading that is there. Addresses on the web are left alone: no test needs a network.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};

/// Fails with every link that leads nowhere.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let (mut found, mut count) = (Vec::new(), 0);
    for page in crate::lines::written(root)? {
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        for (line, link) in links(&text) {
            count += 1;
            if let Err(why) = follow(&page, link) {
                let shown = page.strip_prefix(root).unwrap_or(&page);
                found.push(format!("{}:{line}: {link}: {why}", shown.display()));
            }
        }
    }
    if !found.is_empty() {
        bail!("links that lead nowhere:\n  {}", found.join("\n  "));
    }
    println!("links: {count} between our pages, all lead somewhere");
    Ok(())
}

/// Whether a link of `page` leads to a file and a heading.
fn follow(page: &Path, link: &str) -> Result<(), String> {
    let (file, heading) = link.split_once('#').map_or((link, None), |(a, b)| (a, Some(b)));
    let folder = page.parent().unwrap_or(Path::new("."));
    let target = if file.is_empty() { page.to_path_buf() } else { folder.join(file) };
    if !target.exists() {
        return Err("there is no such file".to_owned());
    }
    let Some(heading) = heading else { return Ok(()) };
    let text = fs::read_to_string(&target).map_err(|error| error.to_string())?;
    if headings(&text).iter().any(|known| known == heading) {
        return Ok(());
    }
    Err(format!("no heading '{heading}' in {}", target.display()))
}

/// Links to our own files, with their lines: the second part of `[text](link)`.
pub fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            let link = rest[..end].split(' ').next().unwrap_or("");
            let is_code = line[..at].matches('`').count() % 2 == 1;
            if !is_code && !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:")
            {
                found.push((index + 1, link));
            }
        }
    }
    found
}

/// The anchors of a page, as forges make them from its headings.
fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced && line.starts_with('#')
    });
    lines.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// `path` without `.` and `..`, where that can be said without looking.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::{check, links};

    #[test]
    fn every_link_of_our_pages_leads_somewhere() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn missing_files_and_headings_are_named() {
        let root = std::env::temp_dir().join(format!("wearmark-links-{}", std::process::id()));
        std::fs::create_dir_all(root.join("docs")).unwrap();
        let page = "# One two\n[a](docs/b.md#so-it-is) [b](docs/none.md) [c](#one-two)\n\
                    [d](docs/b.md#no)\n";
        std::fs::write(root.join("a.md"), page).unwrap();
        std::fs::write(root.join("docs/b.md"), "## So, it is!\n[up](../a.md)\n").unwrap();
        let error = check(&root).unwrap_err().to_string();
        std::fs::remove_dir_all(&root).unwrap();
        let lines: Vec<&str> = error.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(lines[0].starts_with("a.md:2: docs/none.md: there is no such file"), "{error}");
        assert!(lines[1].starts_with("a.md:3: docs/b.md#no: no heading 'no'"), "{error}");
    }

    #[test]
    fn code_and_the_web_are_no_links_of_ours() {
        let text = "[a](https://x.org) `[b](c.md)` [d](e.md \"title\")\n```\n[f](g.md)\n```\n";
        assert_eq!(links(text), [(1, "e.md")]);
    }
}
