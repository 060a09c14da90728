//! `wearmark trace generate`

use std::path::Path;

use anyhow::Context as _;
use formats::own;
use trace::generate::patterns;
use trace::recipe::{Recipe, find_shipped, shipped};

use crate::cli::Generate;
use crate::commands::{Context, output};
use crate::failure::Advice;

/// Makes a trace of a pattern or recipe, or lists them.
pub fn run(arguments: &Generate, context: &Context) -> anyhow::Result<()> {
    let (Some(what), false) = (&arguments.pattern, arguments.list) else {
        return list(context);
    };
    let recipe = recipe(what, &arguments.option)?;
    if arguments.recipe {
        return output::print(&recipe.to_toml());
    }
    let Some(to) = &arguments.output else {
        return Err(Advice::error(
            "no name for the trace",
            "name it with -o, such as -o out.parquet",
        ));
    };
    let trace = recipe.generate(arguments.seed, arguments.requests)?;
    own::write(&trace, to)?;
    output::print(&format!("{} requests written to {}\n", trace.count(), to.display()))
}

/// A pattern with its options, a shipped recipe, or a recipe file.
pub fn recipe(what: &str, options: &[(String, String)]) -> anyhow::Result<Recipe> {
    if let Some(pattern) = patterns::find(what) {
        return Ok(Recipe::Workload(pattern.workload(options)?));
    }
    if let Some((name, _)) = options.first() {
        let cause = format!("a recipe has no option '{name}'");
        return Err(Advice::error(cause, "change the recipe: --recipe prints it"));
    }
    if let Some(text) = find_shipped(what) {
        return Ok(Recipe::from_toml(text)?);
    }
    if Path::new(what).exists() {
        let text = std::fs::read_to_string(what).with_context(|| what.to_owned())?;
        return Recipe::from_toml(&text).with_context(|| what.to_owned());
    }
    Err(Advice::error(
        format!("no pattern, recipe or file is called '{what}'"),
        "'wearmark trace generate --list' names the patterns and recipes",
    ))
}

fn list(context: &Context) -> anyhow::Result<()> {
    let recipes: Vec<(&str, Recipe)> = shipped()
        .iter()
        .map(|(name, text)| Ok((*name, Recipe::from_toml(text)?)))
        .collect::<anyhow::Result<_>>()?;
    if context.json {
        let patterns = patterns::all().map(|pattern| {
            let options = pattern.options.iter().map(|option| {
                let (name, default, what) = (&option.name, &option.default, &option.what);
                serde_json::json!({ "name": name, "default": default, "what": what })
            });
            let options: Vec<_> = options.collect();
            serde_json::json!({ "name": pattern.name, "what": pattern.what, "options": options })
        });
        let recipes = recipes.iter().map(|(name, recipe)| {
            serde_json::json!({ "name": name, "what": recipe.description(), "options": [] })
        });
        return output::json(&patterns.chain(recipes).collect::<Vec<_>>());
    }
    let mut rows = vec![["PATTERN", "OPTIONS (DEFAULTS)", "WHAT"].map(str::to_owned).to_vec()];
    for pattern in patterns::all() {
        let options: Vec<String> =
            pattern.options.iter().map(|o| format!("{}={}", o.name, o.default)).collect();
        rows.push(vec![pattern.name.to_owned(), options.join(" "), pattern.what.to_owned()]);
    }
    for (name, recipe) in &recipes {
        rows.push(vec![(*name).to_owned(), String::new(), recipe.description().to_owned()]);
    }
    output::print(&output::table(&rows))
}
